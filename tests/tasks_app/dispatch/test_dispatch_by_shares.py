"""Handing out jobs when shares are configured: urgent jobs, then those of the most under-used share, in it by priority."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from brokerage_app.grid import configured
from brokerage_app.models import GdpConfig, GlobalShare, Queue
from tasks_app.counts import line_order
from tasks_app.dispatch import handing_out
from tasks_app.dispatch.handing_out import Request, get_jobs, is_sloppy
from tasks_app.domain.lines import LINE, of_job, of_share
from tasks_app.labs.bench.scene import add_jobs
from tasks_app.models import Job
from tests.flow.driving import SITE
from tests.flow.threads import together

BY_SHARES, BY_AGE = 99, 0
"""Chance numbers of calls that obey shares, and that do not."""


@pytest.fixture
def shares(tables: None) -> None:
    """A has 60 per cent, B 30, C 10."""
    Queue.objects.get_or_create(name=SITE, defaults={"site_name": SITE, "core_power": 10})
    for name, value in (("A", 60), ("B", 30), ("C", 10)):
        GlobalShare.objects.create(name=name, value=value)


def fetch(count: int = 1, label: str = "", draw: int = BY_SHARES) -> list[int]:
    return [job["PandaID"] for job in get_jobs(Request(SITE, label, count), draw)]


def drain(count: int = 1, draw: int = BY_SHARES) -> list[int]:
    got: list[int] = []
    while more := fetch(count, draw=draw):
        got += more
    return got


def waiting(*names: str | None, **more: Any) -> list[int]:
    """Activated jobs of these shares, in the order of their numbers."""
    ids = list(add_jobs(len(names), [SITE], "activated"))
    for job, name in zip(ids, names, strict=True):
        Job.objects.filter(pk=job).update(gshare=name, **more)
    return ids


def running(share: str, number: int, **more: Any) -> None:
    for job in add_jobs(number, [SITE], "running", shares=[share]):
        Job.objects.filter(pk=job).update(**{"core_count": 1, **more})


def test_the_most_under_used_share_is_served_first(shares: None) -> None:
    running("A", 60)
    running("B", 35)
    running("C", 5)
    ids = waiting("A", "B", "C", "A", "B", "C")
    assert line_order.line_order().names == ("urgent", "share:Test", "share:C", "share:A", "share:B")
    assert [fetch()[0] for _ in range(3)] == [ids[2], ids[5], ids[0]]
    assert fetch(5) == [ids[3], ids[1], ids[4]]


def test_power_counts_not_the_number_of_jobs(shares: None) -> None:
    Queue.objects.create(name="STRONG", site_name="S", core_power=30)
    running("A", 2, core_count=8)
    running("B", 3, site="STRONG", core_count=None)
    running("C", 1, site="UNKNOWN", core_count=0)
    add_jobs(9, [SITE], "finished", shares=["A"])
    assert line_order.powers_of_shares()[0] == {"A": 160, "B": 90, "C": 10}


def test_inside_a_share_urgent_jobs_go_first_then_those_of_small_number(shares: None) -> None:
    ids = waiting(*["A"] * 6)
    Job.objects.filter(pk__in=ids[4:]).update(current_priority=900)
    assert fetch(3) == [ids[4], ids[5], ids[0]]
    assert drain() == ids[1:4]


def test_jobs_of_the_share_test_go_first_and_those_of_no_share_last(shares: None) -> None:
    ids = waiting(None, "Test", "gone", "B", "Test")
    Job.objects.filter(pk=ids[0]).update(current_priority=5000)
    Job.objects.filter(pk=ids[2]).update(current_priority=6000)
    assert drain() == [ids[1], ids[4], ids[3], ids[2], ids[0]]


@pytest.mark.parametrize("count", [1, 2, 3, 50])
def test_a_call_for_several_jobs_takes_what_a_share_has_and_goes_on_with_the_next(shares: None, count: int) -> None:
    running("A", 90)
    ids = waiting("A", "B", "C", None, "B", "A", "gone", "C")
    order = line_order.line_order()
    names = Job.objects.in_bulk(ids)
    expected = sorted(ids, key=lambda job: (order.place_of(of_share(names[job].gshare or "")), job))
    assert fetch(count) == expected[:count]
    assert drain(count) == expected[count:]


def test_a_call_that_ignores_shares_takes_the_oldest(shares: None) -> None:
    ids = waiting("A", "B", "C", None)
    Job.objects.filter(pk=ids[3]).update(current_priority=9000)
    assert fetch(2, draw=BY_AGE) == ids[:2]
    assert drain(draw=BY_AGE) == ids[2:]


def test_how_many_calls_ignore_shares_is_configured(db: None) -> None:
    assert [is_sloppy(draw) for draw in (0, 10, 11, 99)] == [True, True, False, False]
    GdpConfig.objects.create(
        app="pandaserver", component="jobdispatch", key="SLOPPY_DISPATCH_RATIO", value="50", type="float"
    )
    configured.forget()
    assert [is_sloppy(draw) for draw in (50, 51)] == [True, False]


def test_without_shares_the_chance_number_says_nothing(tables: None) -> None:
    ids = waiting(None, "A")
    Job.objects.filter(pk=ids[1]).update(current_priority=900)
    assert fetch(draw=BY_AGE) == [ids[1]]


def test_a_pilot_gets_jobs_of_the_label_that_it_asks_for(shares: None) -> None:
    running("A", 90)
    ids = waiting("A", "B", None, "B")
    Job.objects.filter(pk__in=ids[:1] + ids[2:3]).update(prod_source_label="managed")
    assert fetch(5, label="managed") == [ids[0], ids[2]]
    assert fetch(5, label="test") == []
    assert drain() == [ids[1], ids[3]]


def test_a_storm_of_pilots_gets_each_job_exactly_once(shares: None) -> None:
    add_jobs(400, [SITE], "activated", shares=["A", "B", "C", "Test", None, "gone"])
    draws = (BY_SHARES, BY_AGE, BY_SHARES, BY_SHARES)
    parts = together(*(lambda draw=draw: drain(3, draw) for draw in draws))
    flat = [job for part in parts for job in part]
    assert (len(flat), len(set(flat))) == (400, 400)


def test_between_full_looks_a_process_goes_on_behind_its_last_job(shares: None) -> None:
    ids = waiting("A", "A", "B", "B")
    assert fetch() == [ids[0]]
    (urgent,) = waiting("A", current_priority=9000)
    (other,) = waiting("Test")
    began = time.monotonic()
    got = fetch()
    if time.monotonic() - began < handing_out.FULL_SCAN_EVERY_S / 2:
        assert got == [ids[1]], "the hint stands behind the first job"
    assert sorted(got + drain()) == sorted([ids[1], ids[2], ids[3], urgent, other])


def test_a_hint_of_another_order_of_shares_is_not_followed(shares: None) -> None:
    ids = waiting("A", "B", "C")
    assert fetch() == [ids[0]]
    running("C", 5)
    running("B", 50)
    line_order.forget()
    (again,) = waiting("A")
    assert drain() == [again, ids[2], ids[1]]


def test_the_order_is_read_with_two_statements_and_then_kept(shares: None) -> None:
    with CaptureQueriesContext(
        connection,
    ) as first:
        line_order.line_order()
    with CaptureQueriesContext(connection) as second:
        line_order.line_order()
    assert (len(first), len(second)) == (2, 0)


def test_urgent_jobs_overtake_all_shares(shares: None) -> None:
    running("A", 90)
    ids = waiting("Test", "B", "A", None, "A")
    Job.objects.filter(pk__in=ids[2:4]).update(processing_type="urgent")
    Job.objects.filter(pk=ids[1]).update(current_priority=9000)
    assert fetch() == [ids[2]], "its share has far more than its part"
    assert drain() == [ids[3], ids[0], ids[1], ids[4]]


@pytest.mark.parametrize(
    ("processing_type", "handling", "share", "queue"),
    [
        ("urgent", None, "A", 1),
        ("urgent", "sj", None, None),
        ("pmerge", "urgent,us", "A", 1),
        ("x", "", "A", 1),
        ("x", None, "A", 1),
        (None, "us", None, 1),
        ("x", None, None, None),
    ],
)
def test_the_line_of_a_job_is_the_same_in_statements_and_in_code(
    tables: None, processing_type: str | None, handling: str | None, share: str | None, queue: int | None
) -> None:
    (job,) = waiting(share, processing_type=processing_type, special_handling=handling, work_queue_id=queue)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {LINE} FROM jobs WHERE pandaid = %s", [job])  # noqa: S608 - a constant
        assert cursor.fetchone() == (of_job(processing_type, handling, share, queue),)


def test_lines_are_found_by_their_index(shares: None) -> None:
    """Else each call would read all jobs that wait at the site."""
    add_jobs(3000, [SITE], "activated", shares=["A", "B", "C"])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE jobs")
        cursor.execute(
            f"""EXPLAIN SELECT pandaid FROM jobs WHERE computingsite = 'x' AND jobstatus = 'activated' AND {LINE} = 'share:A'
                 ORDER BY (currentpriority * -1), pandaid LIMIT 1"""  # noqa: S608 - a constant
        )
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "jobs_dispatch_by_line" in plan and "Filter" not in plan and "Sort" not in plan, plan
