"""What failed jobs of a window cost, by whom and where."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.db import connection
from django.urls import reverse

from tasks_app.domain import words

TOP: Final = 5
MOST_FAILURES: Final = 50_000
"""Failures of a window that are looked at, the latest ones."""


@dataclass(frozen=True, slots=True)
class Waster:
    """One row of a list of what wasted most: core hours, failed jobs, and its part of all that was wasted, in percent."""

    name: str
    url: str
    hours: float
    failed: int
    percent: float
    note: str = ""

    @property
    def said(self) -> str:
        return words.hours(self.hours)


@dataclass(frozen=True, slots=True)
class Waste:
    """What failed jobs of a window cost, by whom and where. `cut`: only the latest MOST_FAILURES are in it."""

    hours: float
    failed: int
    cut: bool
    lists: list[tuple[str, str, list[Waster]]]

    @property
    def said(self) -> str:
        return words.hours(self.hours)


_WASTE = """
SELECT g, fingerprint_id, r.computingsite, r.jeditaskid, produsername, wasted, failed,
       CASE WHEN f.component = '' THEN 'no error' ELSE f.component || ':' || f.code END, f.text, coalesce(t.taskname, '')
  FROM (
    SELECT grouping(fingerprint_id, computingsite, jeditaskid, produsername) AS g, fingerprint_id, computingsite, jeditaskid,
           produsername, sum(wasted_core_s)::float8 / 3600 AS wasted, count(*) AS failed,
           row_number() OVER (PARTITION BY grouping(fingerprint_id, computingsite, jeditaskid, produsername)
                                  ORDER BY sum(wasted_core_s) DESC, count(*) DESC) AS place
      FROM (SELECT fingerprint_id, computingsite, jeditaskid, produsername, wasted_core_s FROM job_failures
             WHERE ended >= %(since)s AND ended < %(until)s AND (%(share)s = '' OR gshare = %(share)s)
             ORDER BY ended DESC LIMIT %(most)s) f
     GROUP BY GROUPING SETS ((), (fingerprint_id), (computingsite), (jeditaskid), (produsername))) r
  LEFT JOIN error_fingerprints f ON f.id = r.fingerprint_id
  LEFT JOIN jedi_tasks t ON t.jeditaskid = r.jeditaskid
 WHERE place <= %(top)s ORDER BY g, place
"""
_ERRORS, _SITES, _TASKS, _USERS, _ALL = 0b0111, 0b1011, 0b1101, 0b1110, 0b1111


def waste(since: datetime, until: datetime, share: str, window: Mapping[str, str]) -> Waste:
    """The largest wasters of walltime in a window. One query. `window`: parameters of addresses that say it."""
    values: dict[str, Any] = {"since": since, "until": until, "share": share, "most": MOST_FAILURES, "top": TOP}
    by: dict[int, list[tuple[Any, float, int]]] = defaultdict(list)
    errors: dict[Any, tuple[str, str]] = {}
    tasks: dict[Any, str] = {}
    with connection.cursor() as cursor:
        cursor.execute(_WASTE, values)
        for g, error, site, task, user, wasted, failed, error_key, error_text, task_name in cursor.fetchall():
            key = next((one for one in (error, site, task, user) if one is not None), "")
            by[g].append((key, wasted or 0.0, failed))
            if g == _ERRORS and error_text is not None:
                errors[key] = (error_text, error_key)
            elif g == _TASKS:
                tasks[key] = task_name
    (_, hours, failed), *_ = by[_ALL] or [("", 0.0, 0)]

    def row(name: str, url: str, wasted: float, number: int, note: str = "") -> Waster:
        return Waster(name, url, wasted, number, 100 * wasted / hours if hours else 0.0, note)

    def jobs(**given: str) -> str:
        return f"{reverse('dashboard:jobs')}?{urlencode({**given, 'status': 'failed', **window})}"

    lists = [
        (
            "Errors",
            reverse("dashboard:errors"),
            [
                row(errors[key][0] or "no message", reverse("dashboard:error", args=[key]), wasted, n, errors[key][1])
                for key, wasted, n in by[_ERRORS]
                if key in errors
            ],
        ),
        (
            "Sites",
            reverse("dashboard:sites"),
            [
                row(key or "no site", reverse("dashboard:site", args=[key]) if key else "", wasted, n)
                for key, wasted, n in by[_SITES]
            ],
        ),
        (
            "Tasks",
            reverse("dashboard:tasks"),
            [
                row(
                    str(key) if key else "no task",
                    reverse("dashboard:task-errors", args=[key]) if key else "",
                    wasted,
                    n,
                    tasks[key] if key else "",
                )
                for key, wasted, n in by[_TASKS]
            ],
        ),
        ("Users", "", [row(key or "nobody", jobs(user=key), wasted, n) for key, wasted, n in by[_USERS]]),
    ]
    return Waste(hours, failed, failed >= MOST_FAILURES, lists)
