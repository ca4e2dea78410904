"""Each time-out of jobs on a real job: nothing happens just before its limit, and the right thing just after."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from brokerage_app.models import PilotCalls, Queue, QueueActivity
from tasks_app.agents.watchdogs import job_timeouts, lost_jobs
from tasks_app.configured import timeout_limits, timeout_table
from tasks_app.domain.job_timeouts import TIMEOUTS, Do, TimeoutRule
from tasks_app.domain.killcodes import KILL_CODES, error_code
from tasks_app.models import File, Job, JobOutputReport, JobRetryHistory, Task, TaskParams
from tasks_app.upkeep.expiring import SUB_STATUSES
from tests.flow.driving import add_dataset, files, jobs, parameters, reads, settle, states, status, submit
from tests.flow.pilot import Pilot, always, drive

pytestmark = pytest.mark.usefixtures("books")
SECOND = timedelta(seconds=1)
FRESH = {"heartbeat_at": timezone.now() + timedelta(days=3650)}
"""The pilot goes on to give signs of life."""

CASES: dict[str, dict[str, Any]] = {
    "orphan_merge": {"jobstatus": "activated", "processingtype": "pmerge"},
    "pending": {"jobstatus": "pending"},
    "waiting": {"jobstatus": "waiting"},
    "build_defined": {"jobstatus": "defined", "prodsourcelabel": "panda"},
    "defined": {"jobstatus": "defined"},
    "assigned": {"jobstatus": "assigned"},
    "urgent_inactive": {"jobstatus": "activated", "currentpriority": 800},
    "light_inactive": {"jobstatus": "activated", "processingtype": "simul"},
    "analysis_closed": {"jobstatus": "activated", "prodsourcelabel": "user"},
    "analysis": {"jobstatus": "activated", "prodsourcelabel": "user"},
    "silent_queue": {"jobstatus": "activated", "prodsourcelabel": "install"},
    "no_channel": {"jobstatus": "activated", "eventservice": 1},
    "activated": {"jobstatus": "activated"},
    "throttled": {"jobstatus": "throttled"},
    "sent": {"jobstatus": "sent"},
    "events": {"jobstatus": "running", "eventservice": 2, "currentpriority": 900, **FRESH},
    "running": {"jobstatus": "running", **FRESH},
    "heartbeat": {"jobstatus": "running"},
    "holding_analysis": {"jobstatus": "holding", "prodsourcelabel": "user"},
    "holding_urgent": {"jobstatus": "holding", "currentpriority": 800},
    "holding": {"jobstatus": "holding", "currentpriority": 799},
    "own_transfer": {"jobstatus": "transferring", "jobsubstatus": "stage_out"},
    "transferring_urgent": {"jobstatus": "transferring", "currentpriority": 800},
    "transferring": {"jobstatus": "transferring", "currentpriority": 799},
    "transfer_check": {"jobstatus": "transferring", "prodsourcelabel": "user"},
    "before_activation": {"jobstatus": "assigned", "prodsourcelabel": "install"},
    "activated_others": {"jobstatus": "activated", "prodsourcelabel": "install"},
    "active_analysis": {"jobstatus": "running", "prodsourcelabel": "user", **FRESH},
}
QUEUED = ("pending", "waiting", "defined", "assigned", "activated", "throttled")


def test_every_rule_has_a_case_and_a_row() -> None:
    assert list(CASES) == [rule.name for rule in TIMEOUTS]
    rows = {name for name in timeout_table.TABLE if name.startswith("job.")}
    assert rows == {f"job.{rule.name}" for rule in TIMEOUTS} | {"job.waiting_for_lib"}


def one_job(name: str = "lab.t", **more: Any) -> tuple[int, int]:
    """(task, job) with a job that waits to be fetched."""
    add_dataset(f"{name}.in", 1)
    made = submit(parameters(name, reads(f"{name}.in"), **{"nFilesPerJob": 1, "maxAttempt": 5, **more}))
    settle()
    (job,) = jobs(made)
    return made, job.id


def put(job_id: int, since: datetime, **columns: Any) -> None:
    """Bring a job into a state as it would be, had it been made, changed and heard of at one moment."""
    values = {
        "creationtime": since,
        "statechangetime": since,
        "heartbeat_at": since,
        "prodsourcelabel": "managed",
        "currentpriority": 500,
        **columns,
    }
    if columns.get("jobstatus", "activated") in QUEUED:
        values["heartbeat_at"] = None
    names = ", ".join(f"{name} = %({name})s" for name in values)
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE jobs SET {names} WHERE pandaid = %(id)s", {**values, "id": job_id})  # noqa: S608
        # The state that it has now is where its log begins.
        cursor.execute(
            """DELETE FROM jobs_statuslog l USING jobs j
                WHERE j.pandaid = %s AND l.pandaid = j.pandaid AND l.jobstatus <> j.jobstatus""",
            [job_id],
        )
        cursor.execute(
            """INSERT INTO jobs_statuslog (pandaid, jobstatus, modificationtime, actor)
               SELECT pandaid, jobstatus, clock_timestamp(), 'test' FROM jobs j WHERE pandaid = %s AND NOT EXISTS (
                   SELECT 1 FROM jobs_statuslog l WHERE l.pandaid = j.pandaid AND l.jobstatus = j.jobstatus)""",
            [job_id],
        )


def both_dogs(now: datetime) -> int:
    return lost_jobs.run(now=now).items + job_timeouts.run(now=now).items


@pytest.mark.parametrize("rule", TIMEOUTS, ids=lambda rule: rule.name)
def test_nothing_happens_before_the_limit_and_the_right_thing_after(rule: TimeoutRule) -> None:
    made, job_id = one_job()
    case = CASES[rule.name]
    pilot = Pilot()
    if case["jobstatus"] not in QUEUED:
        (fetched,) = pilot.fetch()
    since = timezone.now()
    put(job_id, since, **case)
    if rule.name in ("urgent_inactive", "light_inactive", "analysis_closed"):
        Queue.objects.update(status="offline")
    limit = timeout_limits.limit(f"job.{rule.name}")
    if rule.name == "no_channel":
        Queue.objects.update(data={"no_channel": "walls"})
    if rule.name == "silent_queue":
        fall_silent(job_id, since, since + limit)
    assert both_dogs(since + limit - SECOND) == 0
    assert Job.objects.get(pk=job_id).status == case["jobstatus"]
    assert both_dogs(since + limit) == 1
    job = Job.objects.get(pk=job_id)
    if rule.do == Do.RECHECK:
        assert (job.status, job.heartbeat_at) == ("transferring", since + limit)
        put(job_id, since, jobstatus="sent")
        drive(pilot)
        pilot.end(fetched)
        drive(pilot)
        return
    Queue.objects.filter(name="ELSEWHERE").delete()
    Queue.objects.update(status="online")
    if rule.kill is not None and job.status == "running":
        assert (job.command_to_pilot, job.task_buffer_error_code) == ("tobekilled", error_code(rule.kill))
        assert both_dogs(since + limit + SECOND) == 0, "it is told once"
        pilot.end(fetched, "failed")
        settle()
        job.refresh_from_db()
    (file,) = files(made)
    if rule.kill is not None:
        row = KILL_CODES[rule.kill]
        assert (job.status, job.sub_status) == (row.status, SUB_STATUSES.get(rule.name, row.sub_status))
        assert job.task_buffer_error_code == error_code(rule.kill)
        assert job.task_buffer_error_diag
        assert (file.attempt, file.failed_attempt) == (1, 0)
    else:
        assert (job.status, job.dispatcher_error_code) == ("failed", 100)
        assert job.dispatcher_error_diag
        assert (file.attempt, file.failed_attempt) == (1, 1)
    settle()
    assert JobRetryHistory.objects.filter(old_job_id=job_id, relation_type="retry").count() == 1
    drive(Pilot())
    assert status(made) == "done"


def fall_silent(job_id: int, since: datetime, others_called: datetime) -> None:
    """No pilot asks at the job's queue; those of another one do."""
    queue = Job.objects.get(pk=job_id).site
    QueueActivity.objects.update_or_create(site=queue, defaults={"silent_since": since})
    Queue.objects.create(name="ELSEWHERE", site_name="ELSEWHERE")
    PilotCalls.objects.create(site="ELSEWHERE", hour=since - timedelta(hours=1), get_job=1, last_get_job=others_called)


@pytest.mark.parametrize(
    ("among", "site"),
    [
        ({}, ""),
        ({}, "SITE_A,ELSEWHERE"),
        ({"includedSite": []}, ""),
        ({"includedSite": ["SITE_A", "ELSEWHERE"]}, ""),
        ({"includedSite": "SITE_A,AUTO"}, ""),
        ({"includedSite": ["*"]}, ""),
    ],
)
def test_jobs_stay_at_a_silent_queue_where_nothing_else_can_have_them(among: dict[str, Any], site: str) -> None:
    made, job_id = one_job()
    since = timezone.now()
    later = since + timedelta(minutes=11)
    put(job_id, since)
    fall_silent(job_id, since, later)
    here = Job.objects.get(pk=job_id).site
    Task.objects.update(site="SOMEWHERE")
    assert both_dogs(later) == 0, "its task names one site"
    Task.objects.update(site="")
    said = TaskParams.objects.get(task_id=made)
    for named in ([here], here, f" {here},"):
        TaskParams.objects.filter(task_id=made).update(params={**said.params, "includedSite": named})
        assert both_dogs(later) == 0, f"includedSite is {named}"
    TaskParams.objects.filter(task_id=made).update(params={**said.params, **among})
    Task.objects.update(site=site)
    PilotCalls.objects.filter(site="ELSEWHERE").update(last_get_job=since)
    assert both_dogs(later) == 0, "no pilot asks anywhere"
    PilotCalls.objects.filter(site="ELSEWHERE").update(last_get_job=later)
    assert both_dogs(later) == 1
    Queue.objects.filter(name="ELSEWHERE").update(status="offline")
    settle()
    Queue.objects.update(status="online")
    (again,) = Job.objects.filter(status="activated")
    assert again.site == Job.objects.get(pk=job_id).site, "no other queue took it"
    put(again.id, since, creationtime=again.creation_time)
    assert both_dogs(later) == 0, "it came back"


def test_jobs_stay_at_a_queue_whose_pilots_have_just_come_back() -> None:
    _, job_id = one_job()
    since = timezone.now()
    later = since + timedelta(minutes=11)
    put(job_id, since)
    fall_silent(job_id, since, since)
    site = Job.objects.get(pk=job_id).site
    back = PilotCalls.objects.create(site=site, hour=since - timedelta(hours=1), get_job=1, last_get_job=later)
    assert both_dogs(later) == 0, "its own pilots ask, and no others do"
    PilotCalls.objects.filter(site="ELSEWHERE").update(last_get_job=later)
    assert both_dogs(later) == 0, "its own pilots ask, as others do"
    back.last_get_job = since
    back.save()
    assert both_dogs(later) == 1


@pytest.mark.parametrize("once", [{"maxAttempt": 1}, {"maxAttempt": 1, "maxFailure": 1}, {"disableAutoRetry": True}])
def test_a_job_that_no_pilot_has_had_leaves_its_files_their_only_attempt(once: dict[str, Any]) -> None:
    made, job_id = one_job(**once)
    since = timezone.now()
    later = since + timedelta(minutes=10)
    put(job_id, since)
    fall_silent(job_id, since, later)
    assert both_dogs(later) == 1
    (file,) = files(made)
    assert (file.status, file.attempt, file.max_attempt, file.failed_attempt) == ("ready", 1, 2, 0)
    Queue.objects.filter(name="ELSEWHERE").delete()
    drive(Pilot(always("failed")))
    (file,) = files(made)
    assert (file.attempt, file.max_attempt, file.failed_attempt) == (2, 2, 1), "the attempt of a pilot counts"
    assert (status(made), states(made)) == ("failed", {"closed": 1, "failed": 1})


@pytest.mark.parametrize(("attempts", "left"), [(8, 1), (9, 0)])
def test_a_file_does_not_go_from_queue_to_queue_without_an_end(attempts: int, left: int) -> None:
    made, job_id = one_job()
    File.objects.filter(task_id=made, type="input").update(attempt=attempts, max_attempt=attempts + 1)
    since = timezone.now()
    put(job_id, since)
    assert both_dogs(since + timedelta(days=2)) == 1
    (file,) = files(made)
    assert file.max_attempt - file.attempt == left


def test_a_job_that_a_pilot_has_had_uses_up_an_attempt_when_it_is_taken_back() -> None:
    made, job_id = one_job()
    pilot = Pilot()
    (fetched,) = pilot.fetch()
    since = timezone.now()
    put(job_id, since, jobstatus="starting", **FRESH)
    assert both_dogs(since + timedelta(days=2)) == 1
    pilot.end(fetched, "failed")
    settle()
    (file,) = files(made)
    assert (Job.objects.get(pk=job_id).sub_status, file.attempt, file.max_attempt) == ("toreassign", 1, 5)


def test_all_jobs_of_a_task_leave_a_silent_queue_that_were_there_before_the_first_was_taken_back() -> None:
    add_dataset("lab.in", 3)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, maxAttempt=5))
    settle()
    since, step = timezone.now(), timedelta(minutes=1)
    first, second, third = (job.id for job in jobs(made))
    for job_id, waits in ((first, 0), (second, 1), (third, 2)):
        put(job_id, since + waits * step, creationtime=since)
    later = since + timedelta(minutes=10)
    fall_silent(first, since, later + 2 * step)
    assert [both_dogs(later + at * step) for at in range(3)] == [1, 1, 1]
    assert states(made) == {"closed": 3}
    Queue.objects.filter(name="ELSEWHERE").delete()
    drive(Pilot())
    assert status(made) == "done"


@pytest.mark.parametrize("how", [{"status": "paused"}, {"catchall": "x=1,disableReassign"}])
def test_queues_that_are_paused_or_forbid_it_keep_their_jobs(how: dict[str, str]) -> None:
    made, job_id = one_job()
    since = timezone.now()
    put(job_id, since)
    Queue.objects.update(**how)
    assert both_dogs(since + timedelta(days=30)) == 0
    Queue.objects.update(status="online", catchall="")
    assert both_dogs(since + timedelta(days=30)) == 1
    assert states(made) == {"closed": 1}


def test_a_task_that_forbids_it_keeps_its_jobs_where_they_are() -> None:
    made, job_id = one_job(disableReassign=True)
    since = timezone.now()
    put(job_id, since)
    assert both_dogs(since + timedelta(days=3)) == 0
    assert states(made) == {"activated": 1}


def test_analysis_stays_where_its_task_gets_something_done() -> None:
    made, job_id = one_job()
    other, other_id = one_job("lab.other")
    pilot = Pilot()
    # The second task's job runs at the queue; another of the first's would have to.
    since = timezone.now()
    put(job_id, since, prodsourcelabel="user")
    put(other_id, since, jobstatus="activated")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs SET jeditaskid = %s WHERE pandaid = %s", [made, other_id])
    (fetched,) = (job for job in pilot.fetch(2) if job["PandaID"] == other_id)
    later = since + timedelta(hours=12)
    put(job_id, since, jobstatus="activated", prodsourcelabel="user")
    put(other_id, since, jobstatus="running", starttime=later - timedelta(hours=2.9), **FRESH)
    assert both_dogs(later) == 0
    assert both_dogs(later + timedelta(hours=1)) == 1
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs SET jeditaskid = %s WHERE pandaid = %s", [other, other_id])
    pilot.end(fetched, "finished")
    drive(Pilot())
    assert (status(made), status(other)) == ("done", "done")


def test_an_urgent_job_leaves_a_queue_that_starts_none_and_not_one_that_does() -> None:
    made, job_id = one_job()
    other, other_id = one_job("lab.other")
    pilot = Pilot()
    (job,) = [j for j in pilot.fetch(1)]
    since = timezone.now()
    waits, runs = (job_id, other_id) if job["PandaID"] == other_id else (other_id, job_id)
    put(waits, since, jobstatus="activated", currentpriority=900)
    later = since + timedelta(hours=5)
    put(runs, since, jobstatus="running", starttime=later - timedelta(hours=1.9), **FRESH)
    assert both_dogs(later) == 0
    assert both_dogs(later + timedelta(minutes=6)) == 1
    assert Job.objects.get(pk=waits).sub_status == "toreassign"
    pilot.end(job, "finished")
    drive(Pilot())
    assert (status(made), status(other)) == ("done", "done")


def test_a_job_whose_report_cannot_be_booked_fails_and_its_report_is_gone() -> None:
    made, job_id = one_job()
    pilot = Pilot()
    (job,) = pilot.fetch()
    pilot.end(job, "finished")
    since = timezone.now()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs SET statechangetime = %s, prodsourcelabel = 'managed' WHERE pandaid = %s", [since, job_id]
        )
    assert both_dogs(since + timedelta(hours=47)) == 0
    assert both_dogs(since + timedelta(hours=48)) == 1
    assert not JobOutputReport.objects.exists()
    drive(Pilot())
    assert status(made) == "done"
    assert states(made) == {"failed": 1, "finished": 1}


def test_many_jobs_are_ended_in_bunches_and_the_pass_says_when_more_wait() -> None:
    add_dataset("lab.in", 30)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, maxAttempt=5))
    settle()
    since = timezone.now()
    for job in jobs(made):
        put(job.id, since)
    assert job_timeouts.run(now=since + timedelta(days=2)).items == 30
    assert states(made) == {"closed": 30}
    drive(Pilot())
    assert status(made) == "done"
