"""Ends of consumers as they are booked: the worked cases of the documents, on the rows of jobs, files and ranges."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from brokerage_app.models import Queue
from events_app.models import Event
from events_app.rules.event_states import EventStatus
from events_app.rules.reported_items import RangeReport
from tasks_app.agents.watchdogs import job_timeouts
from tasks_app.domain.fingerprints import fingerprint_of
from tasks_app.domain.job_errors import errors_in
from tasks_app.explaining import merging_facts
from tasks_app.models import Job, JobFile, JobOutputReport, JobParams, JobStatusLog
from tests.events_app.jobsets import (
    Jobset,
    books_lines,
    check,
    ends,
    follower,
    merged,
    said_of,
    works,
)
from tests.events_app.ranges import FINISHED, JOBSET, rows, say

pytestmark = pytest.mark.django_db
FAILED = RangeReport(EventStatus.FAILED)
FATAL = RangeReport(EventStatus.FAILED, attempts=1)
S = EventStatus
Make = Callable[..., Jobset]


def states(jobset: Jobset) -> list[tuple[int, int, int, int, int]]:
    return [row[1:] for row in rows() if row[0] == jobset.file.id]


def test_one_consumer_does_all_and_its_output_is_merged(jobset_of: Make) -> None:
    jobset = jobset_of()
    job = jobset.first
    assert works(job, 10, dict.fromkeys((1, 11, 21), FINISHED)) == [1, 11, 21]
    assert ends(job) == ("merging", "es_merge", 112)
    merge = follower(job)
    assert jobset.owner() == merge
    assert states(jobset) == [(1, 25, S.DONE, job, 3)]
    row = Job.objects.get(pk=merge)
    assert (row.status, row.event_service, row.attempt, row.max_attempt, row.current_priority) == (
        "activated",
        2,
        2,
        2,
        5000,
    )
    assert (row.core_count, row.min_ram_mb, row.special_handling) == (None, 2000, "esmerge")
    assert (row.transformation, JobParams.objects.get(pk=merge).params) == (
        "http://site/trf/user/merge_events",
        "out.000001.root",
    )
    check()
    assert merged(merge)[0] == "finished"
    assert states(jobset) == [(1, 25, S.MERGED, job, 3)]
    jobset.file.refresh_from_db()
    assert (jobset.file.status, jobset.file.attempt) == ("finished", 1)
    assert said_of(job)[0] == "merging", "another batch ends it"
    books_lines()
    assert said_of(job) == ("finished", "es_merge", 112)
    jobset.inputs.refresh_from_db()
    jobset.logs.refresh_from_db()
    assert (jobset.inputs.files_finished, jobset.inputs.events_used, jobset.inputs.files_on_hold) == (1, 25, 0)
    assert (jobset.logs.files, jobset.logs.files_used) == (2, 2)
    check()


def test_the_first_of_two_consumers_waits_for_the_second_and_both_are_merged(jobset_of: Make) -> None:
    jobset = jobset_of()
    first, second = jobset.first, jobset.another()
    works(first, 2, dict.fromkeys((1, 11), FINISHED))
    works(second, 2, {})
    assert ends(first) == ("merging", "es_wait", 115)
    said = "Its output is merged when all ranges of its files are decided; it waits for"
    assert merging_facts.sentence_on(Job.objects.get(pk=first)) == f"{said} job {second} (running)"
    assert jobset.owner() == second
    check()
    say(second, {(jobset.file.id, 21, 3): FINISHED})
    assert ends(second) == ("merging", "es_merge", 112)
    merge = follower(second)
    waits = merging_facts.sentence_on(Job.objects.get(pk=first))
    assert waits == f"Its output waits to be merged by job {merge} (activated)"
    assert jobset.owner() == merge
    merged(merge)
    books_lines()
    assert [said_of(job)[:2] for job in (first, second)] == [("finished", "es_wait"), ("finished", "es_merge")]
    check()


def test_what_failed_and_what_was_not_reported_is_tried_again_by_another_consumer(jobset_of: Make) -> None:
    jobset = jobset_of()
    job = jobset.first
    works(job, 3, {1: FINISHED, 11: FAILED})
    assert ends(job) == ("merging", "es_retry", 111)
    new = follower(job)
    assert states(jobset) == [
        (1, 10, S.DONE, job, 3),
        (11, 20, S.READY, JOBSET, 2),
        (11, 20, S.FAILED, job, 3),
        (21, 25, S.READY, JOBSET, 2),
    ]
    row = Job.objects.get(pk=new)
    assert (row.status, row.attempt, row.current_priority, row.site) == ("activated", 2, 901, "SITE_A")
    assert jobset.owner() == new and jobset.file.status == "running"
    assert JobFile.objects.get(job_id=new, type="output").lfn == "out.000001.root"
    check()


def test_a_consumer_that_processed_nothing_is_closed_and_another_one_follows(jobset_of: Make) -> None:
    jobset = jobset_of()
    works(jobset.first, 3, {})
    assert ends(jobset.first) == ("closed", "es_noevent", 123)
    assert states(jobset) == [(1, 25, S.READY, JOBSET, 2)]
    assert jobset.owner() == follower(jobset.first)
    check()


def test_a_consumer_that_processed_nothing_at_its_last_attempt_fails_and_its_file_comes_back(jobset_of: Make) -> None:
    jobset = jobset_of(attempt=4)
    works(jobset.first, 3, {})
    Job.objects.update(pilot_error_code=1305)
    assert ends(jobset.first, "failed") == ("failed", None, 118)
    jobset.file.refresh_from_db()
    assert (jobset.file.status, jobset.file.attempt, jobset.file.failed_attempt) == ("ready", 1, 1)
    assert states(jobset) == [(1, 25, S.CANCELLED, JOBSET, 2)]
    check()


def test_without_an_error_it_is_closed_instead(jobset_of: Make) -> None:
    jobset = jobset_of(attempt=4)
    assert ends(jobset.first) == ("closed", None, 118)
    jobset.file.refresh_from_db()
    assert (jobset.file.status, jobset.file.failed_attempt) == ("ready", 0)


@pytest.mark.parametrize("rules", ["", "XF=1"])
def test_a_fatal_range_fails_the_only_consumer(jobset_of: Make, rules: str) -> None:
    jobset = jobset_of(20, rules=rules)
    works(jobset.first, 2, {1: FINISHED, 11: FATAL})
    assert ends(jobset.first) == ("failed", None, 118)
    assert states(jobset) == [
        (1, 10, S.DISCARDED, jobset.first, 3),
        (11, 20, S.CANCELLED, JOBSET, 0),
        (11, 20, S.FAILED, jobset.first, 1),
    ]
    assert "1 range has no attempt left" in Job.objects.get(pk=jobset.first).task_buffer_error_diag
    check()


def test_the_job_that_ends_a_jobset_has_the_commonest_error_of_its_ranges(jobset_of: Make) -> None:
    jobset = jobset_of(25, attempts=1)
    often, once = (RangeReport(S.FAILED, error_code=1220, error_diag=f"The command ended with {n}") for n in (7, 9))
    works(jobset.first, 3, {1: often, 11: once, 21: often})
    assert ends(jobset.first) == ("failed", None, 119)
    job = Job.objects.get(pk=jobset.first)
    (error, other) = errors_in(vars(job))
    assert (error.key, error.sentence) == ("pilot:1220", "The command ended with 7.")
    assert (other.key, other.detail) == ("taskbuffer:119", "no range of its files could be processed")
    assert fingerprint_of(vars(job))[0].category == "payload"


def test_a_fatal_range_is_left_out_where_a_partial_result_is_accepted(jobset_of: Make) -> None:
    jobset = jobset_of(20, rules="AP=1")
    works(jobset.first, 2, {1: FINISHED, 11: FATAL})
    assert ends(jobset.first) == ("merging", "partial", 112)
    assert (11, 20, S.FATAL, JOBSET, 0) in states(jobset)
    merged(follower(jobset.first))
    books_lines()
    assert said_of(jobset.first)[:2] == ("finished", "partial")
    jobset.inputs.refresh_from_db()
    jobset.file.refresh_from_db()
    assert (jobset.inputs.files_finished, jobset.inputs.events_used) == (1, 10), "of 20 events"
    assert jobset.file.status == "partial"
    check()


def test_what_an_earlier_consumer_has_done_is_merged_when_the_last_one_fails_where_a_partial_result_is_accepted(
    jobset_of: Make,
) -> None:
    jobset = jobset_of(20, attempts=2, rules="AP=1")
    works(jobset.first, 2, {1: FINISHED, 11: FAILED})
    assert ends(jobset.first) == ("merging", "es_retry", 111)
    second = follower(jobset.first)
    Job.objects.filter(pk=second).update(status="running", fence=1)
    works(second, 1, {11: FAILED})
    assert ends(second) == ("closed", "partial", 112)
    merge = follower(second)
    assert jobset.owner() == merge
    merged(merge)
    books_lines()
    assert said_of(jobset.first)[0] == "finished"
    jobset.inputs.refresh_from_db()
    assert (jobset.inputs.files_finished, jobset.inputs.events_used) == (1, 10), "of 20 events"
    check()


def test_what_is_done_is_kept_when_a_jobset_fails_where_the_task_says_so(jobset_of: Make) -> None:
    jobset = jobset_of(20, rules="ND=1")
    works(jobset.first, 2, {1: FINISHED, 11: FATAL})
    assert ends(jobset.first) == ("failed", None, 118)
    assert (1, 10, S.DONE, jobset.first, 3) in states(jobset)


def test_ranges_that_fail_at_their_last_attempt_fail_the_jobset(jobset_of: Make) -> None:
    jobset = jobset_of(20, attempts=1)
    works(jobset.first, 2, {1: FAILED, 11: FAILED})
    assert ends(jobset.first) == ("failed", None, 119)
    check()


def test_a_range_that_is_released_at_its_last_attempt_is_hopeless(jobset_of: Make) -> None:
    jobset = jobset_of(20, attempts=1)
    works(jobset.first, 2, {1: FINISHED})
    assert ends(jobset.first) == ("failed", None, 118)


def test_a_range_that_is_released_keeps_its_attempts_where_only_failures_count(jobset_of: Make) -> None:
    other = jobset_of(20, attempts=1, rules="XF=1")
    works(other.first, 2, {1: FINISHED})
    assert ends(other.first) == ("merging", "es_retry", 111)
    assert (11, 20, S.READY, JOBSET, 1) in states(other)


def test_ranges_that_were_fetched_ahead_of_one_that_hangs_keep_their_attempts(jobset_of: Make) -> None:
    jobset = jobset_of(40)
    works(jobset.first, 4, {1: FINISHED, 11: RangeReport(S.RUNNING)})
    assert ends(jobset.first) == ("merging", "es_retry", 111)
    assert states(jobset) == [
        (1, 10, S.DONE, jobset.first, 3),
        (11, 20, S.READY, JOBSET, 2),
        (21, 40, S.READY, JOBSET, 3),
    ]
    check()


def test_a_range_without_attempts_says_what_it_failed_with(jobset_of: Make) -> None:
    jobset = jobset_of(30, attempts=1, rules="AP=1")
    works(jobset.first, 3, {1: FINISHED, 11: RangeReport(S.FAILED, error_code=1220, error_diag="It ended with 7")})
    assert ends(jobset.first) == ("merging", "partial", 112)
    given_up = Event.objects.filter(status=S.FATAL).order_by("min_event")
    assert list(given_up.values_list("error_code", "error_diag")) == [
        (1220, "It ended with 7"),
        (None, f"job {jobset.first} ended without a report on it"),
    ]


def test_a_job_does_not_say_what_ranges_failed_with_that_were_processed_after_that(jobset_of: Make) -> None:
    jobset = jobset_of(20, attempts=2)
    first, second = (RangeReport(S.FAILED, error_code=1220, error_diag=f"The command ended with {n}") for n in (7, 9))
    works(jobset.first, 2, {1: first, 11: second})
    ends(jobset.first)
    follows = follower(jobset.first)
    Job.objects.filter(pk=follows).update(status="running", fence=1)
    works(follows, 2, {1: FINISHED, 11: second})
    assert ends(follows) == ("failed", None, 118)
    assert errors_in(vars(Job.objects.get(pk=follows)))[0].sentence == "The command ended with 9."


def test_another_consumer_that_takes_nothing_is_not_needed_when_all_is_processed(jobset_of: Make) -> None:
    jobset = jobset_of()
    second, third = jobset.another(status="activated", fence=0, heartbeat_at=None), jobset.another()
    works(third, 3, dict.fromkeys((1, 11, 21), FINISHED))
    assert ends(third) == ("merging", "es_merge", 112)
    assert jobset.owner() == follower(third), "the first had it"
    assert set(JobOutputReport.objects.values_list("id", "status")) == {
        (jobset.first, "es_unused"),
        (second, "es_unused"),
    }
    books_lines()
    assert [said_of(job) for job in (jobset.first, second)] == [("closed", "es_unused", 116)] * 2
    assert f"job {follower(third)} merges them" in Job.objects.get(pk=second).task_buffer_error_diag
    check()


def test_a_consumer_that_did_nothing_leaves_the_file_to_one_that_is_at_work(jobset_of: Make) -> None:
    jobset = jobset_of()
    second = jobset.another()
    works(second, 3, {})
    assert ends(jobset.first) == ("closed", "es_inaction", 117)
    assert jobset.owner() == second
    check()


@pytest.mark.parametrize(
    "queue", [{"job_seed": "std"}, {"job_seed": "all", "data": {"no_channel": "pilots of PanDA's"}}]
)
def test_a_jobset_that_nobody_goes_on_with_fails(jobset_of: Make, queue: dict[str, Any]) -> None:
    """Its file goes to another queue: this one takes no event service, or its payloads reach no channel for ranges."""
    jobset = jobset_of()
    Queue.objects.create(name="SITE_A", site_name="A", **queue)
    works(jobset.first, 3, {1: FINISHED})
    assert ends(jobset.first) == ("failed", None, 125)
    jobset.file.refresh_from_db()
    assert jobset.file.status == "ready"
    assert "2 ranges are left" in Job.objects.get(pk=jobset.first).task_buffer_error_diag
    check()


@pytest.mark.parametrize(
    ("status", "made"), [("online", True), ("brokeroff", True), ("offline", False), ("test", False)]
)
def test_another_consumer_follows_where_the_queue_takes_it(jobset_of: Make, status: str, made: bool) -> None:
    jobset = jobset_of()
    Queue.objects.create(name="SITE_A", site_name="A", status=status)
    works(jobset.first, 3, {1: FINISHED})
    assert (ends(jobset.first)[0] == "merging") is made


def test_one_that_never_began_is_closed_and_others_go_on(jobset_of: Make) -> None:
    jobset = jobset_of(status="defined", fence=0, heartbeat_at=None)
    second = jobset.another()
    assert ends(jobset.first, "failed", component="ddm", code=200, diag="no input") == ("closed", "es_badstatus", None)
    assert jobset.owner() == second
    check()


def test_a_consumer_whose_ranges_were_done_before_goes_to_its_merge(jobset_of: Make) -> None:
    jobset = jobset_of(rules="ND=1", special_handling="eventservice,at")
    Event.objects.update(status=S.DONE, job_id=77, objstore_id=12)
    assert ends(jobset.first) == ("closed", "es_merge", 112)
    assert jobset.owner() == follower(jobset.first)
    assert Job.objects.get(pk=follower(jobset.first)).special_handling == "at,esmerge"


def test_a_lost_heartbeat_fails_a_consumer_that_has_done_nothing_and_another_one_follows(jobset_of: Make) -> None:
    jobset = jobset_of()
    works(jobset.first, 2, {})
    lost = {"component": "jobdispatcher", "code": 100, "diag": "no heartbeat for 2 hours"}
    assert ends(jobset.first, "failed", **lost)[:2] == ("failed", "es_heartbeat")
    assert Job.objects.get(pk=jobset.first).dispatcher_error_code == 100
    new = follower(jobset.first)
    assert jobset.owner() == new and jobset.file.status == "running", "its jobset goes on"
    assert states(jobset) == [(1, 20, S.READY, JOBSET, 2), (21, 25, S.READY, JOBSET, 3)]
    check()


def test_a_lost_heartbeat_loses_nothing_that_was_processed(jobset_of: Make) -> None:
    jobset = jobset_of()
    works(jobset.first, 3, {1: FINISHED, 11: FINISHED})
    lost = {"component": "jobdispatcher", "code": 100, "diag": "no heartbeat for 2 hours"}
    assert ends(jobset.first, "failed", **lost)[:2] == ("merging", "es_retry")
    assert (1, 20, S.DONE, jobset.first, 3) in states(jobset)
    check()


def test_a_consumer_that_its_pilot_failed_fails_although_another_one_goes_on(jobset_of: Make) -> None:
    jobset = jobset_of(sub_status="pilot_failed")
    works(jobset.first, 3, {1: FINISHED})
    assert ends(jobset.first, "failed")[:2] == ("failed", "pilot_failed")
    assert jobset.owner() == follower(jobset.first)
    check()


def test_an_urgent_consumer_that_runs_for_too_long_ends_and_another_one_goes_on_with_its_ranges(
    jobset_of: Make,
) -> None:
    """What it has processed is kept, and its jobset is not killed with it."""
    jobset = jobset_of(rules="ND=1")
    works(jobset.first, 2, {})
    assert job_timeouts.run(now=timezone.now() + timedelta(hours=23)).items == 0
    assert job_timeouts.run(now=timezone.now() + timedelta(hours=25)).items == 1
    assert said_of(jobset.first) == ("closed", "es_toolong", 102)
    second = follower(jobset.first)
    assert jobset.owner() == second
    assert states(jobset) == [(1, 20, S.READY, JOBSET, 2), (21, 25, S.READY, JOBSET, 3)]
    check()
    now = timezone.now()
    Job.objects.filter(pk=second).update(status="running", fence=1, state_change_time=now, heartbeat_at=now)
    JobStatusLog.objects.filter(job_id=second).update(status="running")
    works(second, 1, {1: FINISHED})
    job_timeouts.run(now=now + timedelta(hours=25))
    assert said_of(second) == ("merging", "es_retry", 102)
    assert (1, 10, S.DONE, second, 2) in states(jobset)
    check()
