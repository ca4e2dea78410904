"""The audit sees each invariant that is broken by hand, and nothing in a healthy installation."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from tasks_app.audit import flow_invariants
from tasks_app.models import Dataset, File
from tasks_app.submission import command_queue
from tests.flow.balance import assert_books_balance
from tests.flow.driving import add_dataset, add_queue, agents_turn, jobs, parameters, reads, status, submit, template
from tests.flow.pilot import Pilot, drive, failing_on

pytestmark = pytest.mark.usefixtures("tables")

# ruff: noqa: S608 - every piece is a constant of this module
_INPUT = "type = 'input'"
_A_FINISHED = f"(SELECT min(fileid) FROM jedi_dataset_contents WHERE {_INPUT} AND status = 'finished')"
_A_RUNNING = f"(SELECT min(fileid) FROM jedi_dataset_contents WHERE {_INPUT} AND status = 'running')"
_ENDED_JOB = "(SELECT min(pandaid) FROM jobs WHERE jobstatus = 'finished')"
_OPEN_JOB = "(SELECT max(pandaid) FROM jobs WHERE jobstatus = 'activated')"
_RUNNING_JOB = "(SELECT max(pandaid) FROM jobs WHERE jobstatus = 'running')"
_DONE_TASK = "(SELECT min(jeditaskid) FROM jedi_tasks WHERE status = 'done')"
_A_RULE = """
    INSERT INTO transfer_rules (kind, dataset, destination, activity, username, error, is_settled, status, files, files_done,
                                files_failed, bytes, bytes_done, ended)
    SELECT 'copy', '', 'SE', 'Production Input', '', '', false, r.* FROM (VALUES"""
_A_REPLICA = "INSERT INTO file_replicas (scope, lfn, endpoint, url, status, reason) SELECT scope, lfn"

_A_RANGE = """
    INSERT INTO jedi_events (jeditaskid, datasetid, fileid, pandaid, job_processid, def_min_eventid, def_max_eventid, status)"""

BREAKS: dict[str, str] = {
    "handed_out_range_has_job": f"{_A_RANGE} VALUES (1, 1, 1, {_ENDED_JOB}, 1, 1, 9, 1)",
    "range_lives_once": f"{_A_RANGE} VALUES (1, 1, 1, 5, 1, 1, 9, 0), (1, 1, 1, 5, 9, 9, 12, 6)",
    "jobset_has_owner": f"""
        UPDATE jobs SET eventservice = 1, jobsetid = 7 WHERE pandaid = {_RUNNING_JOB};
        {_A_RANGE} SELECT jeditaskid, datasetid, fileid, pandaid, 1, 1, 9, 1 FROM jedi_dataset_contents
         WHERE type = 'input' AND pandaid = {_RUNNING_JOB};
        UPDATE jedi_dataset_contents SET pandaid = {_OPEN_JOB} WHERE type = 'input' AND pandaid = {_RUNNING_JOB}""",
    "partial_file_lacks_events": f"UPDATE jedi_dataset_contents SET status = 'partial' WHERE fileid = {_A_FINISHED}",
    "input_events": f"UPDATE jedi_datasets SET neventsused = coalesce(neventsused, 0) + 1 WHERE {_INPUT}",
    "events_of_consumers": f"""
        UPDATE jobs SET eventservice = 1, nevents = 8 WHERE pandaid = {_RUNNING_JOB};
        {_A_RANGE} SELECT jeditaskid, 1, 1, pandaid, 1, 1, 9, 3 FROM jobs WHERE pandaid = {_RUNNING_JOB}""",
    "one_merge_of_jobset": f"""
        UPDATE jobs SET eventservice = 2, jobsetid = 7, jeditaskid = 1 WHERE pandaid IN ({_RUNNING_JOB}, {_OPEN_JOB})""",
    "waiting_files_are_used": f"UPDATE jedi_datasets SET nfileswaiting = nfiles + 1 WHERE {_INPUT}",
    "merging_consumer_is_awaited": "UPDATE jobs SET eventservice = 1, jobsetid = 7 WHERE jobstatus = 'merging'",
    "input_counters": f"UPDATE jedi_datasets SET nfilesused = nfilesused + 1 WHERE {_INPUT}",
    "output_counters": "UPDATE jedi_datasets SET nfilesfinished = nfilesfinished - 1 WHERE type = 'log' AND nfilesfinished > 0",
    "production_systems_are_served": "INSERT INTO t_task (status, jedi_task_parameters) VALUES ('broken', '{}')",
    "production_systems_are_told": f"""
        UPDATE messages_out SET position = id;
        INSERT INTO messages_out_readers (name, position) SELECT 'production_systems', max(id) FROM messages_out;
        INSERT INTO t_task (taskid, status, jedi_task_parameters, imported) VALUES ({_DONE_TASK}, 'running', '{{}}', now())""",
    "running_file_has_job": f"UPDATE jedi_dataset_contents SET status = 'running' WHERE fileid = {_A_FINISHED}",
    "file_in_one_open_job": f"""
        INSERT INTO job_files (pandaid, jeditaskid, datasetid, fileid, lfn, type)
        SELECT {_OPEN_JOB}, jeditaskid, datasetid, fileid, lfn, type FROM job_files WHERE fileid = {_A_RUNNING}""",
    "metadata_mark_of_complete_tasks": "UPDATE jedi_tasks SET amiflag = 'READY' WHERE status = 'running'",
    "forecast_of_working_task": f"UPDATE jedi_tasks SET ttcpredicted = now() WHERE jeditaskid = {_DONE_TASK}",
    "failure_rate_is_percent": "UPDATE jedi_tasks SET failurerate = 101",
    "serial_within_its_limit": "UPDATE jedi_output_template SET maxserialnr = serialnr - 2",
    "finished_file_has_job": f"UPDATE jobs SET jobstatus = 'failed' WHERE pandaid = {_ENDED_JOB}",
    "file_processed_once": f"""
        INSERT INTO job_files (pandaid, jeditaskid, datasetid, fileid, lfn, type)
        SELECT {_ENDED_JOB} + 1, jeditaskid, datasetid, fileid, lfn, type FROM job_files WHERE pandaid = {_ENDED_JOB}
           AND type = 'input'""",
    "attempts_in_bounds": f"UPDATE jedi_dataset_contents SET attemptnr = 0 WHERE fileid = {_A_FINISHED}",
    "scouts_have_their_share": "UPDATE jedi_tasks SET status = 'scouting' WHERE status = 'running'",
    "retry_is_ready": f"""
        INSERT INTO file_retries (fileid, jeditaskid, datasetid)
        SELECT fileid, jeditaskid, datasetid FROM jedi_dataset_contents WHERE fileid = {_A_FINISHED}""",
    "retry_is_behind_cursor": f"""
        WITH again AS (
            INSERT INTO file_retries (fileid, jeditaskid, datasetid)
            SELECT fileid, jeditaskid, datasetid FROM jedi_dataset_contents WHERE fileid = {_A_RUNNING})
        UPDATE jedi_datasets SET pick_cursor = 1 WHERE {_INPUT}""",
    "ranges_do_not_overlap": f"""
        UPDATE jedi_dataset_contents SET lfn = 'the same', startevent = fileid, endevent = fileid + 5 WHERE {_INPUT}""",
    "no_file_forgotten": f"UPDATE jedi_dataset_contents SET status = 'ready' WHERE fileid = {_A_RUNNING}",
    "pending_means_growing": f"UPDATE jedi_dataset_contents SET status = 'pending' WHERE fileid = {_A_RUNNING}",
    "staging_file_has_request": f"UPDATE jedi_dataset_contents SET status = 'staging' WHERE fileid = {_A_RUNNING}",
    "staging_task_has_rule": "UPDATE jedi_tasks SET status = 'staging' WHERE status = 'running'",
    "ended_job_has_end": f"UPDATE jobs SET endtime = NULL WHERE pandaid = {_ENDED_JOB}",
    "report_of_holding_job": f"UPDATE jobs SET jobstatus = 'holding' WHERE pandaid = {_RUNNING_JOB}",
    "job_at_pilot_is_proved": f"UPDATE jobs SET fence = 0 WHERE pandaid = {_RUNNING_JOB}",
    "ended_task_has_no_open_job": f"UPDATE jobs SET jeditaskid = {_DONE_TASK} WHERE pandaid = {_OPEN_JOB}",
    "done_task_is_complete": f"UPDATE jedi_datasets SET nfiles = nfiles + 1 WHERE {_INPUT} AND jeditaskid = {_DONE_TASK}",
    "job_has_task": f"UPDATE jobs SET jeditaskid = 1 WHERE pandaid = {_OPEN_JOB}",
    "outputs_of_finished_jobs": f"""
        DELETE FROM catalogue_files WHERE lfn = (SELECT min(lfn) FROM job_files WHERE pandaid = {_ENDED_JOB} AND type = 'log')""",
    "outputs_of_ended_jobs": f"""
        UPDATE jedi_dataset_contents SET status = 'defined' WHERE pandaid = {_ENDED_JOB} AND type = 'output'""",
    "catalogue_has_producer": "UPDATE catalogue_files SET lfn = 'stowaway' WHERE lfn LIKE 'lab.a.000001.root'",
    "output_name_once": "UPDATE jedi_dataset_contents SET lfn = 'the same' WHERE type = 'output'",
    "input_name_once": f"UPDATE jedi_dataset_contents SET lfn = 'the same' WHERE {_INPUT}",
    "removed_file_has_no_job": f"""
        UPDATE jedi_dataset_contents SET status = 'removed' WHERE pandaid = {_RUNNING_JOB} AND type = 'input'""",
    "job_of_one_group": f"""
        WITH grouped AS (UPDATE jedi_tasks SET splitrule = 'GB=3')
        UPDATE jedi_dataset_contents SET boundaryid = fileid WHERE {_INPUT} AND pandaid = (
            SELECT c.pandaid FROM jedi_dataset_contents c JOIN job_files f ON f.pandaid = c.pandaid AND f.fileid = c.fileid
             WHERE c.type = 'input' GROUP BY 1 HAVING count(*) > 1 LIMIT 1)""",
    "group_in_one_job": f"""
        WITH grouped AS (UPDATE jedi_tasks SET splitrule = 'GB=3' WHERE jeditaskid = {_DONE_TASK})
        UPDATE jedi_dataset_contents SET boundaryid = 1 WHERE type = 'input' AND jeditaskid = {_DONE_TASK}""",
    "waiting_job_has_build": "UPDATE jedi_datasets SET status = 'done' WHERE type = 'lib'",
    "started_job_has_library": "UPDATE job_files SET surl = NULL WHERE type = 'lib'",
    "retry_history_goes_forward": "UPDATE jedi_job_retry_history SET newpandaid = oldpandaid",
    "task_state_is_logged": f"UPDATE jedi_tasks SET status = 'failed' WHERE jeditaskid = {_DONE_TASK}",
    "task_state_is_told": f"DELETE FROM messages_out WHERE jeditaskid = {_DONE_TASK} AND payload ->> 'status' = 'done'",
    "messages_go_out": "UPDATE messages_out SET created = clock_timestamp() - interval '11 minutes'",
    "messages_come_in": """
        INSERT INTO messages_in (message_id, kind, sender, payload, received)
        VALUES ('x', 'kick', 'x', '{}', clock_timestamp() - interval '11 minutes')""",
    "schedule_counts_its_records": """
        WITH one AS (SELECT min(jeditaskid) AS task FROM jedi_tasks),
        pseudo AS (INSERT INTO jedi_datasets (jeditaskid, datasetname, type) SELECT task, 'x', 'pseudo_input' FROM one)
        INSERT INTO periodic_tasks (jeditaskid, every_s, cron, jobs, next_due, records, ended)
        SELECT task, 60, '', 1, now(), 1, now() FROM one""",
    "task_moves_are_allowed": """INSERT INTO tasks_statuslog (jeditaskid, oldstatus, status, actor)
        SELECT jeditaskid, 'broken', status, 'test' FROM jedi_tasks LIMIT 1""",
    "job_moves_are_allowed": f"""
        INSERT INTO jobs_statuslog (pandaid, jobstatus, actor) VALUES ({_ENDED_JOB}, 'running', 'test')""",
    "waiting_task_says_why": f"UPDATE jedi_tasks SET status = 'exhausted', errordialog = NULL WHERE jeditaskid = {_DONE_TASK}",
    "job_state_is_logged": f"DELETE FROM jobs_statuslog WHERE pandaid = {_ENDED_JOB} AND jobstatus = 'finished'",
    "no_stale_claim": """
        UPDATE jedi_tasks SET lockedby = 'nobody', lockedtime = clock_timestamp() - interval '11 minutes'
         WHERE status = 'running'""",
    "output_is_in_its_container": """
        WITH box AS (INSERT INTO catalogue_datasets (name, scope, open, owner) VALUES ('lab.box/', 'lab', true, ''))
        UPDATE jedi_datasets SET containername = 'lab.box/' WHERE type = 'output'""",
    "unmerged_counters": "UPDATE jedi_datasets SET nfilesused = nfilesused - 1 WHERE type = 'trn_log' AND nfilesused > 0",
    "on_hold_counters": f"UPDATE jedi_datasets SET nfilesonhold = nfilesonhold + 1 WHERE {_INPUT}",
    "merging_job_is_accounted": """
        DELETE FROM file_retries WHERE fileid IN (SELECT fileid FROM jedi_dataset_contents WHERE boundaryid > 0)""",
    "unmerged_file_has_job": "UPDATE jobs SET jobstatus = 'finished' WHERE jobstatus = 'merging'",
    "unmerged_file_is_decided": """
        UPDATE jedi_dataset_contents SET status = 'defined' WHERE type = 'trn_output' AND status = 'finished'""",
    "transfer_rule_counters": f"{_A_RULE} ('done', 1, 1, 0, 5, 5, now())) r",
    "transfer_rule_ends_with_its_requests": f"{_A_RULE} ('active', 0, 0, 0, 0, 0, NULL::timestamptz)) r",
    "assigned_job_waits_for_its_input": f"UPDATE jobs SET jobstatus = 'assigned' WHERE pandaid = {_OPEN_JOB}",
    "transferring_job_waits_for_its_output": f"UPDATE jobs SET jobstatus = 'transferring' WHERE pandaid = {_RUNNING_JOB}",
    "further_replica_is_elsewhere": f"{_A_REPLICA}, endpoint, url, 'available', '' FROM catalogue_files LIMIT 1",
    "further_replica_has_a_file": """
        INSERT INTO file_replicas (scope, lfn, endpoint, url, status, reason) VALUES ('x', 'x', 'SE', 'x', 'available', '')""",
    "finished_job_is_merged": "UPDATE jobs SET jobstatus = 'failed' WHERE jobstatus = 'finished' AND processingtype = 'pmerge'",
}


@pytest.fixture
def busy() -> Pilot:
    """A task that is done, after a failure; and one at work: jobs finished, failed, queued and at a pilot."""
    add_dataset("lab.in", 6)
    pilot = Pilot(lambda job: "failed" if job["attemptNr"] == 1 and "00002" in job["inFiles"] else "finished")
    done = submit(parameters("lab.a", reads("lab.in"), nFilesPerJob=1))
    drive(pilot)
    working = submit(parameters("lab.b", reads("lab.in"), nFilesPerJob=1))
    for _ in range(4):
        agents_turn()
    pilot.work(3)
    for job in pilot.fetch(2):
        pilot.start(job)
    agents_turn()
    assert (status(done), status(working)) == ("done", "running")
    spec = {"archiveName": "sources.tar.gz", "jobParameters": "-i ${IN} -o ${OUT}"}
    for name in ("lab.built", "lab.building"):
        submit(parameters(name, reads("lab.in"), nFilesPerJob=6, buildSpec=spec, sourceURL="https://cache.example:443"))
        for _ in range(3):
            agents_turn()
        if name == "lab.built":
            (build,) = pilot.fetch(1, label="panda")
            pilot.start(build)
            pilot.end(build)
    assert status(_merging()) == "running"
    return pilot


def _merging() -> int:
    """A task whose outputs are merged: some are, some are read by a merge job, one waits, one job runs."""
    add_queue("SITE_M")
    pilot = Pilot(site="SITE_M")
    add_dataset("lab.in6", 6)
    spec = {"transPath": "merge", "jobParameters": "${TRN_OUTPUT0/L} ${OUTPUT0}"}
    more = {"mergeOutput": True, "mergeSpec": spec, "nFilesPerMergeJob": 2, "site": "SITE_M"}
    made = submit(parameters("lab.m", reads("lab.in6"), nFilesPerJob=1, **more))
    for _ in range(4):
        agents_turn()
    for job in pilot.fetch(6)[:5]:
        pilot.start(job)
        pilot.end(job)
    agents_turn()
    agents_turn()
    pilot.work(1)
    agents_turn()
    agents_turn()
    kinds = sorted((job.processing_type, job.status) for job in jobs(made))
    assert kinds == [
        ("pmerge", "activated"),
        ("pmerge", "finished"),
        ("test", "finished"),
        ("test", "finished"),
        ("test", "merging"),
        ("test", "merging"),
        ("test", "merging"),
        ("test", "sent"),
    ]
    return made


def test_the_books_of_a_busy_installation_balance(busy: Pilot) -> None:
    assert flow_invariants.find() == []


def test_each_attempt_of_the_only_job_of_a_task_may_make_a_file_of_the_same_name() -> None:
    made = submit(
        parameters(
            "lab.one",
            template("output", "result.json", "lab.one.out"),
            noInput=True,
            nEvents=1,
            nEventsPerJob=1,
            maxAttempt=3,
        )
    )
    drive(Pilot(lambda job: "failed" if job["attemptNr"] < 3 else "finished"))
    assert status(made) == "done" and len(jobs(made)) == 3
    assert [found.invariant.name for found in flow_invariants.find()] == []
    File.objects.filter(task_id=made, type="output").update(status="finished")
    assert "output_name_once" in [found.invariant.name for found in flow_invariants.find()]


def test_every_invariant_has_a_name_of_its_own_and_is_broken_here() -> None:
    names = [invariant.name for invariant in flow_invariants.INVARIANTS]
    assert len(set(names)) == len(names) >= 20
    assert set(names) == set(BREAKS)


def test_each_invariant_that_is_broken_is_found(busy: Pilot) -> None:
    unseen = []
    for invariant in flow_invariants.INVARIANTS:
        with transaction.atomic(), connection.cursor() as cursor:
            assert flow_invariants.check(cursor, invariant) is None
            cursor.execute(BREAKS[invariant.name])
            assert cursor.rowcount > 0, f"the test broke nothing of {invariant.name}"
            violation = flow_invariants.check(cursor, invariant)
            if violation is None or not violation.count >= len(violation.rows) >= 1:
                unseen.append(invariant.name)
            transaction.set_rollback(True)
    assert not unseen


def test_books_that_do_not_balance_are_shown_with_the_moves_and_commands_of_the_task() -> None:
    add_dataset("lab.in", 2)
    made = submit(parameters("lab.a", reads("lab.in"), nFilesPerJob=1, maxAttempt=1))
    drive(Pilot(failing_on("lab.in.00001")))
    command_queue.give_command(made, "retry", by="ada")
    drive(Pilot())
    assert status(made) == "done"
    assert_books_balance()
    Dataset.objects.filter(task_id=made, type="input").update(files_used=5)
    with pytest.raises(AssertionError) as failed:
        assert_books_balance("step 7")
    told = str(failed.value).splitlines()
    assert told[0] == "step 7" and told[1].startswith("input_counters: ")
    assert f"task {made}:" in told
    assert any("defined -> ready by feeder: 2 input files are known" in line for line in told)
    assert any("ada gave retry" in line for line in told)


def audit(*arguments: str) -> tuple[int, str]:
    out = StringIO()
    try:
        call_command("audit", *arguments, stdout=out)
    except SystemExit as exc:
        return int(exc.code or 0), out.getvalue()
    return 0, out.getvalue()


def test_the_command_ends_well_when_all_invariants_hold(busy: Pilot) -> None:
    number = len(flow_invariants.INVARIANTS)
    assert audit() == (0, f"{number} of {number} invariants hold\n")
    code, text = audit("--json")
    assert (code, json.loads(text)) == (0, {"ok": True, "checked": number, "broken": []})


def test_the_command_ends_with_1_and_shows_the_rows_when_one_does_not(busy: Pilot) -> None:
    with connection.cursor() as cursor:
        cursor.execute(BREAKS["ended_job_has_end"])
    code, text = audit("--json")
    report = json.loads(text)
    assert (code, report["ok"]) == (1, False)
    (broken,) = report["broken"]
    assert (broken["name"], broken["count"]) == ("ended_job_has_end", 1)
    assert broken["rows"][0]["endtime"] is None
    code, text = audit()
    assert code == 1
    assert broken["sentence"] in text


def test_a_task_with_failures_leaves_balanced_books() -> None:
    add_dataset("lab.in", 4)
    submit(parameters("lab.a", reads("lab.in"), nFilesPerJob=2, maxAttempt=2))
    drive(Pilot(failing_on("lab.in.00003")))
    assert flow_invariants.find() == []
