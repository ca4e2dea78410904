"""The page of time-outs: every limit with where it comes from, and how many things are near it or over it now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from jedisite.identity.callers import Right, needs
from tasks_app.configured import timeout_limits, timeout_table
from tasks_app.configured.timeout_table import Timeout
from tasks_app.domain.job_timeouts import TIMEOUTS
from tasks_app.domain.states import JOB_OPEN
from tasks_app.upkeep import overdue
from tasks_app.web.lists.misspelt import takes

NEAR: Final = 0.2
"""Something is near its limit when less than this part of it is left."""

_PENDING = "FROM jedi_tasks t WHERE t.status = 'pending' AND t.oldstatus IS NOT NULL"
_PRODUCTION = "coalesce(t.prodsourcelabel, '') NOT IN ('user', 'panda')"
_BY_USER = "position('type=' in coalesce(t.errordialog, '')) > 0"
# Of each row that is no job's: the rows that it concerns, and when their time is over; %(limit)s is the limit.
_DUE: Final[Mapping[str, tuple[str, str]]] = {
    "task.quick_retry": (_PENDING, "t.next_check_at"),
    "task.pending": (f"{_PENDING} AND {_PRODUCTION} AND coalesce(t.currentpriority, 0) < 900", "t.next_check_at"),
    "task.pending_analysis": (f"{_PENDING} AND t.prodsourcelabel IN ('user', 'panda')", "t.next_check_at"),
    "task.pending_900": (f"{_PENDING} AND {_PRODUCTION} AND t.currentpriority BETWEEN 900 AND 949", "t.next_check_at"),
    "task.pending_950": (f"{_PENDING} AND {_PRODUCTION} AND t.currentpriority >= 950", "t.next_check_at"),
    "task.stuck": (f"{_PENDING} AND t.frozentime IS NOT NULL", "t.frozentime + %(limit)s"),
    "task.exhausted": (
        r"FROM jedi_tasks t WHERE t.status = 'exhausted' AND coalesce(t.splitrule, '') !~ '(^|,)DF=\d'",
        "t.statechangetime + %(limit)s",
    ),
    "task.throttled_attempts": (
        f"FROM jedi_tasks t WHERE t.status = 'throttled' AND NOT {_BY_USER}",
        "t.throttledtime",
    ),
    "task.throttled_user": (f"FROM jedi_tasks t WHERE t.status = 'throttled' AND {_BY_USER}", "t.throttledtime"),
    "task.paused_jobs": (
        """FROM jedi_tasks t WHERE t.status = 'paused' AND EXISTS (SELECT 1 FROM jobs j WHERE j.jeditaskid = t.jeditaskid
             AND j.jobstatus IN ('activated', 'assigned', 'defined', 'pending', 'waiting'))""",
        "t.statechangetime + %(limit)s",
    ),
    "job.waiting_for_lib": (
        """FROM jobs j JOIN job_files f ON f.pandaid = j.pandaid AND f.type = 'lib' JOIN jedi_dataset_contents c
             ON c.jeditaskid = f.jeditaskid AND c.datasetid = f.datasetid AND c.fileid = f.fileid
          WHERE j.jobstatus = 'defined' AND c.status <> 'defined'""",
        "j.statechangetime + %(limit)s",
    ),
    "dataset.growing": (
        """FROM jedi_datasets d JOIN jedi_tasks t USING (jeditaskid) WHERE d.state = 'mutable' AND d.type = 'input'
            AND t.status IN ('ready', 'running', 'scouting')""",
        "d.statecehcktime + %(limit)s",
    ),
    "dataset.forgotten": (
        """FROM jedi_datasets d JOIN jedi_tasks t USING (jeditaskid) WHERE d.type IN ('input', 'pseudo_input')
            AND d.status IN ('defined', 'toupdate') AND t.status IN ('ready', 'running', 'scouting')""",
        "greatest(d.modificationtime, t.modificationtime) + %(limit)s",
    ),
    "lock.task": ("FROM jedi_tasks t WHERE t.lockedby IS NOT NULL", "t.lockedtime + %(limit)s"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """A time-out with its limit here, in seconds, and the things near it and over it; None where none is counted.

    `others` are limits that differ: for whom, and seconds.
    """

    timeout: Timeout
    limit_s: float
    changed: bool
    others: tuple[tuple[str, float], ...]
    near: int | None
    over: int | None

    @property
    def states(self) -> str:
        return ", ".join(self.timeout.states) or "any"


def rows(now: datetime) -> list[Row]:
    """All time-outs with their counts, from two statements or three."""
    counts = {**_job_counts(now), **_other_counts(now)}
    quick = timeout_limits.limit("task.quick_retry") > timedelta()
    found = []
    for name, row in timeout_table.TABLE.items():
        limit = timeout_limits.limit(name)
        near, over = counts.get(name, (None, None))
        if quick != (name == "task.quick_retry") and name.startswith(("task.pending", "task.quick_retry")):
            near = over = None  # the other kind of wait holds here
        others = tuple(
            (" of ".join(filter(None, (suffix, vo))), timeout_limits.limit(name, suffix, vo=vo).total_seconds())
            for suffix, vo in timeout_limits.variants(name)
        )
        found.append(Row(row, limit.total_seconds(), limit != row.default, others, near, over))
    return found


def _job_counts(now: datetime) -> dict[str, tuple[int, int]]:
    """One look at all open jobs."""
    around = overdue.look_around(list(TIMEOUTS), now, early=NEAR)
    near = [overdue.condition(rule, around, early=NEAR) for rule in TIMEOUTS]
    columns = []
    for rule, early in zip(TIMEOUTS, near, strict=True):
        columns += [f"count(*) FILTER (WHERE {early})", f"count(*) FILTER (WHERE {overdue.condition(rule, around)})"]
    statuses = ", ".join(f"'{status}'" for status in sorted(JOB_OPEN))
    # Most jobs are near no limit: those are sorted out first. IS TRUE: all are read once, not by an index for each part.
    statement = f"""SELECT {", ".join(columns)} FROM jobs j WHERE j.jobstatus IN ({statuses})
                       AND coalesce(j.computingsite, '') <> ALL(%(exempt)s::text[])
                       AND ({" OR ".join(f"({early})" for early in near)}) IS TRUE"""  # noqa: S608 - constants of ours
    found = _numbers(statement, overdue.values_of(around, now))
    return {f"job.{rule.name}": (found[2 * i] - found[2 * i + 1], found[2 * i + 1]) for i, rule in enumerate(TIMEOUTS)}


def _other_counts(now: datetime) -> dict[str, tuple[int, int]]:
    parts: list[str] = []
    values: dict[str, Any] = {"now": now}
    for number, (name, (which, due)) in enumerate(_DUE.items()):
        limit = timeout_limits.limit(name)
        values |= {f"limit{number}": limit, f"near{number}": limit * NEAR}
        due = due.replace(
            "%(limit)s", timeout_limits.stuck_sql() if name == "task.stuck" else f"%(limit{number})s::interval"
        )
        parts.append(f"""
            (SELECT count(*) FILTER (WHERE {due} > %(now)s), count(*) FILTER (WHERE {due} <= %(now)s) {which}
                AND {due} <= %(now)s::timestamptz + %(near{number})s::interval) c{number}""")
    found = _numbers(f"SELECT * FROM {', '.join(parts)}", values)  # noqa: S608 - the same
    return {name: (found[2 * i], found[2 * i + 1]) for i, name in enumerate(_DUE)}


def _numbers(statement: str, values: Mapping[str, Any]) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(statement, dict(values))
        return [int(number) for number in cursor.fetchone()]


GROUPS: Final = (("task", "Tasks"), ("job", "Jobs"), ("dataset", "Datasets"), ("lock", "Claims"), ("record", "Records"))


@needs(Right.READ)
@require_safe
@takes()
def timeout_list(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    found = rows(now)
    groups = [(title, [row for row in found if row.timeout.thing == thing]) for thing, title in GROUPS]
    over = sum(row.over or 0 for row in found)
    context = {"section": "agents", "groups": groups, "now": now, "over": over, "near_percent": int(NEAR * 100)}
    return render(request, "tasks_app/timeouts.html", context)
