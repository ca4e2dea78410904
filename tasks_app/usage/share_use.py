"""What each global share has now and had lately, against its target: the rows of the page of shares and of its export."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import fsum
from typing import Any, Final

from django.db import connection

from brokerage_app.grid import installed_policy, samples
from brokerage_app.grid.samples import NAMES, Series
from brokerage_app.policy.share_change import STARVED, judged, levels_of
from brokerage_app.policy.shares import ShareTree, Usage
from tasks_app.counts.line_order import EXECUTING, QUEUED
from tasks_app.counts.statistics import ACTIVITY, COUNTED, JOB_COUNTS
from tasks_app.domain.states import TaskStatus
from tasks_app.models.task import SINCE

WAITING: Final = (TaskStatus.READY, TaskStatus.PENDING, TaskStatus.THROTTLED, TaskStatus.ASSIGNING)
"""Tasks that want jobs and have not got all of them."""
DAY, WEEK = timedelta(days=1), timedelta(days=7)
RECENT: Final = timedelta(hours=24)
LOOKED_AT: Final = 200
"""The most urgent waiting tasks of a share whose last decisions are looked at."""
UNMEASURED: Final = 0.25
"""Part of the slots that come free in an hour where no start has been counted."""


@dataclass(frozen=True, slots=True)
class Load:
    """Jobs of a share and their power in HS: those sent or running, and those that are queued (activated)."""

    running_jobs: int = 0
    executing: float = 0.0
    queued_jobs: int = 0
    queued: float = 0.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """Tasks of a share that wait, and the one of them whose status is the oldest."""

    tasks: int
    oldest: int
    since: datetime


@dataclass(frozen=True, slots=True)
class ShareRow:
    """A share of the tree. Percents are of the whole, power is in HS; `day` and `week` are None before there are samples."""

    name: str
    parent: str | None
    level: int
    leaf: bool
    value: int
    percent: float
    actual: float | None
    day: float | None
    week: float | None
    usage: Usage
    load: Load
    waiting: Waiting | None
    state: str

    @property
    def ratio(self) -> float | None:
        """What it has over its target; None without a target."""
        return self.usage.ratio if self.usage.target else None


_LOADS = """
SELECT c.gshare,
       coalesce(sum(c.njobs) FILTER (WHERE c.jobstatus = ANY(%(executing)s)), 0),
       coalesce(sum(c.ncores * coalesce(q.core_power, 10)) FILTER (WHERE c.jobstatus = ANY(%(executing)s)), 0)::float8,
       coalesce(sum(c.njobs) FILTER (WHERE c.jobstatus = ANY(%(queued)s)), 0),
       coalesce(sum(c.ncores * coalesce(q.core_power, 10)) FILTER (WHERE c.jobstatus = ANY(%(queued)s)), 0)::float8
  FROM job_counts c LEFT JOIN queues q ON q.name = c.computingsite
 WHERE (%(resource)s = '' OR c.resource_type = %(resource)s) AND (%(region)s = '' OR q.cloud = %(region)s)
 GROUP BY c.gshare
"""
_WAITING = f"""
SELECT gshare, count(*), (array_agg(jeditaskid ORDER BY since, jeditaskid))[1], min(since)
  FROM (SELECT coalesce(gshare, '') AS gshare, jeditaskid, {SINCE} AS since
          FROM jedi_tasks t WHERE status = ANY(%(waiting)s)) t GROUP BY gshare
"""  # noqa: S608 - constants
_REASONS = """
SELECT s.name, l.code, count(*), min(l.jeditaskid)
  FROM unnest(%(shares)s::text[]) AS s(name)
 CROSS JOIN LATERAL (SELECT t.jeditaskid FROM jedi_tasks t
                      WHERE t.status = ANY(%(waiting)s) AND t.gshare = s.name
                      ORDER BY t.currentpriority DESC NULLS LAST, t.jeditaskid LIMIT %(most)s) t
 CROSS JOIN LATERAL (SELECT v.jeditaskid, v.code, v.at FROM verdicts v WHERE v.jeditaskid = t.jeditaskid
                      ORDER BY v.id DESC LIMIT 1) l
 WHERE l.code <> '' AND l.at > %(since)s
 GROUP BY 1, 2 ORDER BY 1, 3 DESC, 2
"""
_TURNED_OVER = """
SELECT (SELECT sum(started_per_h) FROM queue_activity),
       (SELECT sum(njobs) FROM job_counts WHERE jobstatus = ANY(%(executing)s))
"""


def loads(resource_type: str = "", region: str = "") -> dict[str, Load]:
    """Jobs and power of each share by the counts of open jobs; of one resource type, or at the queues of one region."""
    values = {
        "executing": list(EXECUTING),
        "queued": list(QUEUED),
        "resource": resource_type,
        "region": region,
    }
    return {name: Load(int(r), hs, int(q), queued) for name, r, hs, q, queued in _rows(_LOADS, values)}


@dataclass(frozen=True, slots=True)
class UserLoad:
    """Open jobs of a user in a share."""

    user: str
    running: int
    queued: int


_USERS = f"""
SELECT counted.at, u.* FROM {COUNTED}
  LEFT JOIN (SELECT produsername, sum(nrunning)::int AS running, sum(nqueue)::int AS queued FROM user_counts
              WHERE gshare = %(share)s GROUP BY 1 ORDER BY 2 DESC, 3 DESC, 1 LIMIT %(most)s) u ON true
 ORDER BY u.running DESC, u.queued DESC, u.produsername
"""  # noqa: S608 - a constant


def users_of(share: str, most: int) -> tuple[datetime | None, list[UserLoad]]:
    """The users with most jobs of a share, and when jobs were counted, by share and by user. One query."""
    rows = _rows(_USERS, {"share": share, "most": most, "counts": [JOB_COUNTS, ACTIVITY]})
    return rows[0][0], [UserLoad(*row[1:]) for row in rows if row[1] is not None]


def share_rows(now: datetime, *, resource_type: str = "", region: str = "") -> tuple[ShareRow, ...]:
    """The tree, parents before their children. Three queries, and one more for the averages, which are of all types."""
    return rows_of(installed_policy.share_tree(), now, resource_type=resource_type, region=region)


def rows_of(tree: ShareTree, now: datetime, *, resource_type: str = "", region: str = "") -> tuple[ShareRow, ...]:
    found = loads(resource_type, region)
    below = {name: leaves_of(tree, name) for name in tree.shares}
    usage = tree.usage({n: load.executing for n, load in found.items()}, {n: load.queued for n, load in found.items()})
    total = fsum(found[leaf.name].executing for leaf in tree.leaves if leaf.name in found)
    waiting = {
        name: Waiting(n, oldest, since) for name, n, oldest, since in _rows(_WAITING, {"waiting": list(WAITING)})
    }
    whole = bool(tree) and not resource_type and not region
    day, week = _averages(tree, now) if whole else ({}, {})
    levels = levels_of(tree)
    rows = []
    for name, share in tree.shares.items():
        waits = _oldest(waiting[leaf] for leaf in below[name] if leaf in waiting)
        rows.append(
            ShareRow(
                name=name,
                parent=share.parent,
                level=levels[name],
                leaf=tree.is_leaf(name),
                value=share.value,
                percent=tree.percents[name],
                actual=100 * usage[name].executing / total if total else None,
                day=day.get(name),
                week=week.get(name),
                usage=usage[name],
                load=_sum(found[leaf] for leaf in below[name] if leaf in found),
                waiting=waits,
                state=judged(usage[name], waiting=waits is not None, percent=tree.percents[name]),
            )
        )
    return tuple(rows)


def reasons(rows: Iterable[ShareRow], now: datetime) -> dict[str, list[tuple[str, int, int]]]:
    """Why the tasks of starved leaves wait: (code, tasks, one of them) by share, the most frequent first. One query.

    Of each share the most urgent tasks are looked at, and their last decisions if these are not a day old.
    """
    starved = [row.name for row in rows if row.leaf and row.state == STARVED]
    if not starved:
        return {}
    values = {"shares": starved, "waiting": list(WAITING), "most": LOOKED_AT, "since": now - RECENT}
    found: dict[str, list[tuple[str, int, int]]] = {name: [] for name in starved}
    for name, code, tasks, example in _rows(_REASONS, values):
        found[name].append((code, tasks, example))
    return found


def series_of(tree: ShareTree, name: str, since: datetime, until: datetime, points: int) -> Series:
    """Samples of a share over time; those of an inner one are the sums of its leaves'. One query."""
    step = samples.step_for(until - since, points)
    below = leaves_of(tree, name)
    if below in ([], [name]):
        return samples.series(share=name, since=since, until=until, step=step)
    found = samples.each("share", since=since, until=until, step=step)
    parts = [found[leaf] for leaf in below if leaf in found]
    values = {what: [_total(at) for at in zip(*(one.values[what] for one in parts), strict=True)] for what in NAMES}
    return (
        Series(samples.steps(since, until, step), step, values)
        if parts
        else samples.series(share=name, since=since, until=until, step=step)
    )


def turned_over() -> float:
    """The part of all slots that comes free within an hour: starts of jobs an hour over jobs that execute. One query."""
    ((starts, executing),) = _rows(_TURNED_OVER, {"executing": list(EXECUTING)})
    return min(float(starts) / float(executing), 1.0) if starts and executing else UNMEASURED


def _averages(tree: ShareTree, now: datetime) -> list[dict[str, float]]:
    """Percent of what executed in the last day and week, of each share of the tree; empty before there are samples."""
    found = samples.averages("share", "running_hs", sinces=[now - DAY, now - WEEK], until=now)
    means = [{share: of[place] for share, of in found.items()} for place in range(2)]
    return [_percents(tree, of) for of in means]


def _percents(tree: ShareTree, power: Mapping[str, float]) -> dict[str, float]:
    total = fsum(power.get(leaf.name, 0.0) for leaf in tree.leaves)
    if not total:
        return {}
    return {name: 100 * fsum(power.get(leaf, 0.0) for leaf in leaves_of(tree, name)) / total for name in tree.shares}


def leaves_of(tree: ShareTree, name: str) -> list[str]:
    """The leaves at or below a share."""
    found = []
    for leaf in tree.leaves:
        above: str | None = leaf.name
        while above and above != name:
            above = tree.shares[above].parent
        if above:
            found.append(leaf.name)
    return found


def _total(numbers: Iterable[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return fsum(known) if known else None


def _sum(parts: Iterable[Load]) -> Load:
    many = list(parts)
    return Load(
        sum(one.running_jobs for one in many),
        fsum(one.executing for one in many),
        sum(one.queued_jobs for one in many),
        fsum(one.queued for one in many),
    )


def _oldest(parts: Iterable[Waiting]) -> Waiting | None:
    many = list(parts)
    if not many:
        return None
    first = min(many, key=lambda one: (one.since, one.oldest))
    return Waiting(sum(one.tasks for one in many), first.oldest, first.since)


def _rows(statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall()
