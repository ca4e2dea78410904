"""Blocks of ranges in the database: handed out, split, reported."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from events_app.lifecycle.range_handout import Taken
from events_app.models import Event
from events_app.rules.event_states import EventStatus
from events_app.rules.range_blocks import RangeBlock
from events_app.rules.reported_items import RangeReport
from tasks_app.models import Job
from tests.events_app.ranges import FINISHED, JOBSET, TASK, firsts, given, insert, rows, say

pytestmark = pytest.mark.django_db


def test_a_consumer_gets_what_is_ready_and_hears_whether_more_is(make_consumer: Callable[..., int]) -> None:
    job = make_consumer()
    insert(RangeBlock(7, 1, 25, 10), RangeBlock(8, 26, 40, 10), RangeBlock(9, 1, 5, 10, attempts=0))
    taken = given(job, 2)
    assert (firsts(taken), taken.more) == ([(7, 1), (7, 11)], True)
    assert rows() == [
        (7, 1, 20, EventStatus.SENT, job, 10),
        (7, 21, 25, EventStatus.READY, JOBSET, 10),
        (8, 26, 40, EventStatus.READY, JOBSET, 10),
        (9, 1, 5, EventStatus.READY, JOBSET, 0),
    ]
    assert all(row["process_id"] == row["min_event"] for row in Event.objects.values("process_id", "min_event"))
    assert set(Event.objects.values_list("event_offset", flat=True)) == {JOBSET}
    other = make_consumer()
    taken = given(other, 3)
    assert (firsts(taken), taken.more) == ([(7, 21), (8, 26), (8, 36)], False), "no surplus is left"
    assert given(job, 1) == Taken([], False), "a range without attempts is not handed out"


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "holding"},
        {"status": "activated"},
        {"command_to_pilot": "tobekilled"},
        {"jobset_id": 901},
        {"jobset_id": None},
        {"task_id": TASK + 1},
    ],
)
def test_only_jobs_at_work_get_ranges_and_only_of_their_jobset(
    make_consumer: Callable[..., int], changes: dict[str, Any]
) -> None:
    insert(RangeBlock(7, 1, 25, 10))
    assert given(make_consumer(**changes), 2).blocks == []


def test_a_jumbo_job_takes_of_all_jobsets_and_remembers_whose_they_are(make_consumer: Callable[..., int]) -> None:
    insert(RangeBlock(7, 1, 20, 10))
    insert(RangeBlock(8, 1, 20, 10), jobset=901)
    job = make_consumer(jobset_id=None, event_service=4)
    assert firsts(given(job, 3, jumbo=True)) == [(7, 1), (7, 11), (8, 1)]
    kept = Event.objects.filter(job_id=job).order_by("file_id").values_list("event_offset", "is_jumbo")
    assert list(kept) == [(JOBSET, 1), (901, 1)]


def test_reports_split_blocks_and_count_events(make_consumer: Callable[..., int]) -> None:
    job = make_consumer()
    insert(RangeBlock(7, 1, 45, 10))
    given(job, 5)
    zipped = RangeReport(EventStatus.FINISHED, zip_row_id=3, objstore_id=11, path_convention=1000)
    failed = RangeReport(EventStatus.FAILED, error_code=1305, error_diag='it said {"code": 7} and ended')
    assert say(job, {(7, 1, 10): zipped, (7, 11, 10): zipped, (7, 31, 10): failed}) == 3
    assert rows() == [
        (7, 1, 20, EventStatus.FINISHED, job, 10),
        (7, 21, 30, EventStatus.SENT, job, 10),
        (7, 31, 40, EventStatus.FAILED, job, 10),
        (7, 41, 45, EventStatus.SENT, job, 10),
    ]
    first = Event.objects.get(min_event=1)
    assert (first.zip_row_id, first.objstore_id, first.path_convention) == (3, 11, 1000)
    assert Event.objects.get(min_event=31).error_diag == 'it said {"code": 7} and ended'
    assert Event.objects.get(min_event=21).zip_row_id is None
    row = Job.objects.get(pk=job)
    assert row.events == 20 and row.ranges_reported_at is not None
    Job.objects.filter(pk=job).update(ranges_reported_at=None)
    fatal = RangeReport(EventStatus.FAILED, attempts=1)
    assert say(job, {(7, 21, 10): fatal, (7, 41, 10): FINISHED}) == 2
    assert rows()[1] == (7, 21, 30, EventStatus.FAILED, job, 1)
    row = Job.objects.get(pk=job)
    assert row.events == 25, "the last range is shorter"
    assert row.ranges_reported_at is not None


def test_reports_on_what_a_job_does_not_have_change_nothing(make_consumer: Callable[..., int]) -> None:
    job, other = make_consumer(), make_consumer()
    insert(RangeBlock(7, 1, 30, 10))
    given(job, 1), given(other, 1)
    before = rows()
    assert say(other, {(7, 1, 10): FINISHED}) == 0, "another consumer's"
    assert say(other, {(7, 21, 10): FINISHED}) == 0, "handed to nobody"
    assert say(other, {(7, 11, 9): FINISHED}) == 0, "another attempt"
    assert say(other, {(7, 15, 10): FINISHED, (8, 1, 10): FINISHED}) == 0, "no range"
    assert say(make_consumer(status="finished"), {(7, 1, 10): FINISHED}) is None
    assert rows() == before
    assert say(job, {(7, 1, 10): FINISHED}) == 1
    assert say(job, {(7, 1, 10): FINISHED}) == 0, "twice"
    assert say(job, {(7, 1, 10): RangeReport(EventStatus.FAILED)}) == 0, "what is finished stays so"
    assert Job.objects.get(pk=job).events == 10


@pytest.mark.parametrize("seed", range(4))
def test_any_order_of_requests_and_reports_keeps_each_range_once(make_consumer: Callable[..., int], seed: int) -> None:
    chance = random.Random(seed)
    blocks = [RangeBlock(file, 1, chance.randint(1, 60), chance.randint(1, 7)) for file in range(1, 5)]
    insert(*blocks)
    known: dict[tuple[int, int], tuple[int, EventStatus]] = {
        (b.file_id, r.first): (JOBSET, EventStatus.READY) for b in blocks for r in b.ranges()
    }
    jobs = [make_consumer() for _ in range(3)]
    for _ in range(60):
        job = chance.choice(jobs)
        if chance.random() < 0.5:
            for key in firsts(given(job, chance.randint(1, 9), jumbo=chance.random() < 0.3)):
                assert known[key] == (JOBSET, EventStatus.READY), "each range is with one consumer at a time"
                known[key] = (job, EventStatus.SENT)
        else:
            said = {
                key: chance.choice((EventStatus.FINISHED, EventStatus.FAILED))
                for key in chance.sample(list(known), min(len(known), 12))
            }
            done = say(job, {(*key, 10): RangeReport(status) for key, status in said.items()})
            mine = {key for key in said if known[key] == (job, EventStatus.SENT)}
            assert done == len(mine)
            known.update({key: (job, said[key]) for key in mine})
    found = {
        (e.file_id, r.first): (e.job_id, EventStatus(e.status))
        for e in Event.objects.all()
        for r in RangeBlock(e.file_id, e.min_event, e.max_event, e.events_per_range).ranges()
    }
    assert found == known
    counted = sum(e.max_event - e.min_event + 1 for e in Event.objects.filter(status=EventStatus.FINISHED))
    assert sum(Job.objects.get(pk=job).events or 0 for job in jobs) == counted
