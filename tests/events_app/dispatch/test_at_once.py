"""Pilots that ask and report at the same moment, each on its own connection."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from events_app.dispatch.handing_ranges import hand_out
from events_app.dispatch.range_accounts import Account, account
from events_app.lifecycle.unneeded_consumers import ES_UNUSED
from events_app.rules.event_jobs import EventJobKind
from events_app.rules.event_states import EventStatus
from events_app.rules.range_blocks import RangeBlock
from tasks_app.dispatch.reports import Proof
from tasks_app.models import Job, JobOutputReport
from tests.events_app.ranges import TASK, given, insert, rows
from tests.flow.threads import together
from tests.locks import FOR_NO_KEY_UPDATE, waits

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("storage")]
PILOT = Proof(site="SITE_A")


@pytest.fixture(autouse=True)
def ended_jobs_have_no_line(db: None) -> None:
    JobOutputReport.objects.all().delete()


def fetch_all(job: int) -> list[str]:
    found: list[str] = []
    while some := hand_out(job, 3, PILOT):
        found += [one["eventRangeID"] for one in some]
    return found


@pytest.mark.parametrize("kind", [EventJobKind.CONSUMER, EventJobKind.JUMBO])
def test_callers_never_share_a_range(make_consumer: Callable[..., int], kind: EventJobKind) -> None:
    insert(*[RangeBlock(file, 1, 50, 1) for file in range(1, 5)])
    jobs = [make_consumer(event_service=kind) for _ in range(3)]
    found = together(*[partial(fetch_all, job) for job in jobs])
    ranges = [tuple(text.split("-")[2:4]) for some in found for text in some]
    assert len(ranges) == len(set(ranges))
    left = sum(last - first + 1 for _, first, last, status, _, _ in rows() if status == EventStatus.READY)
    assert len(ranges) + left == 200 and (left == 0 or kind is EventJobKind.JUMBO)
    assert JobOutputReport.objects.filter(status=ES_UNUSED).count() == 0, "all have been fetched"


def test_reports_of_one_job_at_the_same_moment_lose_nothing(make_consumer: Callable[..., int]) -> None:
    """The second one sees the pieces that the first one has made of a block."""
    job = make_consumer()
    insert(RangeBlock(7, 1, 400, 1))
    given(job, 400)

    def say(of: int) -> list[Account]:
        calls = [
            [
                {"eventRangeID": f"{TASK}-{job}-7-{n}-10", "eventStatus": "finished", "objstoreID": 11}
                for n in range(of + first, 401, 40)
            ]
            for first in range(0, 40, 4)
        ]
        return [account(said, PILOT) for said in calls]

    for some in together(*[partial(say, of) for of in (1, 2, 3, 4)]):
        assert all(one.answers == [True] * len(one.answers) for one in some)
    assert rows() and {row[3] for row in rows()} == {EventStatus.FINISHED}
    assert Job.objects.get(pk=job).events == 400


def test_reports_of_several_jobs_in_any_order_wait_for_each_other(make_consumer: Callable[..., int]) -> None:
    jobs = [make_consumer() for _ in range(4)]
    insert(*[RangeBlock(file, 1, 100, 1) for file in range(4)])
    for job in jobs:
        given(job, 100)

    def say(order: list[int]) -> None:
        for n in range(1, 101):
            account(
                [
                    {"eventRangeID": f"{TASK}-{jobs[f]}-{f}-{n}-10", "eventStatus": "finished", "objstoreID": 11}
                    for f in order
                ],
                PILOT,
            )

    together(*[partial(say, order) for order in ([0, 1, 2, 3], [3, 2, 1, 0])])
    assert [Job.objects.get(pk=job).events for job in jobs] == [100] * 4


def test_what_a_report_says_counts_for_blocks_as_they_are_when_it_is_its_turn(
    make_consumer: Callable[..., int],
) -> None:
    job = make_consumer()
    insert(RangeBlock(7, 1, 20, 10))
    given(job, 2)
    said = [{"eventRangeID": f"{TASK}-{job}-7-11-10", "eventStatus": "finished", "objstoreID": 11}]
    cut = """
        WITH cut AS (
            INSERT INTO jedi_events (jeditaskid, datasetid, fileid, pandaid, event_offset, job_processid, def_min_eventid,
                   def_max_eventid, events_per_range, attemptnr, processed_upto_eventid, status)
            SELECT jeditaskid, datasetid, fileid, pandaid, event_offset, 11, 11, 20, 10, attemptnr, 0, status FROM jedi_events)
        UPDATE jedi_events SET def_max_eventid = 10 WHERE job_processid = 1"""
    waits(("jobs", "pandaid", job), lambda: account(said, PILOT), then=cut, held=FOR_NO_KEY_UPDATE)
    assert rows() == [(7, 1, 10, EventStatus.SENT, job, 10), (7, 11, 20, EventStatus.FINISHED, job, 10)]
