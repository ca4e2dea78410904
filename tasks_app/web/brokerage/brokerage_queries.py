"""What the pages on brokerage ask of the database. Counts come from the tables of minutes, hours and days."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from typing import Any, Final

from django.db import connection
from django.db.models import Sum

from brokerage_app.models import VerdictCount
from brokerage_app.verdicts.records import HOURS_KEPT
from tasks_app.domain.states import TASK_FINAL
from tasks_app.domain.window import Window
from tasks_app.domain.words import COUNT_CAP
from tasks_app.drawing.stacks import Period

CHOSEN: Final = "chosen"
"""The name of the layer of decisions, or sites, that were chosen."""
STEPS_MIN: Final = (1, 2, 5, 10, 15, 30, 60, 120, 240, 480)
MOST_STEPS: Final = 150
SITES_SHOWN, CODES_SHOWN = 60, 14
WAITING_SHOWN: Final = 30
DAYS: Final = 30

_MINUTES = """
SELECT date_bin(make_interval(mins => %(step)s), minute, %(since)s), code, sum(decisions)::bigint FROM verdict_minutes
 WHERE minute >= %(since)s AND minute < %(until)s AND kind = %(kind)s AND (%(share)s = '' OR share = %(share)s)
 GROUP BY 1, 2 ORDER BY 1
"""
_HOURS = """
SELECT site, code, sum(decisions)::bigint FROM verdict_hours
 WHERE hour >= %(since)s AND hour < %(until)s AND kind = %(kind)s AND (%(share)s = '' OR share = %(share)s) AND site <> ''
 GROUP BY 1, 2
"""
_DAYS = """
SELECT site, code, sum(decisions)::bigint FROM verdict_counts
 WHERE day >= %(since)s::date AND day < %(until)s AND kind = %(kind)s AND (%(share)s = '' OR share = %(share)s) AND site <> ''
 GROUP BY 1, 2
"""
# The newest verdict of an open task that found nothing: whoever was decided on since then has a newer row.
_WAITING = """
  FROM verdicts v JOIN jedi_tasks t ON t.jeditaskid = v.jeditaskid
 WHERE v.at >= %(since)s AND v.at < %(until)s AND v.code <> '' AND v.kind = %(kind)s
   AND (%(share)s = '' OR v.share = %(share)s) AND (%(code)s = '' OR v.code = %(code)s) AND t.status <> ALL(%(final)s)
   AND NOT EXISTS (SELECT 1 FROM verdicts n WHERE n.jeditaskid = v.jeditaskid AND n.kind = v.kind AND n.id > v.id)
"""
# Counts by code come with the first rows, so that those that wait are looked for once.
_LIST = f"""
WITH w AS MATERIALIZED (SELECT v.id, v.code, v.at {_WAITING} ORDER BY v.at DESC, v.id DESC LIMIT {COUNT_CAP})
SELECT v.id, v.jeditaskid, t.taskname, t.status, v.share, coalesce(t.currentpriority, 0), v.code, v.sentence, v.first_at, v.at,
       v.repeats, (SELECT json_object_agg(code, n) FROM (SELECT code, count(*) AS n FROM w GROUP BY 1) c)::text
  FROM (SELECT id FROM w ORDER BY at DESC, id DESC LIMIT {WAITING_SHOWN + 1}) f
  JOIN verdicts v ON v.id = f.id JOIN jedi_tasks t ON t.jeditaskid = v.jeditaskid ORDER BY v.at DESC, v.id DESC
"""  # noqa: S608 - pieces of this module


@dataclass(frozen=True, slots=True)
class Scope:
    """Which decisions a page looks at. `share` "" is all; `code` concerns tasks that wait only."""

    window: Window
    kind: str = "job"
    share: str = ""
    code: str = ""

    def values(self, **more: Any) -> dict[str, Any]:
        return {
            "since": self.window.since,
            "until": self.window.until,
            "kind": self.kind,
            "share": self.share,
            "code": self.code,
            "final": sorted(TASK_FINAL),
            **more,
        }


def step_of(window: Window) -> int:
    """Minutes of a bin, so that a window has a hundred or so of them."""
    minutes = window.length.total_seconds() / 60
    return next((step for step in STEPS_MIN if minutes / step <= MOST_STEPS), STEPS_MIN[-1])


def decisions_over_time(scope: Scope) -> list[Period]:
    """Decisions by outcome in bins of `step_of` minutes; bins without any are left out. One query."""
    step = step_of(scope.window)
    since = scope.window.since.replace(second=0, microsecond=0)
    bins: dict[datetime, dict[str, int]] = defaultdict(dict)
    for moment, code, decisions in _rows(_MINUTES, scope.values(step=step, since=since)):
        bins[moment][code or CHOSEN] = decisions
    return [Period(moment, moment + timedelta(minutes=step), counts) for moment, counts in sorted(bins.items())]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Decisions by site and code: the sites and the codes with most, and how many of each there are in all.

    chosen    by site
    by        "hour" or "day": the window is widened to whole ones
    """

    sites: Sequence[str] = ()
    codes: Sequence[str] = ()
    cells: Mapping[tuple[str, str], int] = field(default_factory=dict)
    of_site: Mapping[str, int] = field(default_factory=dict)
    of_code: Mapping[str, int] = field(default_factory=dict)
    chosen: Mapping[str, int] = field(default_factory=dict)
    by: str = "hour"

    @property
    def most(self) -> int:
        return max((self.cells.get((site, code), 0) for site in self.sites for code in self.codes), default=0)


def matrix(scope: Scope, now: datetime, part: str = "") -> Matrix:
    """How often each site was skipped by each code in the window; `part` of names of sites. One query.

    Windows that begin before the hours that are kept, or have days to them, are counted by whole days (UTC).
    """
    window = scope.window
    by_hour = now - window.since <= HOURS_KEPT
    if by_hour:
        rows = _rows(_HOURS, scope.values(since=window.since.replace(minute=0, second=0, microsecond=0)))
    else:
        rows = _rows(_DAYS, scope.values(since=window.since.date()))
    cells: dict[tuple[str, str], int] = {}
    of_site, of_code, chosen = Counter[str](), Counter[str](), Counter[str]()
    for site, code, decisions in rows:
        if part.lower() not in site.lower():
            continue
        if not code:
            chosen[site] += decisions
            continue
        cells[site, code] = decisions
        of_site[site] += decisions
        of_code[code] += decisions
    sites = [site for site, _ in sorted(of_site.items(), key=lambda pair: (-pair[1], pair[0]))]
    codes = [code for code, _ in sorted(of_code.items(), key=lambda pair: (-pair[1], pair[0]))]
    return Matrix(
        sites[:SITES_SHOWN], codes[:CODES_SHOWN], cells, of_site, of_code, chosen, "hour" if by_hour else "day"
    )


@dataclass(frozen=True, slots=True)
class Waiting:
    """An open task for which the latest decision found nothing."""

    verdict: int
    task: int
    name: str
    status: str
    share: str
    priority: int
    code: str
    sentence: str
    first_at: datetime
    at: datetime
    repeats: int


@dataclass(frozen=True, slots=True)
class WaitingTasks:
    """The first such tasks, whether there are `more`, and how many each code blocks: of COUNT_CAP tasks at most."""

    rows: list[Waiting]
    more: bool
    by_code: dict[str, int]


def waiting(scope: Scope) -> WaitingTasks:
    """Open tasks whose latest decision, in the window, found nothing: the last decided first. One query."""
    found = _rows(_LIST, scope.values())
    by_code: dict[str, int] = json.loads(found[0][-1]) if found else {}
    counted = sorted(by_code.items(), key=lambda pair: (-pair[1], pair[0]))
    return WaitingTasks(
        [Waiting(*row[:-1]) for row in found[:WAITING_SHOWN]], len(found) > WAITING_SHOWN, dict(counted)
    )


def history_of(code: str, now: datetime) -> tuple[list[Period], dict[str, int]]:
    """How many sites were skipped by a code (or tasks stopped) on each of the last days, by kind; and the sites with most.

    Two queries on the index of codes.
    """
    since = (now - timedelta(days=DAYS)).date()
    counts = VerdictCount.objects.filter(code=code, day__gte=since)
    days: dict[Any, dict[str, int]] = defaultdict(dict)
    for day, kind, n in counts.values_list("day", "kind").annotate(n=Sum("decisions")).order_by("day"):
        days[day][kind] = n
    spans = [
        Period(datetime.combine(day, time(), UTC), datetime.combine(day + timedelta(days=1), time(), UTC), by_kind)
        for day, by_kind in days.items()
    ]
    recent = counts.filter(day__gte=(now - timedelta(days=1)).date()).exclude(site="")
    sites = recent.values_list("site").annotate(n=Sum("decisions")).order_by("-n", "site")[:20]
    return spans, {site: n for site, n in sites}


def _rows(statement: str, values: Mapping[str, Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall()
