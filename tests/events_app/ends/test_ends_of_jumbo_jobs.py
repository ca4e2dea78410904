"""Ends of jumbo jobs, and of consumers whose ranges jumbo jobs have: the worked cases of the documents, on the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from brokerage_app.models import Queue
from events_app.models import Event
from events_app.reading.consumer_counts import of_jobset
from events_app.rules.event_states import EventStatus
from events_app.rules.range_blocks import RangeBlock
from events_app.rules.reported_items import RangeReport
from tasks_app.models import Job, Task
from tests.events_app.jobsets import Jobset, check, ends, follower, said_of, works
from tests.events_app.ranges import FINISHED, JOBSET, firsts, given, insert, rows, say
from tests.tasks_app.web.conftest import ada, reader, static_root  # noqa: F401 - the same people

pytestmark = pytest.mark.django_db
FAILED = RangeReport(EventStatus.FAILED)
S = EventStatus
Make = Callable[..., Jobset]
MANY = 10_000
WAITING = "WAITING_CO_JUMBO"


@pytest.fixture
def with_jumbo(jobset_of: Make, make_job: Callable[..., Job]) -> Callable[..., tuple[Jobset, int]]:
    """A jobset of a task with jumbo jobs, and one of these at work."""

    def make(**changes: Any) -> tuple[Jobset, int]:
        jobset = jobset_of(event_service=5, **changes)
        Task.objects.filter(pk=jobset.task.id).update(use_jumbo="R")
        now = timezone.now()
        at_work = {"status": "running", "site": "JUMBO", "fence": 1, "heartbeat_at": now, "start_time": now}
        jumbo = make_job(task_id=jobset.task.id, jobset_id=JOBSET + 50, event_service=4, **at_work)
        return jobset, jumbo.id

    return make


def takes(jumbo: int, wanted: int, said: dict[int, RangeReport]) -> None:
    """A jumbo job takes ranges and reports on some."""
    taken = given(jumbo, wanted, jumbo=True)
    attempts = {first: block.attempts for one in taken.blocks for block in [one.block] for first, _ in block.ranges()}
    file_id = firsts(taken)[0][0]
    say(jumbo, {(file_id, first, attempts[first]): what for first, what in said.items()})


def test_what_a_jumbo_job_has_not_processed_goes_back_to_its_jobset(with_jumbo: Callable[..., Any]) -> None:
    jobset, jumbo = with_jumbo()
    takes(jumbo, 3, {1: FINISHED, 11: FAILED})
    assert ends(jumbo, "failed")[0] == "finished"
    assert [row[1:] for row in rows()] == [
        (1, 10, S.FINISHED, jumbo, 3),
        (11, 20, S.FAILED, jumbo, 3),
        (21, 25, S.READY, JOBSET, 2),
    ]
    assert jobset.owner() == jobset.first, "the file stays with its consumer"


def test_a_jumbo_job_that_has_processed_nothing_fails(with_jumbo: Callable[..., Any]) -> None:
    _, jumbo = with_jumbo(rules="XF=1")
    takes(jumbo, 2, {})
    assert ends(jumbo) == ("failed", None, 123)
    assert {row[3:] for row in rows()} == {(S.READY, JOBSET, 3)}, "only failures count"


def test_a_jumbo_job_says_how_many_ranges_failed_in_it_and_its_consumer_does_not_count_them(
    with_jumbo: Callable[..., Any],
    reader: Client,  # noqa: F811
) -> None:
    jobset, jumbo = with_jumbo(events=40)
    takes(jumbo, 3, {1: FAILED, 11: FAILED})
    assert ends(jumbo) == ("failed", None, 123)
    assert Job.objects.get(pk=jumbo).task_buffer_error_diag == (
        "it processed no range; 2 ranges failed in it, 1 range goes back"
    )
    works(jobset.first, 10, {21: FAILED})
    ends(jobset.first)
    assert set(Event.objects.filter(status=S.FAILED).values_list("job_id", flat=True)) == {jobset.first}
    assert [one.failed for one in of_jobset(jobset.task.id, JOBSET) if one.job_id == jobset.first] == [1]
    page = reader.get(f"/jobs/{jobset.first}/").content.decode()
    assert f'?job={jobset.first}&amp;jumbo=true">2 ranges</a> of its files failed in jumbo jobs' in page
    assert "stand at the consumer of their file" in reader.get(f"/jobs/{jumbo}/").content.decode()
    own = f"/api/v2/tasks/{jobset.task.id}/events/?job={jobset.first}&status=failed&jumbo="
    found = [reader.get(f"{own}{word}").json()["results"] for word in ("true", "false")]
    assert [sum(row["ranges"] for row in some) for some in found] == [2, 1]


def test_many_ranges_in_hand_go_back_in_one_statement(with_jumbo: Callable[..., Any]) -> None:
    jobset, jumbo = with_jumbo(events=10)
    insert(*(RangeBlock(jobset.file.id, 101 + 2 * n, 101 + 2 * n, 1) for n in range(MANY)))
    taken = given(jumbo, MANY + 1, jumbo=True)
    assert len(taken.blocks) == MANY + 1
    ends(jumbo, "failed")
    assert set(Event.objects.values_list("status", "job_id", "is_jumbo")) == {(S.READY, JOBSET, None)}
    assert Event.objects.count() == MANY + 1


def test_the_end_of_a_consumer_completes_what_jumbo_jobs_have_done_of_its_file(with_jumbo: Callable[..., Any]) -> None:
    jobset, jumbo = with_jumbo(events=40)
    Queue.objects.create(name="SITE_A", site_name="SITE_A", job_seed="all")
    takes(jumbo, 3, {1: FINISHED, 11: FINISHED, 21: FAILED})
    assert works(jobset.first, 10, {31: FINISHED}) == [31]
    assert ends(jobset.first) == ("merging", "es_retry", 111)
    assert [row[1:] for row in rows()] == [
        (1, 20, S.DONE, jumbo, 3),
        (21, 30, S.READY, JOBSET, 2),
        (21, 30, S.FAILED, jobset.first, 3),
        (31, 40, S.DONE, jobset.first, 3),
    ]
    check()


def test_a_consumer_whose_ranges_jumbo_jobs_have_all_done_is_merged_without_having_begun(
    with_jumbo: Callable[..., Any],
) -> None:
    jobset, jumbo = with_jumbo(status="waiting", site=WAITING, fence=0, heartbeat_at=None, start_time=None)
    takes(jumbo, 3, dict.fromkeys((1, 11, 21), FINISHED))
    assert ends(jobset.first) == ("closed", "es_merge", 112)
    merge = Job.objects.get(pk=follower(jobset.first))
    assert (merge.event_service, merge.status, merge.site) == (2, "activated", "JUMBO")
    assert jobset.owner() == merge.id
    check()


def test_a_consumer_without_ranges_leaves_its_file_to_one_that_waits(with_jumbo: Callable[..., Any]) -> None:
    jobset, jumbo = with_jumbo()
    takes(jumbo, 3, {})
    assert ends(jobset.first) == ("closed", "es_inaction", 117)
    waits = Job.objects.get(jobset_id=JOBSET, status="waiting")
    assert (waits.site, waits.event_service, jobset.owner()) == (WAITING, 5, waits.id)
    check()
    say(jumbo, {(jobset.file.id, first, 3): FINISHED for first in (1, 11, 21)})
    assert ends(waits.id) == ("closed", "es_merge", 112)
    check()


def test_what_jumbo_jobs_had_done_before_is_merged_by_the_last_consumer(with_jumbo: Callable[..., Any]) -> None:
    jobset, jumbo = with_jumbo()
    takes(jumbo, 3, {1: FINISHED})
    assert ends(jobset.first) == ("closed", "es_inaction", 117), "it has counted the one that is done"
    waits = Job.objects.get(jobset_id=JOBSET, status="waiting")
    say(jumbo, {(jobset.file.id, first, 3): FAILED for first in (11, 21)})
    Event.objects.filter(status=S.FAILED).update(status=S.CANCELLED)
    assert ends(waits.id) == ("closed", "es_merge", 112)
    assert said_of(jumbo)[0] == "running"


def test_a_range_that_failed_says_in_which_jumbo_job_once_a_consumer_has_it(with_jumbo: Callable[..., Any]) -> None:
    jobset, jumbo = with_jumbo(events=20, attempts=1)
    died = RangeReport(S.FAILED, error_code=1220, error_diag="it ended with 7")
    takes(jumbo, 2, {1: died, 11: RangeReport(S.FAILED, error_code=1220)})
    ends(jumbo, "failed")
    assert ends(jobset.first)[0] == "failed"
    failed = Event.objects.filter(status=S.FAILED).order_by("min_event")
    assert list(failed.values_list("job_id", "error_diag")) == [
        (jobset.first, f"in jumbo job {jumbo}: it ended with 7"),
        (jobset.first, f"in jumbo job {jumbo}"),
    ]
    job = Job.objects.get(pk=jobset.first)
    assert job.pilot_error_code == 1220 and "jumbo" not in (job.pilot_error_diag or "")
