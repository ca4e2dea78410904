"""What the pages on errors ask of the books of failed jobs: sets of rows, each with one query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any, Final

from django.db import connection
from django.db.models import Count, F, Max, Min, Q, QuerySet, Sum

from tasks_app.domain.window import Window
from tasks_app.failures.rules.spreads import Over, Spread
from tasks_app.models import ErrorFingerprint, JobEnds, JobFailure

NEW_FOR = timedelta(days=1)
"""An error counts as new so long after it was first seen."""
SAMPLE = 300
"""Failures of one kind that are looked at to say how they are spread, where there are more."""
MOST_KINDS = 2000


@dataclass(frozen=True, slots=True)
class Dimension:
    """Something by which failures are counted. `source`: where the failure has it. `filter`: the parameter of addresses that
    picks a value. `ends`: the dimension in which ended jobs are counted; "" where those have none, as with errors."""

    name: str
    title: str
    source: str
    filter: str
    ends: str = ""


DIMENSIONS: Final[Mapping[str, Dimension]] = {
    d.name: d
    for d in (
        Dimension("category", "Category", "fingerprint__category", "category"),
        Dimension("error", "Error", "", "error"),
        Dimension("fingerprint", "Fingerprint", "fingerprint_id", "fingerprint"),
        Dimension("site", "Site", "site", "site", "site"),
        Dimension("node", "Worker node", "node", "node", "node"),
        Dimension("task", "Task", "task_id", "task", "task"),
        Dimension("user", "User", "user", "user", "user"),
        Dimension("activity", "Activity", "activity", "share", "activity"),
        Dimension("version", "Pilot", "pilot_version", "version", "version"),
    )
}


def in_window(found: QuerySet[JobFailure], window: Window) -> QuerySet[JobFailure]:
    return found.filter(ended__gte=window.since, ended__lt=window.until)


def key_text(value: Any) -> str:
    """A value of a dimension as addresses and counts have it."""
    return "" if value is None else str(value)


def ended_jobs(keys: Mapping[str, Sequence[str]], window: Window) -> dict[tuple[str, str], int]:
    """Jobs that finished or failed, by dimension and key. One query.

    By full hours: also those of the hour in which the window begins.
    """
    wanted = reduce(or_, (Q(dimension=name, key__in=list(values)) for name, values in keys.items()), Q())
    if not wanted:
        return {}
    found = JobEnds.objects.filter(
        wanted, hour__gte=window.since.replace(minute=0, second=0, microsecond=0), hour__lt=window.until
    )
    totals = found.values_list("dimension", "key").annotate(n=Sum(F("finished") + F("failed"))).order_by()
    return {(dimension, key): n for dimension, key, n in totals}


@dataclass(frozen=True, slots=True)
class Kind:
    """Failures of one fingerprint, which has the number, in a window."""

    number: int
    category: str
    first_seen: datetime
    failures: int
    wasted_core_s: int
    first: datetime
    last: datetime
    new: bool


def kinds(found: QuerySet[JobFailure], now: datetime) -> list[Kind]:
    """The failures by fingerprint, all of them in no order: there may be thousands, so no models are made. Two queries."""
    counted = {"n": Count("id"), "wasted": Sum("wasted_core_s"), "first": Min("ended"), "last": Max("ended")}
    rows = list(found.order_by().values_list("fingerprint_id").annotate(**counted))
    of_all = ErrorFingerprint.objects.filter(pk__in=[row[0] for row in rows]).values_list(
        "id", "category", "first_seen"
    )
    known = {number: (category, first_seen) for number, category, first_seen in of_all}
    return [
        Kind(number, *known[number], n, wasted, first, last, now - known[number][1] < NEW_FOR)
        for number, n, wasted, first, last in rows
    ]


_SPREAD = """
SELECT p.id, s.over, s.several, s.top, s.most, s.looked_at
  FROM unnest(%s::int[]) p (id), LATERAL (
    SELECT over, count(*) AS several, max(n) AS most, (array_agg(key ORDER BY n DESC, key))[1] AS top, max(looked_at) AS looked_at
      FROM (SELECT CASE grouping(site, node, task_id, owner, pilot_version)
                     WHEN 15 THEN 'site' WHEN 23 THEN 'node' WHEN 27 THEN 'task' WHEN 29 THEN 'user' ELSE 'version' END AS over,
                   coalesce(site, node, task_id::text, owner, pilot_version, '') AS key, count(*) AS n,
                   sum(count(*)) OVER (PARTITION BY grouping(site, node, task_id, owner, pilot_version))
                     AS looked_at
              FROM (SELECT f.site, f.node, f.task_id, f."user" AS owner, f.pilot_version
                      FROM ({found}) f WHERE f.fingerprint_id = p.id ORDER BY f.ended DESC LIMIT %s) newest
             GROUP BY GROUPING SETS ((site), (node), (task_id), (owner), (pilot_version))) counted
     GROUP BY over) s
"""


def _sql_of(found: QuerySet[JobFailure], *names: str) -> tuple[str, tuple[Any, ...]]:
    """The statement for these columns of failures, and its values; also of none, where Django would raise EmptyResultSet."""
    query = found.order_by().values_list(*names).query
    sql, values = query.get_compiler(connection=connection, elide_empty=False).as_sql()
    return sql, tuple(values)


def spreads(found: QuerySet[JobFailure], fingerprints: Sequence[int], sample: int = SAMPLE) -> dict[int, Spread]:
    """How the failures of each of these fingerprints are spread, by the newest of them. One query."""
    names = ("ended", "fingerprint_id", "site", "node", "task_id", "user", "pilot_version")
    inner, values = _sql_of(found, *names)
    over: dict[int, dict[str, Over]] = {number: {} for number in fingerprints}
    looked_at: dict[int, int] = {}
    with connection.cursor() as cursor:
        cursor.execute(_SPREAD.replace("{found}", inner), [list(fingerprints), *values, sample])
        for number, name, several, top, most, seen in cursor.fetchall():
            over[number][name] = Over(several, top, most)
            looked_at[number] = int(seen)
    return {n: Spread(looked_at[n], over[n], looked_at[n] >= sample) for n in fingerprints if n in looked_at}


def over_time(found: QuerySet[JobFailure], window: Window, bins: int = 48) -> tuple[timedelta, list[int]]:
    """Failures in equal steps over a window, and the length of a step. One query."""
    step = timedelta(seconds=max(60, round(window.length.total_seconds() / bins / 60) * 60))
    inner, values = _sql_of(found, "ended")
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT date_bin(%s::interval, ended, %s), count(*) FROM ({inner}) f GROUP BY 1",  # noqa: S608
            [f"{step.total_seconds()} seconds", window.since, *values],
        )
        counted = dict(cursor.fetchall())
    steps = -(-window.length // step)
    return step, [counted.get(window.since + n * step, 0) for n in range(steps)]


def fingerprints(numbers: Sequence[int]) -> dict[int, ErrorFingerprint]:
    found: dict[int, ErrorFingerprint] = ErrorFingerprint.objects.in_bulk(list(numbers))
    return found


@dataclass(frozen=True, slots=True)
class Top:
    """One value of a dimension and its failures."""

    key: str
    failures: int
    wasted_core_s: int


_TOPS = """
SELECT over, key, n, wasted FROM (
    SELECT CASE grouping(site, node, task_id, owner, activity, pilot_version)
             WHEN 31 THEN 'site' WHEN 47 THEN 'node' WHEN 55 THEN 'task' WHEN 59 THEN 'user' WHEN 61 THEN 'activity'
             ELSE 'version' END AS over,
           coalesce(site, node, task_id::text, owner, activity, pilot_version, '') AS key, count(*) AS n,
           sum(wasted_core_s) AS wasted,
           row_number() OVER (PARTITION BY grouping(site, node, task_id, owner, activity, pilot_version)
                              ORDER BY count(*) DESC) AS place
      FROM (SELECT f.site, f.node, f.task_id, f."user" AS owner, f.activity, f.pilot_version, f.wasted_core_s
              FROM ({found}) f ORDER BY f.ended DESC LIMIT %s) newest
     GROUP BY GROUPING SETS ((site), (node), (task_id), (owner), (activity), (pilot_version))) counted
 WHERE place <= %s ORDER BY over, n DESC, key
"""
TOPS_OVER: Final = ("site", "node", "task", "user", "activity", "version")


def tops(found: QuerySet[JobFailure], newest: int, most: int) -> dict[str, list[Top]]:
    """The values of each dimension that have most of the failures, by the `newest` of them. One query."""
    names = ("ended", "site", "node", "task_id", "user", "activity", "pilot_version", "wasted_core_s")
    inner, values = _sql_of(found, *names)
    lines: dict[str, list[Top]] = {name: [] for name in TOPS_OVER}
    with connection.cursor() as cursor:
        cursor.execute(_TOPS.replace("{found}", inner), [*values, newest, most])
        for over, key, n, wasted in cursor.fetchall():
            lines[over].append(Top(key, n, int(wasted)))
    return lines


def top_sites(found: QuerySet[JobFailure], numbers: Sequence[int], most: int = 3) -> dict[int, list[Top]]:
    """The sites that have most failures of each fingerprint. For the failures of one task. One query."""
    counted = (
        found.filter(fingerprint_id__in=list(numbers))
        .values_list("fingerprint_id", "site")
        .annotate(n=Count("id"), wasted=Sum("wasted_core_s"))
        .order_by("-n", "site")
    )
    sites: dict[int, list[Top]] = {}
    for number, site, n, wasted in counted:
        of_kind = sites.setdefault(number, [])
        if len(of_kind) < most:
            of_kind.append(Top(site, n, wasted))
    return sites
