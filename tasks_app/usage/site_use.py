"""What a queue does and did lately: jobs, cores, pilots, ends, errors, worker nodes, storage. Sets for pages and exports."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection

from brokerage_app.grid.queue_deleting import Held
from brokerage_app.grid.samples import INTERVAL, ORIGIN
from brokerage_app.models import Queue
from brokerage_app.vocabulary.needs import names
from jedisite.agents.registry import REGISTRY
from tasks_app.counts.statistics import COUNTED, JOB_COUNTS
from tasks_app.domain.states import JOB_AT_PILOT, JOB_OPEN, JOB_QUEUED, TASK_FINAL, JobStatus
from tasks_app.domain.units import TELLS_EFFICIENCY
from tasks_app.models.worker import WORKER_ENDED, WORKER_OPEN
from tasks_app.params.kinds import names_of

HOUR, WEEK = timedelta(hours=1), timedelta(days=7)
STATS_FRESH: Final = timedelta(minutes=60)
NEWEST_WORKERS: Final = 500
"""Workers that ended, the newest of a queue, among which those without a job are counted."""


@dataclass(slots=True)
class OpenJobs:
    """Open jobs of one queue as they were counted last; `counted` is when, None before the first count."""

    running: int = 0
    cores: int = 0
    queued: int = 0
    transferring: int = 0
    counted: datetime | None = None


_OPEN = f"""
SELECT counted.at, c.computingsite, c.jobstatus, sum(c.njobs)::int, sum(c.ncores)::int
  FROM {COUNTED} LEFT JOIN job_counts c ON c.computingsite = ANY(%(queues)s) GROUP BY 1, 2, 3
"""  # noqa: S608 - a constant of ours


def open_jobs_of(queues: Sequence[str]) -> dict[str, OpenJobs]:
    """Of each of the queues. One query."""
    rows = _rows(_OPEN, {"queues": list(queues), "counts": [JOB_COUNTS]})
    found = {queue: OpenJobs(counted=rows[0][0]) for queue in queues}
    for _, queue, status, jobs, cores in rows:
        if status in JOB_AT_PILOT:
            found[queue].running += jobs
            found[queue].cores += cores
        elif status in JOB_QUEUED:
            found[queue].queued += jobs
        elif status == JobStatus.TRANSFERRING:
            found[queue].transferring += jobs
    return found


def open_jobs(queue: str) -> OpenJobs:
    """One query."""
    return open_jobs_of([queue])[queue]


_HELD_JOBS = """
SELECT q.name, (SELECT count(*) FROM jobs j WHERE j.computingsite = q.name AND j.jobstatus = ANY(%(jobs)s))::int
  FROM unnest(%(queues)s::text[]) AS q (name)
"""
_WISHES = """
SELECT coalesce(t.site, ''), p.taskparams -> 'includedSite', count(*)::int
  FROM jedi_tasks t LEFT JOIN jedi_taskparams p USING (jeditaskid)
 WHERE t.status <> ALL(%(final)s) AND (t.site <> '' OR p.taskparams -> 'includedSite' IS NOT NULL) GROUP BY 1, 2
"""


def held(queues: Sequence[str]) -> dict[str, Held]:
    """Open jobs of each queue, and open tasks that name it by `site` or `includedSite`: counted now. Three queries.

    A pattern that fits other queues, too, names none of them.
    """
    jobs = dict(_rows(_HELD_JOBS, {"queues": list(queues), "jobs": sorted(JOB_OPEN)}))
    known = list(Queue.objects.values_list("name", flat=True))
    bound, shared = Counter[str](), Counter[str]()
    for site, included, tasks in _rows(_WISHES, {"final": sorted(TASK_FINAL)}):
        wanted = names_of(site) or names_of(json.loads(included or "null"))
        there = {name for name in known if names(wanted, name)}
        for name in there.intersection(queues):
            if len(there) == 1:
                bound[name] += tasks
            elif name in wanted:
                shared[name] += tasks
    return {name: Held(jobs[name], bound[name], shared[name]) for name in queues}


@dataclass(frozen=True, slots=True)
class PilotFlow:
    """Workers of a queue: open ones by state, as they are known one by one and as instances reported numbers; and of the
    newest that ended, how many there are, failed, and never had a job. `local`: pilots of local services, at work or idle."""

    open: Mapping[str, int]
    reported: Mapping[str, int]
    ended: int
    failed: int
    empty: int
    local: int = 0

    @property
    def requested(self) -> int:
        """Workers that are asked for and do not run yet."""
        return sum(n for state, n in self._best.items() if state not in ("running", "idle"))

    @property
    def running(self) -> int:
        return self.local + sum(n for state, n in self._best.items() if state in ("running", "idle"))

    @property
    def _best(self) -> Mapping[str, int]:
        return self.open or self.reported

    @property
    def empty_percent(self) -> float | None:
        return 100 * self.empty / self.ended if self.ended else None


_PILOTS = """
SELECT 'local', '', count(*)::int, 0, 0 FROM api_tokens
 WHERE site = %(queue)s AND worker <> '' AND kind = 'pilot' AND NOT revoked AND expires > %(now)s
UNION ALL
SELECT 'open', status, count(*)::int, 0, 0 FROM harvester_workers
 WHERE computingsite = %(queue)s AND status = ANY(%(open)s) GROUP BY status
UNION ALL
SELECT 'reported', status, sum(n_workers)::int, 0, 0 FROM harvester_worker_stats
 WHERE computingsite = %(queue)s AND lastupdate > %(fresh)s AND status = ANY(%(open)s) GROUP BY status
UNION ALL
SELECT 'ended', '', count(*)::int, (count(*) FILTER (WHERE status = 'failed'))::int,
       (count(*) FILTER (WHERE NOT EXISTS (SELECT 1 FROM harvester_rel_jobs_workers r
                          WHERE r.harvesterid = w.harvesterid AND r.workerid = w.workerid)))::int
  FROM (SELECT harvesterid, workerid, status FROM harvester_workers
         WHERE computingsite = %(queue)s AND status = ANY(%(ended)s) ORDER BY id DESC LIMIT %(newest)s) w
"""


def pilot_flow(queue: str, now: datetime) -> PilotFlow:
    """One query."""
    values = {
        "queue": queue,
        "now": now,
        "open": list(WORKER_OPEN),
        "ended": list(WORKER_ENDED),
        "fresh": now - STATS_FRESH,
        "newest": NEWEST_WORKERS,
    }
    kinds: dict[str, dict[str, int]] = {"open": {}, "reported": {}}
    ended = failed = empty = local = 0
    for kind, status, n, bad, without in _rows(_PILOTS, values):
        if kind == "ended":
            ended, failed, empty = n, bad, without
        elif kind == "local":
            local = n
        elif n:
            kinds[kind][status] = n
    return PilotFlow(kinds["open"], kinds["reported"], ended, failed, empty, local)


_PILOTS_OF = """
SELECT site, 'local', count(*)::int, 0 FROM api_tokens
 WHERE site = ANY(%(queues)s) AND worker <> '' AND kind = 'pilot' AND NOT revoked AND expires > %(now)s GROUP BY 1
UNION ALL
SELECT computingsite, status, count(*)::int, 0 FROM harvester_workers
 WHERE computingsite = ANY(%(queues)s) AND status = ANY(%(open)s) GROUP BY 1, 2
UNION ALL
SELECT computingsite, status, 0, sum(n_workers)::int FROM harvester_worker_stats
 WHERE computingsite = ANY(%(queues)s) AND lastupdate > %(fresh)s AND status = ANY(%(open)s) GROUP BY 1, 2
"""


def pilots_of(queues: Sequence[str], now: datetime) -> dict[str, tuple[int, int]]:
    """(requested, running) workers of each of the queues. One query."""
    values = {"queues": list(queues), "open": list(WORKER_OPEN), "fresh": now - STATS_FRESH, "now": now}
    known: dict[str, dict[str, int]] = {queue: {} for queue in queues}
    reported: dict[str, dict[str, int]] = {queue: {} for queue in queues}
    for queue, status, seen, told in _rows(_PILOTS_OF, values):
        for numbers, n in ((known, seen), (reported, told)):
            if n:
                numbers[queue][status] = n
    local = {queue: known[queue].pop("local", 0) for queue in queues}
    flows = {queue: PilotFlow(known[queue], reported[queue], 0, 0, 0, local[queue]) for queue in queues}
    return {queue: (flow.requested, flow.running) for queue, flow in flows.items()}


_SPEEDS = """
SELECT computingsite,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM starttime - creationtime))::float8,
       (100 * sum(cpuconsumptiontime) FILTER (WHERE {tells}) / sum(core_s) FILTER (WHERE {tells}))::float8
  FROM (SELECT computingsite, creationtime, starttime, cpuconsumptiontime,
               extract(epoch FROM endtime - starttime) * greatest(corecount, 1) AS core_s
          FROM jobs ORDER BY pandaid DESC LIMIT %s) newest
 WHERE starttime >= creationtime AND computingsite IS NOT NULL GROUP BY 1
""".format(tells=TELLS_EFFICIENCY.format(cpu="cpuconsumptiontime", core_s="core_s"))  # noqa: S608 - a condition of ours


def speeds(newest: int) -> dict[str, tuple[float, float | None]]:
    """(median queue time in s, CPU efficiency in percent) of the queues where some of the newest jobs started. One query."""
    return {queue: (waited, efficiency) for queue, waited, efficiency in _rows(_SPEEDS, [newest])}


@dataclass(frozen=True, slots=True)
class Ends:
    """Jobs that ended at a queue in the last hour, and in the same hour a week ago, by the samples of every five minutes.

    at   until when they are counted, at most five minutes ago; None when nothing was counted in the last hour
    """

    finished: int = 0
    failed: int = 0
    finished_then: int = 0
    failed_then: int = 0
    at: datetime | None = None

    @property
    def percent(self) -> float | None:
        return percent(self.failed, self.finished)

    @property
    def percent_then(self) -> float | None:
        return percent(self.failed_then, self.finished_then)


def percent(failed: int, finished: int) -> float | None:
    """Failed of all that ended; None when nothing did."""
    return 100 * failed / (failed + finished) if failed + finished else None


# The hour ends with the last samples, which are those of all sites: else it would lack what is not counted yet.
_ENDS = """
WITH last AS MATERIALIZED (
    SELECT max(at) AS at, max(at) - %(week)s AS then FROM samples
     WHERE site <> '' AND gshare = '' AND at > %(now)s - %(hour)s AND at <= %(now)s)
SELECT site, coalesce(sum(finished) FILTER (WHERE s.at > last.then), 0)::int,
       coalesce(sum(failed) FILTER (WHERE s.at > last.then), 0)::int,
       coalesce(sum(finished) FILTER (WHERE s.at <= last.then), 0)::int,
       coalesce(sum(failed) FILTER (WHERE s.at <= last.then), 0)::int, last.at
  FROM last JOIN samples s ON (s.at > last.at - %(hour)s AND s.at <= last.at)
                           OR (s.at > last.then - %(hour)s AND s.at <= last.then)
 WHERE site <> '' AND gshare = '' AND (%(site)s = '' OR site = %(site)s) GROUP BY site, last.at
"""


def ends(now: datetime, queue: str = "") -> dict[str, Ends]:
    """Ends at one queue, or at all, by name. One query."""
    values = {"now": now, "hour": HOUR, "week": WEEK, "site": queue}
    return {site: Ends(*numbers) for site, *numbers in _rows(_ENDS, values)}


def first_count_within(now: datetime) -> float | None:
    """In how many seconds at most a queue without samples has its first ones; None while the agent writes none. One query.

    The agent looks at every queue at the end of an interval. Two of its periods are left to it.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT max(at) FROM samples WHERE site = '' AND gshare = ''")
        ((last,),) = cursor.fetchall()
    if last is None or now - last > 2 * INTERVAL:
        return None
    left = INTERVAL - (now - ORIGIN) % INTERVAL
    return left.total_seconds() + 2 * REGISTRY["samples"].period_s


@dataclass(frozen=True, slots=True)
class ErrorAt:
    """Failed jobs of a queue with one fingerprint. `nodes` is on how many worker nodes, `node` one of them."""

    id: int
    key: str
    text: str
    jobs: int
    wasted_h: float
    nodes: int
    node: str
    last: datetime
    ticket: str


_ERRORS = """
SELECT f.id, CASE WHEN f.component = '' THEN 'no error' ELSE f.component || ':' || f.code END, f.text, e.jobs, e.wasted, e.nodes,
       e.node, e.last, f.ticket
  FROM (SELECT fingerprint_id, count(*)::int AS jobs, (sum(wasted_core_s) / 3600.0)::float8 AS wasted,
               count(DISTINCT node)::int AS nodes, min(node) AS node, max(ended) AS last
          FROM job_failures WHERE computingsite = %s AND ended >= %s AND ended < %s
         GROUP BY 1 ORDER BY 3 DESC, 2 DESC LIMIT %s) e
  JOIN error_fingerprints f ON f.id = e.fingerprint_id ORDER BY e.wasted DESC, e.jobs DESC, f.id
"""


def top_errors(queue: str, since: datetime, until: datetime, most: int = 8) -> list[ErrorAt]:
    """The errors that wasted most core hours at a queue. One query."""
    return [ErrorAt(*row) for row in _rows(_ERRORS, [queue, since, until, most])]


@dataclass(frozen=True, slots=True)
class Link:
    """The way between a site and another one: closeness, MB/s of the last hour, day and week, and files that wait."""

    source: str
    destination: str
    closeness: float | None
    mbps_1h: float | None
    mbps_1d: float | None
    mbps_1w: float | None
    queued: float | None
    at: datetime

    @property
    def blocked(self) -> bool:
        return self.closeness is not None and self.closeness < 0


_LINKS = """
SELECT src, dst, max(value) FILTER (WHERE key = 'AGIS_closeness'), max(value) FILTER (WHERE key = 'dashb_mbps_1h'),
       max(value) FILTER (WHERE key = 'dashb_mbps_1d'), max(value) FILTER (WHERE key = 'dashb_mbps_1w'),
       sum(value) FILTER (WHERE key LIKE '%%\\_queued'), max(ts)
  FROM network_matrix_kv WHERE {column} = %s AND {other} <> %s GROUP BY src, dst
 ORDER BY (max(value) FILTER (WHERE key = 'AGIS_closeness') < 0) NULLS FIRST,
          max(value) FILTER (WHERE key = 'AGIS_closeness') NULLS LAST, 1, 2 LIMIT %s
"""


def links(site: str, *, outward: bool, most: int = 60) -> list[Link]:
    """Links from a site or to it, the nearest first, blocked ones last. One query."""
    column, other = ("src", "dst") if outward else ("dst", "src")
    return [Link(*row) for row in _rows(_LINKS.format(column=column, other=other), [site, site, most])]


def _rows(statement: str, values: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall()
