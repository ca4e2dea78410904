"""bench dispatch: pilots fetch jobs, against UPDATE of one job by its key; over HTTP; with an old snapshot held open."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import psycopg
from django.db import connection

from brokerage_app.models import GlobalShare
from tasks_app.counts import line_order
from tasks_app.dispatch import handing_out
from tasks_app.dispatch.handing_out import Request, get_jobs
from tasks_app.labs.bench import clients, scene, web
from tasks_app.labs.bench.crowd import Done, Step, crowd
from tasks_app.labs.bench.database import Place, empty, settle
from tasks_app.labs.bench.measuring import Result, Target, in_turn

PATH = "/api/v1/pilot/acquire_jobs"
PROCESSES = 8
LAST_S = 3.0
RAW, KEPT, MANY, SHARED, ONE, HTTP = (
    "UPDATE by key",
    "UPDATE by key, one cursor kept",
    "get job, 20 sites",
    "get job, 20 sites, 20 shares",
    "get job, one site",
    "get job over HTTP",
)

_BY_KEY = """
UPDATE jobs SET jobstatus = 'sent', fence = fence + 1, secret_hash = %(secret)s, modificationhost = %(node)s,
       workerid = %(worker)s, modificationtime = clock_timestamp(), statechangetime = clock_timestamp(),
       heartbeat_at = clock_timestamp()
 WHERE pandaid = %(job)s
"""


def by_key(jobs: range, *, keep_cursor: bool = False) -> Callable[[int], Step]:
    """Each process takes every eighth job.

    A cursor a statement, as clients that keep none have it; or one for all, the least a client can do.
    """

    def make(index: int) -> Step:
        mine = iter(jobs[index::PROCESSES])
        connection.ensure_connection()
        line = connection.connection
        kept = psycopg.Cursor(line) if keep_cursor else None

        def step() -> int:
            job_id = next(mine, None)
            if job_id is None:
                return 0
            values = {"secret": scene.DIGEST, "node": "node001.bench", "worker": "12345", "job": job_id}
            if kept is not None:
                return kept.execute(_BY_KEY, values).rowcount
            with psycopg.Cursor(line) as cursor:
                return cursor.execute(_BY_KEY, values).rowcount

        return step

    return make


def by_asking(sites: list[str]) -> Callable[[int], Step]:
    """Each process asks for jobs of the sites in turn; each begins with another site."""

    def make(index: int) -> Step:
        handing_out._hints.clear()
        line_order.forget()
        names = itertools.cycle(sites[index % len(sites) :] + sites[: index % len(sites)])
        empty_in_a_row = 0

        def step() -> int:
            nonlocal empty_in_a_row
            for name in names:
                if get_jobs(Request(name, "user", 1, "node001.bench", "12345")):
                    empty_in_a_row = 0
                    return 1
                empty_in_a_row += 1
                if empty_in_a_row >= len(sites):
                    return 0
            return 0

        return step

    return make


def fresh(number: int, sites: list[str], shares: Sequence[str | None] = (None,)) -> range:
    empty(*scene.JOB_TABLES)
    jobs = scene.add_jobs(number, sites, "activated", shares=shares)
    settle("jobs", "job_files", "job_params")
    return jobs


@contextmanager
def shares_configured(number: int) -> Iterator[list[str]]:
    """A tree of that many leaves under four branches, for as long as the block lasts. Names of the leaves."""
    top = [GlobalShare.objects.create(name=f"Branch {place}", value=10 + place) for place in range(4)]
    leaves = [
        GlobalShare.objects.create(name=f"Share {place}", value=1 + place, parent=top[place % 4]).name
        for place in range(number)
    ]
    yield leaves
    GlobalShare.objects.filter(parent__isnull=False).delete()
    GlobalShare.objects.all().delete()


@contextmanager
def snapshot_held(url: str) -> Iterator[None]:
    """A transaction of somebody else that sees the tables as they were, as a dump does."""
    with psycopg.connect(url) as other:
        other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        other.execute("SELECT count(*) FROM jobs")
        yield


def run(place: Place, sizes: Sequence[int], rounds: int, say: Callable[[str], None]) -> Result:
    number, case_ms, held_ms = [*sizes, *(24_000, 2000, 10_000)[len(sizes) :]]
    sites, seconds = scene.site_names(20), case_ms / 1000

    def raw() -> float:
        return crowd(PROCESSES, by_key(fresh(number, sites)), seconds).rate

    def kept() -> float:
        return crowd(PROCESSES, by_key(fresh(number, sites), keep_cursor=True), seconds).rate

    def many() -> float:
        fresh(number, sites)
        return crowd(PROCESSES, by_asking(sites), seconds).rate

    def shared() -> float:
        with shares_configured(20) as shares:
            fresh(number, sites, shares)
            return crowd(PROCESSES, by_asking(sites), seconds).rate

    def one() -> float:
        fresh(number, sites[:1])
        return crowd(PROCESSES, by_asking(sites[:1]), seconds).rate

    with web.running(place) as server:
        token = web.pilot_token()
        requests = [clients.post(PATH, token, question(site)) for site in sites]
        loads: list[clients.Load] = []

        def http() -> float:
            fresh(number, sites)
            asked = itertools.cycle(requests)
            loads.append(clients.load(server.port, asked, _has_job, PROCESSES, seconds, keep=True))
            if not loads[-1].good:
                raise RuntimeError(f"no job came over HTTP: {loads[-1].example!r}")
            return loads[-1].rate

        rates = in_turn({RAW: raw, KEPT: kept, MANY: many, SHARED: shared, ONE: one, HTTP: http}, rounds, say)
    free, held = _with_snapshot(place, number, sites[0], held_ms / 1000, max(1, rounds // 2), say)
    p99 = sorted(seen.percentile_ms(99) for seen in loads)[len(loads) // 2]
    result = Result(
        "dispatch", "jobs/s", rates, MANY, RAW, {"jobs": number, "case_ms": case_ms, "snapshot_ms": held_ms}
    )
    result.more = {
        "http_p99_ms": round(p99, 1),
        "rate_without_snapshot": round(free, 1),
        "rate_with_snapshot": round(held, 1),
    }
    result.targets += [
        Target("get job, 20 sites / UPDATE by key", rates.ratio(MANY, RAW), 0.6, 0.75),
        Target("get job, 20 sites, 20 shares / 20 sites", rates.ratio(SHARED, MANY), 0.7, 0.9),
        Target("get job, one site / UPDATE by key", rates.ratio(ONE, RAW), 0.45, 0.6),
        Target("get job over HTTP / directly", rates.ratio(HTTP, MANY), 0.15, 0.25),
        Target("99 % of the answers over HTTP within ms", p99, 100, 50, at_most=True),
        Target("one site with a snapshot held / without", held / free if free else 0.0, 0.3, 0.8),
    ]
    return result


def question(site: str) -> dict[str, object]:
    return {
        "site_name": site,
        "prod_source_label": "user",
        "node": "node001.bench",
        "memory": 4000,
        "disk_space": 10_000,
        "worker_id": "12345",
        "n_jobs": 1,
    }


def _has_job(answer: bytes) -> bool:
    return b'"PandaID"' in answer


def _with_snapshot(
    place: Place, number: int, site: str, seconds: float, rounds: int, say: Callable[[str], None]
) -> tuple[float, float]:
    """Rates of the last seconds of draining one site, without and with a snapshot held: medians."""
    # Enough jobs for the whole time, judged by a short try.
    fresh(number, [site])
    wanted = max(number, int(crowd(PROCESSES, by_asking([site]), min(1.0, seconds)).rate * seconds * 1.5))
    free: list[float] = []
    held: list[float] = []
    for turn in range(rounds):
        fresh(wanted, [site])
        free.append(_end_rate(crowd(PROCESSES, by_asking([site]), seconds), seconds))
        fresh(wanted, [site])
        with snapshot_held(place.url):
            held.append(_end_rate(crowd(PROCESSES, by_asking([site]), seconds), seconds))
        say(f"snapshot round {turn + 1} of {rounds}: without {free[-1]:,.0f}/s, held {held[-1]:,.0f}/s")
    return sorted(free)[len(free) // 2], sorted(held)[len(held) // 2]


def _end_rate(done: Done, seconds: float) -> float:
    """The rate of the last 3 seconds, or of the last third of a shorter run."""
    end = min(seconds, done.seconds)
    return done.rate_between(end - min(LAST_S, max(0.5, end / 3)), end) or done.rate
