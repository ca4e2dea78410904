"""Locks of ranges and of the jobs that have them, seen from a second connection."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import transaction

from events_app.lifecycle.range_ends import Ended, end_consumer
from events_app.lifecycle.range_handout import Taken
from events_app.lifecycle.range_reinsertion import settle
from events_app.models import Event
from events_app.rules.event_states import EventStatus
from events_app.rules.range_blocks import RangeBlock
from jedisite.database.sql import hot_cursor
from tests.events_app.ranges import FINISHED, TASK, firsts, given, insert, say
from tests.locks import FOR_NO_KEY_UPDATE, FOR_SHARE, Row, skips, waits

pytestmark = pytest.mark.django_db(transaction=True)
ENDED = "UPDATE jobs SET jobstatus = 'holding' WHERE pandaid = %s"


def only_row() -> Row:
    return ("jedi_events", "row_id", Event.objects.get().id)


def test_a_job_that_ends_at_this_moment_gets_no_range(make_consumer: Callable[..., int]) -> None:
    job = make_consumer()
    insert(RangeBlock(7, 1, 30, 10))
    got = waits(
        ("jobs", "pandaid", job), lambda: given(job, 1), then=ENDED, values=[job], held=FOR_SHARE, free=only_row()
    )
    assert got == Taken([], False)


def test_two_consumers_that_ask_at_once_share_no_range(make_consumer: Callable[..., int]) -> None:
    job = make_consumer()
    insert(RangeBlock(7, 1, 30, 10))
    gone = "UPDATE jedi_events SET def_min_eventid = 11, job_processid = 11 WHERE jeditaskid = %s"
    assert firsts(waits(only_row(), lambda: given(job, 5), then=gone, values=[TASK])) == [(7, 11), (7, 21)]


def test_a_jumbo_job_passes_over_what_another_takes(make_consumer: Callable[..., int]) -> None:
    job = make_consumer()
    insert(RangeBlock(7, 1, 30, 10))
    assert skips(only_row(), lambda: given(job, 5, jumbo=True)) == Taken([], False)


def test_a_job_that_ends_at_this_moment_reports_nothing(make_consumer: Callable[..., int]) -> None:
    job = make_consumer()
    insert(RangeBlock(7, 1, 10, 10))
    given(job, 1)
    row = ("jobs", "pandaid", job)
    said = waits(
        row, lambda: say(job, {(7, 1, 10): FINISHED}), then=ENDED, values=[job], held=FOR_NO_KEY_UPDATE, free=only_row()
    )
    assert said is None
    assert Event.objects.get().status == EventStatus.SENT


def test_a_range_that_is_taken_back_at_this_moment_is_not_reported(make_consumer: Callable[..., int]) -> None:
    job = make_consumer()
    insert(RangeBlock(7, 1, 10, 10))
    given(job, 1)
    back = "UPDATE jedi_events SET status = 4 WHERE jeditaskid = %s"
    assert waits(only_row(), lambda: say(job, {(7, 1, 10): FINISHED}), then=back, values=[TASK]) == 0
    assert Event.objects.get().status == EventStatus.CANCELLED


def ended(job: int, *files: int) -> Ended:
    with transaction.atomic(), hot_cursor() as cursor:
        return end_consumer(cursor, TASK, job, only_failed_count=False, waited_for_jumbo=files)


def test_a_range_that_is_finished_at_this_moment_is_done_when_its_consumer_ends(
    make_consumer: Callable[..., int],
) -> None:
    job = make_consumer()
    insert(RangeBlock(7, 1, 10, 10))
    given(job, 1)
    finished = "UPDATE jedi_events SET status = 3 WHERE jeditaskid = %s"
    assert waits(only_row(), lambda: ended(job), then=finished, values=[TASK]) == Ended(done=1, released=0)


def test_a_range_of_a_jumbo_job_is_done_once_when_two_consumers_end(make_consumer: Callable[..., int]) -> None:
    job, jumbo = make_consumer(event_service=5), make_consumer(event_service=4)
    insert(RangeBlock(7, 1, 10, 10))
    given(jumbo, 1, jumbo=True)
    say(jumbo, {(7, 1, 10): FINISHED})
    done = "UPDATE jedi_events SET status = 6 WHERE jeditaskid = %s"
    assert waits(only_row(), lambda: ended(job, 7), then=done, values=[TASK]) == Ended(done=0, released=0, from_jumbo=0)


def test_a_range_that_is_finished_at_this_moment_is_thrown_away_when_its_file_is_tried_again(
    make_consumer: Callable[..., int],
) -> None:
    job = make_consumer()
    insert(RangeBlock(7, 1, 10, 10))
    given(job, 1)

    def work() -> None:
        with transaction.atomic(), hot_cursor() as cursor:
            settle(cursor, TASK, [7], keeps_events=False)

    waits(only_row(), work, then="UPDATE jedi_events SET status = 3 WHERE jeditaskid = %s", values=[TASK])
    assert Event.objects.get().status == EventStatus.DISCARDED, "and not cancelled, as what nobody has processed"
