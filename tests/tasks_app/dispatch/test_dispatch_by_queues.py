"""Handing out jobs where no tree of shares is configured: work queues are served by their own shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from brokerage_app.models import GlobalShare, Queue, WorkQueue
from tasks_app.counts import line_order
from tasks_app.dispatch.handing_out import Request, get_jobs
from tasks_app.labs.bench.scene import add_jobs
from tasks_app.models import Job
from tests.flow.driving import SITE

pytestmark = pytest.mark.usefixtures("tables")
BY_SHARES, BY_AGE = 99, 0
"""Chance numbers of calls that obey shares, and that do not."""


def queue(name: str, share: int | None, **more: Any) -> int:
    Queue.objects.get_or_create(name=SITE, defaults={"site_name": SITE, "core_power": 10})
    values = {"type": "user", "vo": "lab", **more}
    return WorkQueue.objects.create(name=name, share=share, **values).id


def running(number: int, of: int | None, **more: Any) -> None:
    for job in add_jobs(number, [SITE], "running"):
        Job.objects.filter(pk=job).update(**{"core_count": 1, "work_queue_id": of, **more})


def waiting(*queues: int | None, **more: Any) -> list[int]:
    """Activated jobs of these work queues, in the order of their numbers."""
    ids = list(add_jobs(len(queues), [SITE], "activated"))
    for job, of in zip(ids, queues, strict=True):
        Job.objects.filter(pk=job).update(work_queue_id=of, **more)
    return ids


def drain(count: int = 1, draw: int = BY_SHARES, label: str = "") -> list[int]:
    got: list[int] = []
    while more := [job["PandaID"] for job in get_jobs(Request(SITE, label, count), draw)]:
        got += more
    return got


def order(names: Mapping[str, int]) -> list[str]:
    """The names of the queues in the order in which they are served."""
    line_order.forget()
    of = {f"queue:{number}": name for name, number in names.items()}
    found = line_order.line_order()
    return [of.get(line, line) for line in found.names]


@pytest.fixture
def flat() -> dict[str, int]:
    """A has 60 per cent, B 30, C 10."""
    return {name: queue(name, share) for name, share in (("A", 60), ("B", 30), ("C", 10))}


@pytest.mark.parametrize("count", [1, 2, 50])
def test_the_most_under_used_queue_is_served_first_in_it_by_priority(flat: dict[str, int], count: int) -> None:
    for name, number in (("A", 60), ("B", 35), ("C", 5)):
        running(number, flat[name])
    ids = waiting(*(flat[name] for name in "ABCABC"))
    Job.objects.filter(pk=ids[5]).update(current_priority=900)
    Job.objects.filter(pk=ids[4]).update(current_priority=900)
    assert order(flat) == ["urgent", "C", "A", "B"]
    assert drain(count) == [ids[5], ids[2], ids[0], ids[3], ids[4], ids[1]]


def test_urgent_jobs_overtake_the_shares_of_queues(flat: dict[str, int]) -> None:
    running(9, flat["C"])
    ids = waiting(flat["A"], flat["C"])
    Job.objects.filter(pk=ids[1]).update(processing_type="urgent")
    assert drain() == [ids[1], ids[0]]


def test_power_is_counted_with_cores(flat: dict[str, int]) -> None:
    running(3, flat["A"], core_count=8)
    running(9, flat["B"])
    waiting(*[flat["A"], flat["B"]] * 30)
    assert line_order.powers_of_queues() == (
        {flat["A"]: 240, flat["B"]: 90},
        {flat["A"]: 300, flat["B"]: 300},
    )
    assert order(flat)[1:3] == ["B", "A"], "A has 73 per cent of all, B the rest"


def test_a_queue_without_a_share_never_waits_and_jobs_of_inactive_or_no_queues_come_last(flat: dict[str, int]) -> None:
    free, gone = queue("free", None), queue("gone", 90, status="inactive")
    running(5, flat["B"])
    ids = waiting(None, gone, flat["A"], free)
    Job.objects.filter(pk=ids[1]).update(current_priority=900)
    assert drain() == [ids[3], ids[2], ids[1], ids[0]]


def test_what_others_leave_goes_to_stretchable_queues_first() -> None:
    names = {
        "big": queue("big", 50),
        "plain": queue("plain", 30),
        "stretches": queue("stretches", 20, stretchable=1),
    }
    running(40, names["plain"])
    running(60, names["stretches"])
    waiting(names["plain"], *[names["stretches"]] * 200)
    assert order(names)[1:3] == ["stretches", "plain"], "30 are due to one, 70 to the other: it gets what big leaves"
    WorkQueue.objects.update(stretchable=0)
    assert order(names)[1:3] == ["plain", "stretches"], "else both get of it by their shares: 60 and 40"


def test_the_share_of_a_partition_is_divided_among_its_sub_queues() -> None:
    partition = queue("parts", 60, partition_id=-1)
    names = {
        "one": queue("one", 70, partition_id=partition),
        "two": queue("two", 30, partition_id=partition),
        "alone": queue("alone", 40),
    }
    for name, number in (("one", 40), ("two", 25), ("alone", 35)):
        running(number, names[name])
    waiting(*list(names.values()) * 50)
    assert order(names)[1:] == ["alone", "one", "two"], "35 of 40, 40 of 42, 25 of 18"
    running(6, names["alone"])
    assert order(names)[1:] == ["one", "alone", "two"]


def test_queues_of_several_labels_divide_by_the_sums_of_their_shares() -> None:
    names = {
        "mc": queue("mc", 40, type="managed"),
        "data": queue("data", 40, type="managed"),
        "users": queue("users", 20),
    }
    running(50, names["mc"])
    running(40, names["data"])
    running(10, names["users"])
    waiting(*list(names.values()) * 50)
    assert order(names)[1:] == ["users", "data", "mc"]
    running(30, names["users"])
    assert order(names)[1:] == ["data", "mc", "users"]


def test_what_a_queue_leaves_goes_to_those_of_its_label() -> None:
    names = {
        "mc": queue("mc", 40, type="managed"),
        "users": queue("users", 20),
        "data": queue("data", 40, type="managed"),
    }
    running(70, names["mc"])
    running(30, names["users"])
    waiting(*[names["mc"], names["users"]] * 50)
    assert order(names)[1:] == ["mc", "users", "data"], "mc has 80 per cent while data has no jobs"


def test_queues_asked_first_come_first_among_equals() -> None:
    late, early = queue("late", 10, order=9), queue("early", 10, order=1)
    ids = waiting(late, early)
    assert drain() == [ids[1], ids[0]]


def test_where_no_queue_has_a_share_priority_alone_decides() -> None:
    ids = waiting(queue("A", None), queue("B", None))
    Job.objects.filter(pk=ids[1]).update(current_priority=900)
    assert not line_order.line_order().has_shares
    assert drain(draw=BY_AGE) == [ids[1], ids[0]]


@pytest.mark.parametrize("draw", [BY_AGE, BY_SHARES])
@pytest.mark.parametrize("count", [1, 2, 50])
def test_urgent_jobs_overtake_all_priorities_where_nothing_has_a_share(count: int, draw: int) -> None:
    ids = waiting(queue("A", None), None, None, None)
    Job.objects.filter(pk=ids[1]).update(current_priority=2000)
    Job.objects.filter(pk=ids[2]).update(processing_type="urgent", current_priority=50)
    Job.objects.filter(pk=ids[3]).update(special_handling="urgent", current_priority=100)
    assert drain(count, draw) == [ids[3], ids[2], ids[1], ids[0]]


def test_where_there_is_a_tree_the_shares_of_queues_only_inform(flat: dict[str, int]) -> None:
    GlobalShare.objects.create(name="all", value=1)
    running(90, flat["A"], gshare="all")
    ids = waiting(flat["A"], flat["B"])
    Job.objects.update(gshare="all")
    assert order(flat) == ["urgent", "share:Test", "share:all"]
    assert drain() == ids, "in its one share the oldest goes first, whatever its queue"


def test_a_call_that_ignores_shares_takes_the_oldest(flat: dict[str, int]) -> None:
    running(9, flat["A"])
    ids = waiting(flat["A"], flat["B"])
    assert drain(draw=BY_AGE) == ids
