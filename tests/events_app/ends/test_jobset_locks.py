"""Ends of jobs of one jobset at one time, seen from two connections."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from django.db import transaction

from events_app.lifecycle.jobset_ranges import end_jobset
from events_app.models import Event
from events_app.rules.event_states import EventStatus
from jedisite.database.sql import hot_cursor
from tasks_app.models import Job, JobOutputReport
from tasks_app.outcomes.job_outcome import Outcome
from tests.events_app.jobsets import Jobset, check, end, said_of, works
from tests.events_app.ranges import FINISHED, JOBSET, TASK
from tests.flow.threads import together
from tests.locks import Row, waits, waits_for

pytestmark = pytest.mark.django_db(transaction=True)
Make = Callable[..., Jobset]


@pytest.mark.parametrize("turn", range(4))
def test_two_consumers_that_end_at_once_have_one_merge_job(jobset_of: Make, turn: int) -> None:
    jobset = jobset_of()
    first, second = jobset.first, jobset.another()
    works(first, 2, {1: FINISHED, 11: FINISHED})
    works(second, 1, {21: FINISHED})
    together(*[partial(end, Outcome(job, TASK, "finished")) for job in (first, second)])
    (merge,) = Job.objects.filter(event_service=2).values_list("id", flat=True)
    assert sorted(str(said_of(job)[1]) for job in (first, second)) == ["es_merge", "es_wait"]
    assert jobset.owner() == merge
    assert set(Event.objects.values_list("status", flat=True)) == {EventStatus.DONE}
    assert not JobOutputReport.objects.exists()
    check()


def test_the_end_of_a_consumer_waits_for_that_of_another(jobset_of: Make) -> None:
    jobset = jobset_of()
    works(jobset.first, 1, {1: FINISHED})
    lock = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
    done = waits_for(lock, [f"jobset {JOBSET}"], lambda: end(Outcome(jobset.first, TASK, "finished")))
    assert done == 1


def test_a_range_that_is_processed_at_this_moment_is_thrown_away_with_its_jobset(jobset_of: Make) -> None:
    jobset = jobset_of(10)
    works(jobset.first, 1, {})
    row: Row = ("jedi_events", "row_id", Event.objects.get().id)

    def work() -> None:
        with transaction.atomic(), hot_cursor() as cursor:
            end_jobset(cursor, TASK, JOBSET, [jobset.file.id], keeps_events=False)

    waits(row, work, then="UPDATE jedi_events SET status = 3 WHERE jeditaskid = %s", values=[TASK])
    assert Event.objects.get().status == EventStatus.DISCARDED
