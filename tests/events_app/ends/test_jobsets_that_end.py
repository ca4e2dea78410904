"""Kills, failures of whole jobsets, and lines that end consumers which are not needed."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

import pytest
from django.db import transaction
from django.utils import timezone

from events_app.lifecycle.unneeded_consumers import end_unneeded
from events_app.models import Event
from events_app.rules.event_states import EventStatus
from jedisite.database.sql import hot_cursor
from tasks_app.dispatch.bulk_reports import update_jobs
from tasks_app.dispatch.reports import Proof, Report, update_job
from tasks_app.models import Job, JobFile, JobOutputReport, JobStatusLog
from tasks_app.outcomes.job_outcome import Outcome
from tests.events_app.jobsets import (
    Jobset,
    books_lines,
    check,
    end,
    ends,
    follower,
    merged,
    said_of,
    works,
)
from tests.events_app.ranges import FINISHED, JOBSET, TASK, rows

pytestmark = pytest.mark.django_db
S = EventStatus
Make = Callable[..., Jobset]


def states(jobset: Jobset) -> list[tuple[int, int, int, int, int]]:
    return [row[1:] for row in rows() if row[0] == jobset.file.id]


def test_the_kill_of_one_consumer_is_that_of_its_jobset(jobset_of: Make) -> None:
    jobset = jobset_of()
    second = jobset.another()
    works(second, 1, {1: FINISHED})
    works(jobset.first, 1, {})
    killed = {"component": "taskbuffer", "code": 100, "diag": "killed by ada"}
    assert ends(second, "cancelled", **killed) == ("cancelled", None, 100)
    assert states(jobset) == [
        (1, 10, S.DISCARDED, second, 3),
        (11, 20, S.CANCELLED, jobset.first, 3),
        (21, 25, S.CANCELLED, JOBSET, 3),
    ]
    assert jobset.owner() == jobset.first and jobset.file.status == "running", "until that has ended"
    books_lines()
    assert said_of(jobset.first) == ("cancelled", "es_killed", 120)
    jobset.file.refresh_from_db()
    assert (jobset.file.status, jobset.file.attempt, jobset.file.failed_attempt) == ("ready", 1, 0)
    check()


def test_a_worker_that_did_nothing_ends_its_consumer_and_not_the_jobset(jobset_of: Make) -> None:
    jobset = jobset_of()
    second = jobset.another()
    works(second, 1, {})
    empty = {"component": "taskbuffer", "code": 160, "diag": "the worker ended without doing any work"}
    assert ends(jobset.first, "closed", **empty) == ("closed", "es_noevent", 160)
    assert jobset.owner() == follower(jobset.first), "another one goes on in its place"
    assert Job.objects.get(pk=second).status == "running" and not JobOutputReport.objects.exists()
    assert states(jobset) == [(1, 10, S.SENT, second, 3), (11, 25, S.READY, JOBSET, 3)]
    check()


def test_a_lost_heartbeat_ends_one_consumer_while_the_other_processes_the_rest(jobset_of: Make) -> None:
    jobset = jobset_of(20)
    second = jobset.another()
    works(jobset.first, 1, {1: FINISHED})
    works(second, 1, {})
    lost = {"component": "jobdispatcher", "code": 100, "diag": "no heartbeat for 2 hours"}
    assert ends(jobset.first, "failed", **lost)[:2] == ("merging", "es_wait")
    assert jobset.owner() == second and not JobOutputReport.objects.exists()
    assert not Job.objects.exclude(pk__in=[jobset.first, second]).exists(), "nothing is left for a third one"
    check()


def test_a_lost_heartbeat_of_a_consumer_that_has_nothing_leaves_the_other_at_work(jobset_of: Make) -> None:
    jobset = jobset_of(10)
    second = jobset.another()
    works(second, 1, {})
    lost = {"component": "jobdispatcher", "code": 100, "diag": "no heartbeat for 2 hours"}
    assert ends(jobset.first, "failed", **lost)[:2] == ("failed", "es_heartbeat")
    assert jobset.owner() == second and Job.objects.get(pk=second).status == "running"
    check()


@pytest.mark.parametrize(("kind", "counted"), [(1, 10), (3, 99), (6, 10), (None, 99)])
@pytest.mark.parametrize("in_bulk", [False, True])
def test_what_a_heartbeat_says_of_events_does_not_count_for_those_who_report_ranges(
    jobset_of: Make, kind: int | None, counted: int, in_bulk: bool
) -> None:
    jobset = jobset_of(event_service=kind)
    Job.objects.update(events=10, secret_hash=sha256(b"s").digest())
    said = Report(jobset.first, "running", Proof(1, "s"), {"events": 99, "cores": 3})
    if in_bulk:
        update_jobs([said])
    else:
        update_job(said)
    job = Job.objects.get(pk=jobset.first)
    assert (job.events, job.actual_cores) == (counted, 3)


def test_a_kill_keeps_what_was_processed_where_the_task_says_so(jobset_of: Make) -> None:
    jobset = jobset_of(rules="ND=1")
    works(jobset.first, 2, {1: FINISHED})
    ends(jobset.first, "cancelled", component="taskbuffer", code=100)
    assert states(jobset)[0] == (1, 10, S.DONE, jobset.first, 3)
    assert {row[2] for row in states(jobset)[1:]} == {S.CANCELLED}


def test_all_consumers_of_a_task_that_are_killed_at_once_end_without_a_line(jobset_of: Make) -> None:
    jobset = jobset_of()
    second = jobset.another()
    works(second, 3, dict.fromkeys((1, 11), FINISHED))
    task = jobset.task.id
    assert end(*[Outcome(job, task, "cancelled", "taskbuffer", 150) for job in (jobset.first, second)]) == 2
    assert not JobOutputReport.objects.exists()
    jobset.file.refresh_from_db()
    assert jobset.file.status == "ready"
    check()


def test_a_queued_consumer_that_is_to_be_made_anew_leaves_its_part_to_others(jobset_of: Make) -> None:
    jobset = jobset_of(status="activated", fence=0, heartbeat_at=None)
    second = jobset.another()
    works(second, 1, {})
    assert ends(jobset.first, "closed", component="taskbuffer", code=151, sub_status="toreassign")[:2] == (
        "closed",
        "toreassign",
    )
    assert jobset.owner() == second
    assert not JobOutputReport.objects.exists()
    check()
    Job.objects.filter(pk=second).update(status="activated", fence=0, heartbeat_at=None, start_time=None)
    assert ends(second, "closed", component="taskbuffer", code=151, spares_attempt=True)[0] == "closed"
    jobset.file.refresh_from_db()
    assert (jobset.file.status, jobset.file.max_attempt) == ("ready", 4), "nobody is left"


def test_a_jobset_that_fails_takes_the_jobs_along_that_wait_for_its_merge(jobset_of: Make) -> None:
    jobset = jobset_of()
    second, idle = jobset.another(), jobset.another()
    works(jobset.first, 1, {1: FINISHED})
    works(second, 2, {})
    assert ends(jobset.first) == ("merging", "es_wait", 115)
    Event.objects.filter(job_id=second).update(attempt=1)
    assert ends(second)[1:] == ("es_inaction", 117)
    assert jobset.owner() == idle
    assert ends(idle) == ("failed", None, 118)
    books_lines()
    assert said_of(jobset.first) == ("failed", "es_ass_failed", 121)
    assert {row[2] for row in states(jobset)} == {S.DISCARDED, S.CANCELLED}
    check()


def test_a_consumer_that_ends_after_its_jobset_changes_nothing(jobset_of: Make) -> None:
    jobset = jobset_of()
    late = jobset.another()
    works(jobset.first, 3, dict.fromkeys((1, 11, 21), FINISHED))
    ends(jobset.first)
    JobOutputReport.objects.all().delete()
    merge = follower(jobset.first)
    assert ends(late) == ("closed", "es_inaction", 117)
    assert jobset.owner() == merge and states(jobset) == [(1, 25, S.DONE, jobset.first, 3)]
    merged(merge)
    later = jobset.another()
    assert ends(later, "failed") == ("closed", "es_inaction", 117)
    assert states(jobset) == [(1, 25, S.MERGED, jobset.first, 3)]


def test_a_consumer_that_no_pilot_has_fetched_leaves_the_file_to_those_that_have_the_ranges(jobset_of: Make) -> None:
    jobset = jobset_of(status="activated", fence=0, heartbeat_at=None, start_time=None)
    second = jobset.another()
    works(second, 3, {})
    with transaction.atomic(), hot_cursor() as cursor:
        assert end_unneeded(cursor, TASK, JOBSET, second) == 1
    books_lines()
    assert said_of(jobset.first) == ("closed", "es_unused", 116)
    assert jobset.owner() == second
    assert "no range of its jobset was left" in Job.objects.get(pk=jobset.first).task_buffer_error_diag
    check()


@pytest.mark.parametrize("processed", [True, False])
def test_what_a_consumer_has_that_is_not_needed_goes_on_with_the_others(jobset_of: Make, processed: bool) -> None:
    jobset = jobset_of(status="activated", fence=0, heartbeat_at=None, start_time=None)
    second = jobset.another()
    works(second, 3, dict.fromkeys((1, 11, 21), FINISHED) if processed else {})
    with transaction.atomic(), hot_cursor() as cursor:
        end_unneeded(cursor, TASK, JOBSET, second)
    assert ends(second)[1] == ("es_merge" if processed else "es_noevent")
    assert jobset.owner() == follower(second)
    books_lines()
    assert said_of(jobset.first)[:2] == ("closed", "es_unused")
    assert jobset.owner() == follower(second)
    check()


def test_a_consumer_that_a_pilot_has_fetched_meanwhile_goes_on(jobset_of: Make) -> None:
    jobset = jobset_of(status="activated", fence=0, heartbeat_at=None, start_time=None)
    second = jobset.another()
    works(second, 3, {})
    with transaction.atomic(), hot_cursor() as cursor:
        end_unneeded(cursor, TASK, JOBSET, second)
    Job.objects.filter(pk=jobset.first).update(status="sent", fence=1, heartbeat_at=timezone.now())
    books_lines()
    assert said_of(jobset.first)[0] == "sent" and jobset.owner() == jobset.first


def test_a_pilot_that_ends_while_a_line_ends_its_job_is_answered(jobset_of: Make) -> None:
    jobset = jobset_of()
    second = jobset.another()
    works(second, 3, dict.fromkeys((1, 11, 21), FINISHED))
    ends(second)
    proof = Proof(1, "x")
    Job.objects.filter(pk=jobset.first).update(secret_hash=sha256(b"x").digest())
    assert update_job(Report(jobset.first, "finished", proof)) == "NULL"
    assert Job.objects.get(pk=jobset.first).status == "holding"
    books_lines()
    assert said_of(jobset.first) == ("closed", "es_inaction", 117), "by its own report"


def test_a_pilot_that_has_fetched_an_unneeded_consumer_and_found_nothing_ends_it(jobset_of: Make) -> None:
    jobset = jobset_of(status="activated", fence=0, heartbeat_at=None, start_time=None)
    second = jobset.another()
    works(second, 3, {})
    with transaction.atomic(), hot_cursor() as cursor:
        end_unneeded(cursor, TASK, JOBSET, second)
    fetched = {"status": "running", "fence": 1, "heartbeat_at": timezone.now(), "secret_hash": sha256(b"x").digest()}
    Job.objects.filter(pk=jobset.first).update(**fetched)
    JobStatusLog.objects.bulk_create(
        JobStatusLog(job_id=jobset.first, status=one, by="x") for one in ("sent", "running")
    )
    assert update_job(Report(jobset.first, "finished", Proof(1, "x"))) == "NULL"
    books_lines()
    assert said_of(jobset.first) == ("closed", "es_inaction", 117)
    assert jobset.owner() == second and not JobOutputReport.objects.exists()
    check()


def test_a_pilot_need_not_report_the_outputs_and_the_log_of_a_consumer(jobset_of: Make) -> None:
    jobset = jobset_of()
    works(jobset.first, 3, dict.fromkeys((1, 11, 21), FINISHED))
    Job.objects.filter(pk=jobset.first).update(secret_hash=sha256(b"x").digest())
    assert update_job(Report(jobset.first, "finished", Proof(1, "x"))) == "NULL"
    books_lines()
    assert said_of(jobset.first) == ("merging", "es_merge", 112)
    assert JobFile.objects.get(job_id=jobset.first, type="log").status == "nooutput"
    check()
