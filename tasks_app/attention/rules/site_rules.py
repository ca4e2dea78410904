"""Rules on sites and shares: spikes of failures, work without pilots, closed queues, bad nodes, starved shares. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlencode

from jedisite.vocabulary.words import plural
from tasks_app.attention.rules.attention_facts import ClosedFact, GridFact, RateFact, ShareFact, SiteFact, StorageFact
from tasks_app.attention.rules.findings import Found, address, few, hours, largest, sentence, waits
from tasks_app.domain.states import JOB_QUEUED
from tasks_app.failures.rules.black_holes import BlackHole

SPIKE_FAILED: Final = 20
"""Fewer failures in an hour are no spike."""
SPIKE_PERCENT: Final = 20.0
SPIKE_TIMES: Final = 2.0
SPIKE_POINTS: Final = 10.0
BASE_ENDED: Final = 20
"""Jobs that must have ended in the same hour last week for it to be a measure."""
IDLE_AFTER: Final = timedelta(minutes=10)
UNCALLED_AFTER: Final = timedelta(minutes=5)
"""A job that waits so long at a queue without any pilot so far is told of: nobody has set up pilots there."""
SILENT_AFTER: Final = timedelta(hours=1)
NEWLY: Final = timedelta(hours=24)
HOLDS: Final = frozenset({"offline", "paused"})
"""What is queued there stays: pilots get none of it."""
TAKES_JOBS: Final = frozenset({"online", "standby"})
SHOWN_QUEUES: Final = 5
STARVED_RATIO: Final = 0.5
STARVED_PERCENT: Final = 1.0
"""Smaller shares are not watched: one large job more or less is half of them."""


def is_spike(failed: int, percent: float, usual: float) -> bool:
    """Whether so many failed jobs, in percent of those that ended, are clearly more than usual (0 where that is not known)."""
    clearly = max(SPIKE_PERCENT, SPIKE_TIMES * usual, usual + SPIKE_POINTS)
    return failed >= SPIKE_FAILED and percent >= clearly


def failure_spikes(rates: Iterable[RateFact]) -> Iterator[Found]:
    """Sites, and the grid, where many more jobs fail than in the same hour last week, or than over the last day."""
    found = []
    for rate in rates:
        ended = rate.finished + rate.failed
        percent = 100 * rate.failed / ended if ended else 0.0
        week, day = rate.week_finished + rate.week_failed, rate.day_finished + rate.day_failed
        if week >= BASE_ENDED:
            usual, when = 100 * rate.week_failed / week, "same hour last week"
        elif day >= BASE_ENDED:
            usual, when = 100 * rate.day_failed / day, "previous 24 h"
        else:
            usual, when = 0.0, ""
        if not is_spike(rate.failed, percent, usual):
            continue
        where = f"At {rate.site}" if rate.site else "On the whole grid"
        text = sentence(
            f"{where} {percent:.0f} % of {plural(ended, 'job')} failed in the last hour",
            f"usually {usual:.0f} % ({when})" if when else "",
            f"{rate.wasted_core_s / 3600:.0f} core hours were lost" if rate.wasted_core_s >= 3600 else "",
        )
        query = urlencode({"status": "failed", **({"site": rate.site} if rate.site else {})})
        found.append(
            Found("failures", rate.site, text, f"{address('jobs')}?{query}", rate.site, rate.failed, "failed jobs")
        )
    yield from few(largest(found), "sites have a spike of failures", address("sites"))


def no_pilots(sites: Iterable[SiteFact], now: datetime) -> Iterator[Found]:
    """Queues that take jobs and have some waiting, where nothing runs and no pilot asks, for minutes or hours, or ever."""
    found = []
    for site in sites:
        if site.status not in TAKES_JOBS or not site.activated or site.at_pilots:
            continue
        waits_since = site.uncalled_since or site.silent_since
        if site.pilots != 0 and (waits_since is None or now - waits_since < UNCALLED_AFTER):
            continue
        # Jobs come and are taken back while no pilot asks: since when the oldest waits is not since when none has asked.
        since = site.uncalled_since or site.called_at or site.silent_since
        on_way = plural(site.batch_jobs, "batch job is on its way", "batch jobs are on their way")
        batch = on_way if site.batch_jobs else "no batch job is on its way"
        if site.uncalled_since is not None:
            said = "no pilot has ever asked for jobs there"
        elif site.called_at is not None:
            said = f"no pilot has asked for any since {site.called_at:%Y-%m-%d %H:%M:%S} UTC"
        elif site.pilots == 0:
            said = "no pilot has called for 3 hours"
        else:
            said = f"no pilot has asked for one since {site.silent_since:%Y-%m-%d %H:%M:%S} UTC, when the oldest came"
        text = sentence(f"{waits(site.activated, 'job')} at {site.name}, and {said}", batch)
        path = address("sites", site.name, "why")
        found.append(
            Found("no_pilots", site.name, text, path, site.name, site.activated, "jobs", since or site.last_start)
        )
    yield from few(largest(found), "sites have work but no pilots", address("sites"))


def nothing_runs(grid: GridFact, now: datetime) -> Iterator[Found]:
    """No job runs anywhere for some minutes, although jobs are queued or tasks wait for some."""
    if grid.at_pilots or grid.idle_since is None or now - grid.idle_since < IDLE_AFTER:
        return
    said = f"No job has run for {hours((now - grid.idle_since).total_seconds())}, although"
    if grid.queued:
        text = sentence(f"{said} {plural(grid.queued, 'job is', 'jobs are')} queued", _that_wait_for_a_pilot(grid))
        path = f"{address('jobs')}?{urlencode({'status': 'activated' if grid.activated else ','.join(sorted(JOB_QUEUED))})}"
        yield Found("nothing_runs", "grid", text, path, "", grid.queued, "jobs", grid.idle_since)
    elif grid.idle_tasks:
        text = sentence(f"{said} {waits(grid.idle_tasks, 'task')} for jobs")
        yield Found("nothing_runs", "grid", text, address("tasks"), "", grid.idle_tasks, "tasks", grid.idle_since)


def all_closed(queues: Mapping[str, int], grid: GridFact) -> Iterator[Found]:
    """There are queues, and none of them takes jobs. `queues` are their numbers by status."""
    closed = {status: number for status, number in sorted(queues.items()) if number and status not in TAKES_JOBS}
    number = sum(closed.values())
    if not number or number < sum(queues.values()):
        return
    by_status = ", ".join(f"{count} {'is' if count == 1 else 'are'} {status}" for status, count in closed.items())
    text = sentence(
        f"No queue takes jobs: {by_status}",
        f"{plural(grid.queued, 'job is', 'jobs are')} queued" if grid.queued else "",
        f"{waits(grid.idle_tasks, 'task')} for jobs" if grid.idle_tasks else "",
    )
    yield Found("all_closed", "grid", text, address("sites"), "", number, "queues")


def _that_wait_for_a_pilot(grid: GridFact) -> str:
    if grid.activated < grid.queued:
        return f"{waits(grid.activated, 'job')} for a pilot"
    return "it waits for a pilot" if grid.queued == 1 else "all of them wait for a pilot"


def no_calls(grid: GridFact, now: datetime) -> Iterator[Found]:
    """Jobs could be fetched, and no pilot of any site has asked for one in hours."""
    if not grid.activated or grid.at_pilots or grid.calls:
        return
    if grid.idle_since is None or now - grid.idle_since < SILENT_AFTER:
        return
    text = sentence(f"No pilot has asked for a job for more than {grid.calls_h} h", waits(grid.activated, "job"))
    yield Found("no_calls", "grid", text, address("workers"), "", grid.activated, "jobs", grid.idle_since)


def closed(sites: Iterable[ClosedFact], now: datetime) -> Iterator[Found]:
    """Queues that took jobs until some time in the last day and take none now, and those that hold queued jobs, however long."""
    found = []
    for site in sites:
        newly = site.at is not None and now - site.at <= NEWLY
        holds = site.new in HOLDS and site.queued > 0
        if site.new in TAKES_JOBS or not (newly or holds):
            continue
        became = f"{site.name} went from {site.old} to {site.new}" if site.old else f"{site.name} is {site.new}"
        stay = f"{site.queued} of them queued, which pilots cannot get" if holds else ""
        text = sentence(
            f"{became} by {site.by}" if site.by and site.old else became,
            site.reason[:200],
            ", ".join(filter(None, (f"{plural(site.jobs, 'open job')} affected", stay))) if site.jobs else "",
        )
        path = address("sites", site.name, "why")
        found.append(Found("offline", site.name, text, path, site.name, site.jobs, "jobs", site.at))
    yield from few(largest(found), "sites are newly closed, or closed with queued jobs", address("sites"))


def full_storage(stores: Iterable[StorageFact]) -> Iterator[Found]:
    """Storage without space for outputs, at queues that take jobs: they get none whose outputs go there."""
    found = []
    for store in stores:
        text = sentence(
            f"{store.lack}, as of {store.at:%Y-%m-%d %H:%M} UTC",
            f"jobs whose outputs go there are not sent to {_queues(store)}",
        )
        path = address("sites", store.queues[0], "data")
        found.append(Found("full_storage", store.name, text, path, store.site, len(store.queues), "queues"))
    yield from few(largest(found), "storages are full", address("sites"))


def away_storage(stores: Iterable[StorageFact]) -> Iterator[Found]:
    """Storage whose folder is away: nothing is read or written there, and what needs it waits."""
    found = []
    for store in stores:
        waits = f"jobs that need it are not sent to {_queues(store)}" if store.queues else ""
        text = sentence(f"{store.lack}, seen {store.at:%Y-%m-%d %H:%M} UTC", waits)
        path = address("sites", store.queues[0], "data") if store.queues else address("sites")
        found.append(Found("away_storage", store.name, text, path, store.site, len(store.queues), "queues"))
    yield from few(largest(found), "storages are away", address("sites"))


def _queues(store: StorageFact) -> str:
    more = len(store.queues) - SHOWN_QUEUES
    return ", ".join(store.queues[:SHOWN_QUEUES]) + (f" and {more} more" if more > 0 else "")


def black_holes(holes: Iterable[BlackHole]) -> Iterator[Found]:
    """Worker nodes where nearly all jobs fail quickly, while the rest of their site works."""
    found = []
    for hole in holes:
        ends = hole.ends
        query = urlencode({"status": "failed", "site": ends.site, "node": ends.node})
        key = f"{ends.site}:{ends.node}"[:150]
        path = f"{address('jobs')}?{query}"
        found.append(Found("black_hole", key, sentence(hole.sentence), path, ends.site, ends.failed, "failed jobs"))
    yield from few(largest(found), "worker nodes fail nearly all jobs", address("sites"))


def starved_shares(shares: Iterable[ShareFact]) -> Iterator[Found]:
    """Shares that got less than half of their target over the last day although they have work."""
    found = []
    for share in shares:
        missing = share.target_hs - share.running_hs
        if share.percent < STARVED_PERCENT or share.queued_hs < missing / 2 or missing <= 0:
            continue
        if share.running_hs >= STARVED_RATIO * share.target_hs:
            continue
        part = 100 * share.running_hs / share.target_hs
        text = sentence(
            f"{share.name} had {part:.0f} % of its target over the last day "
            f"({share.running_hs:.0f} of {share.target_hs:.0f} HS23)",
            f"jobs of {share.queued_hs:.0f} HS23 wait",
        )
        path = address("shares", share.name, "why")
        found.append(Found("share", share.name, text, path, share.name, round(missing), "HS23 missing"))
    yield from few(largest(found), "shares are far below their target", address("shares"))
