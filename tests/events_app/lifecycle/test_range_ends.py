"""Ends of consumers on the tables: the worked cases of the documents, from the hand-out to the decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.db import transaction

from events_app.lifecycle.range_ends import Ended, end_consumer, end_jumbo, what_is_left
from events_app.models import Event
from events_app.rules.consumer_ends import ConsumerFacts, Verdict, decide
from events_app.rules.event_states import EventStatus
from events_app.rules.range_blocks import RangeBlock
from events_app.rules.reported_items import RangeReport
from jedisite.database.sql import hot_cursor
from tests.events_app.ranges import FINISHED, JOBSET, TASK, firsts, given, insert, rows, say

pytestmark = pytest.mark.django_db
FAILED = RangeReport(EventStatus.FAILED)
FATAL = RangeReport(EventStatus.FAILED, attempts=1)
S = EventStatus
THREE = RangeBlock(7, 1, 25, 10, attempts=3)
"""Ranges 1-10, 11-20, 21-25."""


def works(
    job: int, wanted: int, said: Mapping[int, RangeReport], *, file_id: int = 7, jumbo: bool = False
) -> list[int]:
    """A job takes ranges and reports on some of them. Returns their first events."""
    taken = firsts(given(job, wanted, jumbo=jumbo))
    attempts = {e.min_event: e.attempt for e in Event.objects.filter(job_id=job)}
    left = attempts[min(attempts)] if attempts else 0
    say(job, {(file_id, first, left): report for first, report in said.items()})
    return [first for _, first in taken]


def ends(
    job: int, *, partial: bool = False, counts: bool = False, more: Mapping[str, Any] | None = None, **how: Any
) -> Verdict:
    """The job ends, and what is left is counted and decided upon."""
    with transaction.atomic(), hot_cursor() as cursor:
        ended = end_consumer(cursor, TASK, job, only_failed_count=counts, **how)
        left = what_is_left(cursor, TASK, JOBSET, [7], accepts_partial=partial)
    facts = ConsumerFacts(
        done=ended.done,
        from_jumbo=ended.from_jumbo,
        left=left.ready,
        others=left.others,
        any_done=left.any_done,
        hopeless=left.hopeless,
        max_attempt=4,
        accepts_partial=partial,
        **(more or {}),
    )
    return decide(facts)


def test_one_consumer_does_all(make_consumer: Callable[..., int]) -> None:
    job = make_consumer()
    insert(THREE)
    assert works(job, 10, dict.fromkeys((1, 11, 21), FINISHED)) == [1, 11, 21]
    assert ends(job) is Verdict.MERGE
    assert rows() == [(7, 1, 25, S.DONE, job, 3)]


def test_the_first_of_two_consumers_waits_for_the_second(make_consumer: Callable[..., int]) -> None:
    first, second = make_consumer(), make_consumer()
    insert(THREE)
    assert works(first, 2, dict.fromkeys((1, 11), FINISHED)) == [1, 11]
    assert works(second, 2, {}) == [21]
    assert ends(first, more={"is_last": False}) is Verdict.WAIT
    say(second, {(7, 21, 3): FINISHED})
    assert ends(second) is Verdict.MERGE


def test_what_failed_and_what_was_not_reported_is_tried_again(make_consumer: Callable[..., int]) -> None:
    job = make_consumer()
    insert(THREE)
    works(job, 3, {1: FINISHED, 11: FAILED})
    assert ends(job) is Verdict.RETRY
    assert rows() == [
        (7, 1, 10, S.DONE, job, 3),
        (7, 11, 20, S.READY, JOBSET, 2),
        (7, 11, 20, S.FAILED, job, 3),
        (7, 21, 25, S.READY, JOBSET, 2),
    ]
    assert Event.objects.get(status=S.FAILED).processed_up_to is None
    assert ends(job) is Verdict.RETRY_WITHOUT_RESULT, "nothing changes when it is ended again"
    assert len(rows()) == 4


def test_a_consumer_that_processes_nothing_gives_all_back(make_consumer: Callable[..., int]) -> None:
    job = make_consumer()
    insert(THREE)
    works(job, 3, {})
    assert ends(job) is Verdict.RETRY_WITHOUT_RESULT
    assert rows() == [(7, 1, 25, S.READY, JOBSET, 2)]


def test_a_fatal_range_ends_the_jobset_unless_a_partial_result_is_accepted(make_consumer: Callable[..., int]) -> None:
    for partial, verdict, state in ((False, Verdict.LAST_FAILED, S.READY), (True, Verdict.MERGE, S.FATAL)):
        Event.objects.all().delete()
        job = make_consumer()
        insert(RangeBlock(7, 1, 20, 10, attempts=3))
        works(job, 2, {1: FINISHED, 11: FATAL})
        assert ends(job, partial=partial) is verdict
        assert set(rows()) == {(7, 1, 10, S.DONE, job, 3), (7, 11, 20, state, JOBSET, 0), (7, 11, 20, S.FAILED, job, 1)}


def test_ranges_that_have_failed_at_their_last_attempt_fail_the_job(make_consumer: Callable[..., int]) -> None:
    job = make_consumer()
    insert(RangeBlock(7, 1, 20, 10, attempts=1))
    works(job, 2, {1: FAILED, 11: FAILED})
    assert ends(job) is Verdict.ALL_FAILED
    assert given(job, 1).blocks == [], "what has no attempt is not handed out"


@pytest.mark.parametrize(("counts", "verdict", "attempts"), [(False, Verdict.LAST_FAILED, 0), (True, Verdict.RETRY, 1)])
def test_a_range_that_is_released_at_its_last_attempt(
    make_consumer: Callable[..., int], counts: bool, verdict: Verdict, attempts: int
) -> None:
    job = make_consumer()
    insert(RangeBlock(7, 1, 20, 10, attempts=1))
    works(job, 2, {1: FINISHED})
    assert ends(job, counts=counts) is verdict
    assert rows()[1] == (7, 11, 20, S.READY, JOBSET, attempts)


def test_what_a_jumbo_job_has_processed_is_done_when_the_job_of_the_file_ends(
    make_consumer: Callable[..., int],
) -> None:
    waiting, jumbo = make_consumer(event_service=5), make_consumer(event_service=4, jobset_id=None)
    insert(RangeBlock(7, 1, 20, 5, attempts=2))
    assert works(jumbo, 3, {1: FINISHED, 6: FINISHED, 11: FAILED}, jumbo=True) == [1, 6, 11]
    works(waiting, 1, {16: FINISHED})
    assert ends(waiting, waited_for_jumbo=[7]) is Verdict.RETRY
    assert rows() == [
        (7, 1, 10, S.DONE, jumbo, 2),
        (7, 11, 15, S.READY, JOBSET, 1),
        (7, 11, 15, S.FAILED, waiting, 2),
        (7, 16, 20, S.DONE, waiting, 2),
    ]
    other = make_consumer(event_service=5)
    works(other, 1, {11: FINISHED})
    assert ends(other, waited_for_jumbo=[7]) is Verdict.MERGE


def test_a_jumbo_job_that_ends_gives_back_what_it_has_not_processed(make_consumer: Callable[..., int]) -> None:
    jumbo = make_consumer(event_service=4, jobset_id=None)
    insert(RangeBlock(7, 1, 20, 5, attempts=2))
    works(jumbo, 3, {1: FINISHED, 6: FAILED}, jumbo=True)
    with hot_cursor() as cursor:
        assert end_jumbo(cursor, TASK, jumbo, only_failed_count=False) == Ended(0, 1)
    assert rows() == [
        (7, 1, 5, S.FINISHED, jumbo, 2),
        (7, 6, 10, S.FAILED, jumbo, 2),
        (7, 11, 15, S.READY, JOBSET, 1),
        (7, 16, 20, S.READY, JOBSET, 2),
    ]
    waiting = make_consumer(event_service=5)
    assert ends(waiting, waited_for_jumbo=[7]) is Verdict.RETRY_WITHOUT_RESULT
    assert (7, 1, 5, S.DONE, jumbo, 2) in rows() and (7, 6, 10, S.READY, JOBSET, 1) in rows()
