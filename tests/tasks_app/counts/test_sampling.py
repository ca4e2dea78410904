"""Samples over time: what is written every five minutes, and how it is read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from brokerage_app.grid import samples
from brokerage_app.models import GlobalShare, Queue, Sample
from tasks_app.attention import reading
from tasks_app.counts import sampling, statistics
from tasks_app.models import Job, JobStatusLog, Task
from tasks_app.web.overview import tiles
from tests.plans import fill_table, indexes, plan_of

pytestmark = pytest.mark.django_db
AT = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def grid(make_job: Callable[..., Job], make_task: Callable[..., Task]) -> Callable[..., Job]:
    """Two queues, one of them idle, two shares in a tree; a function that ends a job at a moment."""
    Queue.objects.create(name="SITE_A", site_name="A", core_power=20)
    Queue.objects.create(name="IDLE", site_name="I")
    root = GlobalShare.objects.create(name="ATLAS", value=100)
    for name in ("Production", "User"):
        GlobalShare.objects.create(name=name, value=50, parent=root)
    busy, _ = make_task(), make_task(status="pending")
    make_job(gshare="User", core_count=8, status="running", task_id=busy.id)
    make_job(gshare="User", core_count=1, status="activated")
    make_job(site="SITE_B", gshare=None, core_count=2, status="running")

    def ended(status: str, at: datetime, **more: Any) -> Job:
        job = make_job(status=status, gshare="User", core_count=8, end_time=at, **{"start_time": at - MINUTE, **more})
        JobStatusLog.objects.create(job_id=job.id, status=status, at=at, by="adder")
        return job

    return ended


def rows(at: datetime) -> dict[tuple[str, str], tuple[Any, ...]]:
    found = Sample.objects.filter(at=at).values_list("site", "share", *samples.NAMES)
    return {row[:2]: row[2:] for row in found}


def test_a_sample_says_what_runs_waits_and_ended(grid: Callable[..., Job]) -> None:
    grid("failed", AT - MINUTE)
    grid("failed", AT - 5 * MINUTE, start_time=None)
    grid("finished", AT - 2 * MINUTE)
    grid("finished", AT)  # of the next interval
    Sample.objects.create(at=AT - 5 * MINUTE)
    statistics.refresh()
    assert sampling.sample(AT + MINUTE) == 7
    assert sampling.sample(AT + 2 * MINUTE) == 0, "the interval has its samples"
    nothing, at_a = (0, 0, 0.0, 0, 0.0, None, 0, 0, 0), (1, 8, 160.0, 1, 20.0, None, 1, 2, 480)
    assert rows(AT) == {
        ("", ""): (2, 10, 180.0, 1, 20.0, 1, 1, 2, 480),
        ("SITE_A", ""): at_a,
        ("", "User"): at_a,
        ("SITE_A", "User"): at_a,
        ("SITE_B", ""): (1, 2, 20.0, 0, 0.0, None, 0, 0, 0),
        ("IDLE", ""): nothing,
        ("", "Production"): nothing,
    }


def test_the_first_sample_bears_its_own_moment_so_that_no_page_names_one_before_the_site_was_there(
    grid: Callable[..., Job],
) -> None:
    grid("failed", AT - MINUTE)
    statistics.refresh()
    first = AT + 3 * MINUTE
    sampling.sample(first)
    assert rows(AT)[("", "")] == (None, None, None, None, None, None, 0, 1, 480)
    assert rows(first)[("", "")] == (2, 10, 180.0, 1, 20.0, 1, 0, 0, 0)
    assert tiles.live(first + MINUTE, "").measured == first
    Job.objects.filter(status="running").delete()
    Sample.objects.filter(at=first).update(running_jobs=0)
    assert reading.grid(first + MINUTE).idle_since == first
    assert sampling.sample(first + MINUTE) == 0
    sampling.sample(AT + 6 * MINUTE)
    assert rows(AT)[("", "")][-2:] == (1, 480), "what ended is counted by whole intervals all the same"
    assert sampling.sample(AT + 7 * MINUTE) == 0 and set(rows(AT + 5 * MINUTE))


def test_ends_that_were_seen_late_are_counted_and_gaps_show(grid: Callable[..., Job]) -> None:
    statistics.refresh()
    sampling.sample(AT)
    grid("finished", AT - MINUTE)  # its transaction ended after the sample
    grid("failed", AT + 7 * MINUTE)
    sampling.sample(AT + 16 * MINUTE)
    assert rows(AT)[("", "")] == (2, 10, 180.0, 1, 20.0, 1, 1, 0, 0)
    assert rows(AT + 10 * MINUTE)[("SITE_A", "User")] == (None, None, None, None, None, None, 0, 1, 480)

    found = samples.series(since=AT - 5 * MINUTE, until=AT + 15 * MINUTE)
    assert found.at == [AT, AT + 5 * MINUTE, AT + 10 * MINUTE, AT + 15 * MINUTE]
    assert found.values["running_cores"] == [10, None, None, 10] and found.latest("running_cores") == 10
    assert found.values["failed"] == [0, None, 1, 0] and found.total("failed") == 1
    assert found.per_hour("failed") == [0, None, 12, 0] and found.failure_percent() == [0, None, 100, None]
    coarse = samples.series("SITE_A", since=AT - 10 * MINUTE, until=AT + 10 * MINUTE, step=10 * MINUTE)
    assert (coarse.at, coarse.values["failed"]) == ([AT, AT + 10 * MINUTE], [0, 1])
    by_share = samples.each("share", since=AT, until=AT + 15 * MINUTE, names=["running_hs"])
    assert {name: of.values["running_hs"] for name, of in by_share.items()} == {
        "Production": [None, None, 0],
        "User": [None, None, 160],
    }
    assert set(samples.each("site", since=AT, until=AT + 15 * MINUTE, share="User")) == {"SITE_A"}
    means = samples.averages("site", "running_hs", sinces=[AT - MINUTE, AT + 15 * MINUTE], until=AT + 15 * MINUTE)
    assert means["SITE_A"] == [160, 0] and "IDLE" in means


def test_the_api_filters_samples(grid: Callable[..., Job], api: Callable[..., Client]) -> None:
    statistics.refresh()
    sampling.sample(AT)
    client = api()

    def sites(**asked: str) -> set[str]:
        return {row["site"] for row in client.get("/api/v2/samples/", asked).json()["results"]}

    assert sites(of="grid") == {""} and sites(of="pairs") == {"SITE_A"}
    assert sites(of="sites", until=AT.isoformat()) == {"SITE_A", "SITE_B", "IDLE"} and sites(site="IDLE") == {"IDLE"}
    assert sites(since=(AT + MINUTE).isoformat()) == set()
    assert client.get("/api/v2/samples/?of=half").status_code == 422


def test_every_way_of_reading_has_its_index() -> None:
    at = "timestamptz '2026-11-22 12:00+00' - (i / 400) * interval '5 minutes'"
    site = "CASE WHEN i % 400 < 100 OR i % 20 = 0 THEN 'S' || i % 400 ELSE '' END"
    share = "CASE WHEN i % 400 < 100 AND i % 20 > 0 OR i % 400 = 300 THEN '' ELSE 'P' || i % 400 END"
    fill_table("samples", 20_000, at=at, site=site, gshare=share, finished="0", failed="0", wasted_core_s="0")
    recent = f"at > timestamptz '{AT - timedelta(hours=1)}'"
    for where, index in (
        ("site = 'S7' AND gshare = ''", "samples_once"),
        ("site <> '' AND gshare = ''", "samples_sites"),
        ("site = '' AND gshare <> ''", "samples_shares"),
        ("site <> '' AND gshare <> ''", "samples_pairs"),
    ):
        assert index in indexes(plan_of(f"SELECT * FROM samples WHERE {where} AND {recent}")), where  # noqa: S608
