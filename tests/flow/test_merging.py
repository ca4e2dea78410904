"""Merging inside a task: jobs write unmerged files first, merge jobs make of them what users see."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from brokerage_app.grid import configured
from brokerage_app.models import GdpConfig, GlobalShare, Queue, QueueEndpoint, StorageEndpoint
from tasks_app.agents import adder, commando, merger
from tasks_app.agents.watchdogs import lost_jobs
from tasks_app.configured import timeout_limits
from tasks_app.counts import line_order
from tasks_app.explaining import merging_facts
from tasks_app.models import CatalogueDataset, CatalogueFile, Dataset, Job, JobFile, JobParams, JobRetryHistory
from tasks_app.submission import command_queue
from tests.flow.driving import (
    SITE,
    add_dataset,
    add_queue,
    age,
    agents_turn,
    dataset,
    files,
    inputs,
    jobs,
    parameters,
    reads,
    settle,
    states,
    status,
    submit,
    task,
    template,
)
from tests.flow.pilot import Pilot, drive, failing_on, inputs_of, stored, update_job
from tests.flow.pilot import report as report_of

pytestmark = pytest.mark.usefixtures("books")
MERGE = {"transPath": "merge", "jobParameters": "--in ${TRN_OUTPUT0/L} --out ${OUTPUT0} --logs ${TRN_LOG0/L}"}


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    configured.forget()
    yield
    configured.forget()


def merging_task(name: str = "lab.m", files: int = 6, **more: Any) -> int:
    """A task with one job a file, whose outputs are merged."""
    add_dataset(f"{name}.in", files)
    given = {"nFilesPerJob": 1, "mergeOutput": True, "mergeSpec": MERGE, **more}
    return submit(parameters(name, reads(f"{name}.in"), **given))


def is_merge(job: dict[str, Any]) -> bool:
    return bool(job["processingType"] == "pmerge")


def first_jobs(pilot: Pilot, outcome: str = "finished") -> list[dict[str, Any]]:
    """Let the pilot bring all first jobs that are queued to their end."""
    found = pilot.fetch(100)
    assert found and not any(map(is_merge, found))
    for job in found:
        pilot.start(job)
        pilot.end(job, outcome)
    return found


def merge_jobs(task_id: int, **conditions: Any) -> list[Job]:
    return jobs(task_id, processing_type="pmerge", **conditions)


def test_outputs_of_several_jobs_become_one_file() -> None:
    made = merging_task()
    settle()
    pilot = Pilot()
    for job in first_jobs(pilot):
        assert job["outFiles"].startswith("panda.um.lab.m.") and "panda.um.lab.m." in job["jobPars"]
        assert (
            job["logFile"].startswith("panda.um.lab.m.")
            and job["realDatasets"] == "panda.um.lab.m.out,panda.um.lab.m.log"
        )
    adder.run()
    assert states(made) == {"merging": 6}
    row = dataset(made)
    assert (row.files_used, row.files_finished, row.files_on_hold) == (6, 0, 6)
    assert {f.status for f in files(made)} == {"running"}
    assert {(f.status, f.max_attempt, f.boundary_id == f.out_job_id) for f in files(made, "trn_output")} == {
        ("ready", 3, True)
    }
    settle()
    (job,) = pilot.fetch(10)
    assert (job["currentPriority"], job["processingType"], job["transformation"]) == (5000, "pmerge", "merge")
    assert len(inputs_of(job)) == 12 and all(name.startswith("panda.um.") for name in inputs_of(job))
    assert len(job["surlsIn"]) == 12 and all(job["surlsIn"])
    assert job["outFiles"] == "lab.m.000001.root,lab.m.000001.log.tgz" and job["logFile"] == "lab.m.000001.log.tgz"
    outputs = ",".join(f"panda.um.lab.m.{n:06d}.root" for n in range(1, 7))
    logs = ",".join(f"panda.um.lab.m.{n:06d}.log.tgz" for n in range(1, 7))
    assert job["jobPars"] == f"--in {outputs} --out lab.m.000001.root --logs {logs}"
    pilot.start(job)
    pilot.end(job)
    settle()
    assert states(made) == {"finished": 7}
    assert status(made) == "done"
    row = dataset(made)
    assert (row.files_finished, row.files_on_hold) == (6, 0)
    assert [f.lfn for f in files(made, "output")] == ["lab.m.000001.root"]
    final = CatalogueDataset.objects.get(name="lab.m.out")
    assert list(final.files.values_list("lfn", flat=True)) == ["lab.m.000001.root"]
    assert not CatalogueDataset.objects.filter(name="panda.um.lab.m.out").exists(), "unmerged outputs are deleted"
    assert not CatalogueDataset.objects.get(name="panda.um.lab.m.log").open
    assert {d.status for d in Dataset.objects.filter(task_id=made, type__startswith="trn_")} == {"done"}


@pytest.mark.parametrize("kind", ["urgent", "reprocessing"])
def test_merge_jobs_of_an_urgent_task_overtake_shares_as_its_other_jobs_do(kind: str) -> None:
    for name in ("own", "other"):
        GlobalShare.objects.create(name=name, value=50)

    def one_job(share: str) -> int:
        made = submit(parameters(f"lab.{share}", noInput=True, nEvents=1, nEventsPerJob=1, gshare=share))
        settle()
        return made

    pilot = Pilot()
    one_job("own")
    pilot.start(*pilot.fetch(1))
    made = merging_task(files=2, processingType=kind, gshare="own")
    settle()
    first_jobs(pilot)
    settle()
    other = one_job("other")
    line_order.forget()
    assert merge_jobs(made)[0].gshare == "own", "which executes more than its part"
    assert [int(job["taskID"]) for job in pilot.fetch(2)] == ([made, other] if kind == "urgent" else [other, made])


def test_an_unmerged_file_whose_stored_address_is_not_its_place_is_handed_out_without_it() -> None:
    """As before reports were looked at, or after a storage was taken from this machine."""
    made = merging_task(files=2)
    settle()
    pilot = Pilot()
    first_jobs(pilot)
    settle()
    astray = JobFile.objects.filter(job_id__in=[one.id for one in merge_jobs(made)], lfn="panda.um.lab.m.000001.root")
    assert astray.update(surl="file:///etc/passwd") == 1
    (job,) = pilot.fetch(10)
    addresses = dict(zip(inputs_of(job), job["surlsIn"], strict=True))
    assert addresses.pop("panda.um.lab.m.000001.root") is None
    assert set(addresses.values()) == {f"root://se.example//{name}" for name in addresses} and len(addresses) == 3


def test_files_are_merged_where_they_are(settings: Any) -> None:
    settings.JEDI_QUEUE_FLOOR = 4
    add_queue("SITE_B")
    made = merging_task(files=8)
    settle()
    pilots = (Pilot(), Pilot(site="SITE_B"))
    of_site = {
        pilot.site: {name for job in first_jobs(pilot) for name in job["outFiles"].split(",")} for pilot in pilots
    }
    settle()
    assert {job.site: set(inputs(job.id)) for job in merge_jobs(made)} == of_site
    drive(*pilots)
    assert status(made) == "done"
    assert len(files(made, "output")) == 2


def test_full_groups_are_merged_at_once_and_the_rest_when_the_site_has_no_job_left() -> None:
    made = merging_task(files=5, nFilesPerMergeJob=2)
    settle()
    pilot = Pilot()
    works, *others = pilot.fetch(5)
    for job in others[:3]:
        pilot.start(job)
        pilot.end(job)
    settle()
    assert [len(inputs(job.id)) for job in merge_jobs(made)] == [4], "one job waits for another"
    for job in (works, others[3]):
        pilot.start(job)
        pilot.end(job)
        settle()
    assert [len(inputs(job.id)) for job in merge_jobs(made)] == [4, 4, 2]
    drive(pilot)
    assert status(made) == "done"


def test_an_incomplete_group_waits_for_input_that_is_left_but_not_for_ever() -> None:
    made = merging_task(files=3, nFilesPerMergeJob=2)
    settle()
    pilot = Pilot(plan=failing_on("lab.m.in.00000", "lab.m.in.00001"))
    pilot.work()
    adder.run()
    assert dataset(made).files_used == 1, "two files are to be tried again"
    now = timezone.now()
    assert merger.run(now=now).items == 0
    assert merger.run(now=now + timedelta(hours=2)).items == 1
    assert states(made) == {"failed": 2, "merging": 1, "activated": 1}
    drive(Pilot())
    assert status(made) == "done"


def test_a_merge_job_that_fails_is_tried_again() -> None:
    made = merging_task(files=2)
    settle()
    pilot = Pilot()
    first_jobs(pilot)
    settle()
    pilot.end(*pilot.fetch(), "failed")
    settle()
    first, second = merge_jobs(made)
    assert (first.status, second.status, second.attempt) == ("failed", "activated", 2)
    assert inputs(first.id) == inputs(second.id)
    assert states(made) == {"merging": 2, "failed": 1, "activated": 1}
    drive(pilot)
    assert status(made) == "done"
    assert states(made) == {"finished": 3, "failed": 1}
    assert [f.failed_attempt for f in files(made)] == [0, 0], "the inputs had no part in the failure"
    links = JobRetryHistory.objects.filter(task_id=made, relation_type="retry")
    assert list(links.values_list("old_job_id", "new_job_id")) == [(first.id, second.id)]


def test_when_merging_fails_for_good_the_inputs_are_processed_again() -> None:
    made = merging_task(files=2)
    settle()
    pilot = Pilot()
    producers = first_jobs(pilot)
    for _ in range(3):
        settle()
        pilot.end(*pilot.fetch(), "failed")
    adder.run()
    assert {f.status for f in files(made, "trn_output")} == {"notmerged"}
    adder.run()
    assert states(made) == {"cancelled": 2, "failed": 3}
    assert "was not merged" in (jobs(made, status="cancelled")[0].task_buffer_error_diag or "")
    row = dataset(made)
    assert (row.files_used, row.files_on_hold, row.files_failed) == (0, 0, 0)
    assert [(f.status, f.attempt, f.failed_attempt) for f in files(made)] == [("ready", 1, 0)] * 2
    drive(pilot)
    assert status(made) == "done"
    again = [job for job in pilot.ran if not is_merge(job) and job["PandaID"] not in {p["PandaID"] for p in producers}]
    assert sorted(name for job in again for name in inputs_of(job)) == ["lab.m.in.00000", "lab.m.in.00001"]
    assert len(CatalogueDataset.objects.get(name="lab.m.out").files.all()) == 1


def test_files_that_can_never_be_merged_fail_the_task() -> None:
    made = merging_task(files=2, maxAttempt=2)
    drive(Pilot(plan=lambda job: "failed" if is_merge(job) else "finished"))
    assert status(made) == "failed"
    assert dataset(made).files_failed == 2
    assert states(made) == {"cancelled": 4, "failed": 6}
    assert "attempts failed, all of them to merge outputs: " in (task(made).error_dialog or "")


def test_jobs_that_fail_first_are_tried_again_and_all_are_merged() -> None:
    made = merging_task(files=4)
    failing = failing_on("lab.m.in.00002")
    pilot = Pilot(plan=lambda job: failing(job) if job["attemptNr"] == 1 else "finished")
    drive(pilot)
    assert status(made) == "done"
    merged = sorted(name for job in merge_jobs(made) for name in inputs(job.id) if name.endswith(".root"))
    assert len(merged) == 4, "what the failed job left is not merged"


def test_a_kill_ends_jobs_that_wait_for_their_merge() -> None:
    made = merging_task(files=3, nFilesPerMergeJob=3)
    settle()
    pilot = Pilot()
    first_jobs(pilot)
    adder.run()
    assert states(made) == {"merging": 3}
    kill(made)
    settle()
    assert (status(made), states(made)) == ("aborted", {"cancelled": 3})
    assert dataset(made).files_on_hold == 0
    assert not CatalogueFile.objects.filter(dataset__name="lab.m.out").exists()


def test_a_kill_waits_for_the_merge_job_at_a_pilot() -> None:
    made = merging_task(files=3)
    settle()
    pilot = Pilot()
    first_jobs(pilot)
    settle()
    (merge,) = pilot.fetch()
    pilot.start(merge)
    kill(made)
    settle()
    assert (status(made), states(made)) == ("aborting", {"merging": 3, "running": 1})
    assert pilot.start(merge) == "tobekilled"
    pilot.end(merge, "failed")
    settle()
    assert (status(made), states(made)) == ("aborted", {"cancelled": 4})


def test_a_merge_job_that_ends_well_in_spite_of_the_kill_counts() -> None:
    made = merging_task(files=3)
    settle()
    pilot = Pilot()
    first_jobs(pilot)
    settle()
    (merge,) = pilot.fetch()
    pilot.start(merge)
    kill(made)
    pilot.end(merge)
    settle()
    assert (status(made), states(made)) == ("aborted", {"finished": 4})
    assert dataset(made).files_finished == 3


def test_a_queued_merge_job_is_killed_with_its_task() -> None:
    made = merging_task(files=3)
    settle()
    first_jobs(Pilot())
    settle()
    assert [job.status for job in merge_jobs(made)] == ["activated"]
    kill(made)
    settle()
    assert (status(made), states(made)) == ("aborted", {"cancelled": 4})


@pytest.mark.parametrize("soft", [True, False])
def test_a_task_that_is_to_finish_merges_what_it_has(soft: bool) -> None:
    made = merging_task(files=4)
    settle()
    pilot = Pilot()
    runs, *others = pilot.fetch(3)
    for job in (runs, *others):
        pilot.start(job)
    for job in others:
        pilot.end(job)
    adder.run()
    command_queue.give_command(made, "finish", by="ada", parameters={"soft": soft})
    commando.run()
    assert pilot.start(runs) == ("NULL" if soft else "tobekilled")
    pilot.end(runs, "finished" if soft else "failed")
    drive(pilot)
    assert status(made) == "finished"
    row = dataset(made)
    assert (row.files_finished, row.files_failed, row.files_on_hold) == ((3, 1, 0) if soft else (2, 2, 0))
    assert len(files(made, "output")) == 1


def test_what_was_not_merged_is_merged_by_a_retry() -> None:
    made = merging_task(files=4, maxAttempt=1, nFilesPerMergeJob=4)
    drive(Pilot(plan=failing_on("lab.m.in.00001")))
    assert status(made) == "finished"
    command_queue.give_command(made, "retry", by="ada")
    drive(Pilot())
    assert status(made) == "done"
    assert [len(inputs(job.id)) for job in merge_jobs(made)] == [6, 2]
    assert CatalogueDataset.objects.get(name="lab.m.out").files.count() == 2


def test_an_aborted_task_can_be_tried_again() -> None:
    made = merging_task(files=2)
    settle()
    first_jobs(Pilot())
    settle()
    kill(made)
    settle()
    assert status(made) == "aborted"
    command_queue.give_command(made, "retry", by="ada")
    drive(Pilot())
    assert status(made) == "done"
    assert CatalogueDataset.objects.get(name="lab.m.out").files.count() == 1


def test_a_merge_job_can_write_the_logs_of_others_and_has_a_log_of_its_own() -> None:
    spec = {"jobParameters": "${TRN_OUTPUT:OUTPUT} ${TRN_LOG:LOG}"}
    made = merging_task(files=2, mergeSpec=spec)
    settle()
    pilot = Pilot()
    first_jobs(pilot)
    settle()
    (job,) = pilot.fetch()
    assert job["jobPars"] == (
        "panda.um.lab.m.000001.root,panda.um.lab.m.000002.root:lab.m.000001.root"
        " panda.um.lab.m.000001.log.tgz,panda.um.lab.m.000002.log.tgz:lab.m.000001.log.tgz"
    )
    assert job["transformation"] == "merge_command"
    assert job["logFile"] == "lab.m.000001.merge.log.tgz"
    assert job["outFiles"] == "lab.m.000001.root,lab.m.000001.log.tgz,lab.m.000001.merge.log.tgz"
    pilot.end(job)
    settle()
    assert status(made) == "done"
    names = CatalogueDataset.objects.get(name="lab.m.log").files.order_by("lfn").values_list("lfn", flat=True)
    assert list(names) == ["lab.m.000001.log.tgz", "lab.m.000001.merge.log.tgz"]


def test_logs_of_merge_jobs_go_where_the_task_says() -> None:
    made = merging_task(files=2, log_merge=template("log", "lab.m.merge.${SN}.tgz", "lab.m.mlog"))
    drive(Pilot())
    assert status(made) == "done"
    (job,) = merge_jobs(made)
    written = JobFile.objects.filter(job_id=job.id, type__in=("output", "log")).order_by("lfn")
    assert [(f.lfn, f.type) for f in written] == [("lab.m.000001.root", "output"), ("lab.m.merge.000001.tgz", "log")]


def test_outputs_of_different_kinds_are_not_mixed() -> None:
    add_dataset("lab.m.in", 3)
    items = [template("output", f"lab.m.{kind}.${{SN}}", "lab.m.all") for kind in ("a", "b")]
    spec = {"jobParameters": "${TRN_OUTPUT:OUTPUT}"}
    given = parameters("lab.m", reads("lab.m.in"), *items, nFilesPerJob=1, mergeOutput=True, mergeSpec=spec)
    given["jobParameters"].pop()
    made = submit(given)
    drive(Pilot())
    assert status(made) == "done"
    (job,) = merge_jobs(made)
    text = JobParams.objects.get(pk=job.id).params
    groups = {group.rpartition(":")[2]: group.rpartition(":")[0].split(",") for group in text.split()}
    assert {out: {name.split(".")[4] for name in names} for out, names in groups.items()} == {
        "lab.m.a.000001": {"a"},
        "lab.m.b.000001": {"b"},
    }


def test_unmerged_files_of_a_site_that_is_closed_wait_and_the_task_says_so() -> None:
    made = merging_task(files=2)
    settle()
    pilot = Pilot()
    first_jobs(pilot)
    adder.run()
    add_queue("SITE_B")
    queue = Queue.objects.get(name=SITE)
    queue.status = "offline"
    queue.save()
    agents_turn()
    assert not merge_jobs(made)
    assert "SITE_A" in (task(made).error_dialog or "") and "wait to be merged" in (task(made).error_dialog or "")
    queue.status = "online"
    queue.save()
    drive(pilot)
    assert (status(made), task(made).error_dialog) == ("done", None)


def test_unmerged_files_of_a_queue_that_stays_closed_are_merged_elsewhere_in_the_end() -> None:
    made = merging_task(files=2)
    settle()
    first_jobs(Pilot())
    adder.run()
    add_queue("SITE_B")
    Queue.objects.filter(name=SITE).update(status="offline")
    begin = timezone.now()
    assert merger.run(now=begin).items == 0
    note = task(made).error_dialog or ""
    assert "SITE_A: the site's status is offline; if that lasts, other queues are asked from 20" in note
    assert merger.run(now=begin + timedelta(hours=23)).items == 0
    assert task(made).error_dialog == note, "the time does not move while it waits"
    assert dataset(made, "trn_log").frozen_time == begin
    assert merger.run(now=begin + timedelta(hours=25)).items == 1
    assert (task(made).error_dialog, dataset(made, "trn_log").frozen_time) == (None, begin)
    (job,) = merge_jobs(made)
    assert (job.site, len(inputs(job.id))) == ("SITE_B", 4)
    (producer, _) = jobs(made, status="merging")
    said = merging_facts.sentence_on(producer)
    assert said == f"Its output is merged at SITE_B, since SITE_A took no merge jobs, by job {job.id} (activated)"
    drive(Pilot(site="SITE_B"))
    assert status(made) == "done"


def test_the_wait_for_a_queue_counts_from_when_it_was_first_asked() -> None:
    made = merging_task(files=2)
    settle()
    first_jobs(Pilot())
    adder.run()
    add_queue("SITE_B")
    Queue.objects.filter(name=SITE).update(status="offline")
    late = timezone.now() + timedelta(hours=30)
    for hours, jobs_made in ((0, 0), (5, 0), (7, 1)):
        assert merger.run(now=late + timedelta(hours=hours)).items == jobs_made
    assert [job.site for job in merge_jobs(made)] == ["SITE_B"]


def test_unmerged_files_of_a_queue_that_is_gone_are_merged_elsewhere_at_once() -> None:
    made = merging_task(files=2)
    settle()
    first_jobs(Pilot())
    adder.run()
    Queue.objects.filter(name=SITE).delete()
    settle()
    assert not merge_jobs(made)
    said = "SITE_A: the queue no longer exists, and no other takes the merge jobs: "
    assert said in (task(made).error_dialog or "")
    add_queue("SITE_B")
    drive(Pilot(site="SITE_B"))
    assert (status(made), [job.site for job in merge_jobs(made)]) == ("done", ["SITE_B"])


def test_a_queue_that_reads_the_same_storage_merges_at_once_what_a_closed_one_has_written() -> None:
    disk = StorageEndpoint.objects.create(name="DISK", site_name=SITE)
    QueueEndpoint.objects.create(queue=Queue.objects.get(name=SITE), endpoint=disk, order_read=1, order_write=1)
    made = merging_task(files=2)
    settle()
    first_jobs(Pilot())
    adder.run()
    for name in ("SITE_B", "SITE_C"):
        add_queue(name)
    QueueEndpoint.objects.create(queue=Queue.objects.get(name="SITE_C"), endpoint=disk, order_read=1, order_write=1)
    Queue.objects.filter(name=SITE).update(status="offline")
    drive(Pilot(site="SITE_C"))
    assert (status(made), [job.site for job in merge_jobs(made)]) == ("done", ["SITE_C"])


@pytest.mark.parametrize("broker", ["production", "analysis"])
def test_merge_jobs_go_by_the_rules_of_the_broker_of_their_task(broker: str) -> None:
    """Nobody knows how long they run, so they need a queue where jobs may run for a day."""
    disk = StorageEndpoint.objects.create(name="DISK", site_name=SITE, space_free_gb=9000.0)
    Queue.objects.filter(name=SITE).update(type="unified", capability="")
    QueueEndpoint.objects.create(queue=Queue.objects.get(name=SITE), endpoint=disk, order_read=1, order_write=1)
    key = "JOB_BROKER_user"
    GdpConfig.objects.create(app="jedi", component="brokerage", key=key, value=broker, type="str", vo="lab")
    configured.forget()
    made = merging_task(files=2)
    settle()
    first_jobs(Pilot())
    adder.run()
    Queue.objects.filter(name=SITE).update(max_walltime_s=86_000)
    settle()
    assert not merge_jobs(made)
    assert "SITE_A: unmeasured jobs need 86400 s, the site allows 86000 s" in (task(made).error_dialog or "")
    Queue.objects.filter(name=SITE).update(max_walltime_s=86_400)
    drive(Pilot())
    assert status(made) == "done"


def test_a_lost_merge_job_is_made_again_and_its_late_report_changes_nothing() -> None:
    made = merging_task(files=2)
    settle()
    pilot = Pilot()
    first_jobs(pilot)
    settle()
    (lost,) = pilot.fetch()
    pilot.start(lost)
    lose(lost["PandaID"])
    settle()
    update_job(report_of(lost, "finished", outputs=stored(lost)))
    settle()
    assert [job.status for job in merge_jobs(made)] == ["failed", "activated"]
    drive(pilot)
    assert status(made) == "done"
    assert CatalogueDataset.objects.get(name="lab.m.out").files.count() == 1


def kill(task_id: int) -> None:
    command_queue.give_command(task_id, "kill", by="ada")
    commando.run()


def lose(job_id: int) -> None:
    age(job_id, timeout_limits.limit("job.heartbeat").total_seconds() + 1)
    lost_jobs.run()


def test_outputs_that_jobs_need_not_make_are_merged_as_far_as_they_are_there() -> None:
    add_dataset("lab.m.in", 3)
    hist = template("output", "hist.${SN}.root", "lab.m.hist", allowNoOutput=True)
    spec = {"jobParameters": "${TRN_OUTPUT:OUTPUT} ${TRN_LOG0/L}"}
    made = submit(
        parameters("lab.m", reads("lab.m.in"), hist, nFilesPerJob=1, mergeOutput=True, mergeSpec=spec, maxAttempt=1)
    )
    settle()
    pilot = Pilot()
    first, *others = pilot.fetch(3)
    assert first["allowNoOutput"] == "panda.um.hist.000001.root"
    pilot.end(first, "incomplete")
    adder.run()
    assert states(made) == {"merging": 1, "activated": 2} or states(made) == {"merging": 1, "sent": 2}
    for job in others:
        pilot.end(job)
    drive(pilot)
    assert (status(made), states(made)) == ("done", {"finished": 4})
    (merge,) = merge_jobs(made)
    read = inputs(merge.id)
    assert len([name for name in read if "hist" in name]) == 2 and len(read) == 8
    assert sorted(f.status for f in files(made, "trn_output") if "hist" in f.lfn) == [
        "finished",
        "finished",
        "nooutput",
    ]
    assert CatalogueDataset.objects.get(name="lab.m.hist").files.count() == 1


def test_a_merge_job_can_use_the_library_that_the_task_has_built() -> None:
    build = {"archiveName": "sources.tar.gz", "jobParameters": "-i ${IN} -o ${OUT}"}
    spec = {"jobParameters": "-l ${LIB} ${TRN_OUTPUT:OUTPUT}"}
    made = merging_task(files=2, buildSpec=build, mergeSpec=spec, sourceURL="https://cache.example:443")
    pilot = Pilot()
    drive(pilot)
    assert status(made) == "done"
    (merge,) = (job for job in pilot.ran if is_merge(job))
    (library,) = (name for name in inputs_of(merge) if name.endswith(".lib.tgz"))
    assert merge["jobPars"].startswith(f"-l {library} ")
