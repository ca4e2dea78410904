"""Samples over time, read for plots and averages. What writes them is tasks_app/counts/sampling.py."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from django.db import connection
from psycopg import sql

INTERVAL: Final = timedelta(minutes=5)
GAUGES: Final = ("running_jobs", "running_cores", "running_hs", "queued_jobs", "queued_hs", "idle_tasks")
FLOWS: Final = ("finished", "failed", "wasted_core_s")
NAMES: Final = (*GAUGES, *FLOWS)
ORIGIN: Final = datetime(2000, 1, 1, tzinfo=UTC)
Of = Literal["site", "share"]


@dataclass(frozen=True, slots=True)
class Series:
    """Numbers over time. `at` are the ends of the steps, evenly `step` apart; every list in `values` is as long.

    Numbers of a moment (GAUGES) are means over a step, None where nobody looked; numbers of what ended (FLOWS) are sums.
    """

    at: list[datetime]
    step: timedelta
    values: Mapping[str, list[float | None]] = field(default_factory=dict)

    def latest(self, name: str) -> float | None:
        """The last known value of a number of the moment."""
        return next((value for value in reversed(self.values[name]) if value is not None), None)

    def total(self, name: str) -> float:
        return sum(value or 0 for value in self.values[name])

    def per_hour(self, name: str) -> list[float | None]:
        """What ended, as a rate."""
        hours = self.step / timedelta(hours=1)
        return [None if value is None else value / hours for value in self.values[name]]

    def failure_percent(self) -> list[float | None]:
        """Failed of all that ended, by step; None where nothing ended."""
        ended = zip(self.values["failed"], self.values["finished"], strict=True)
        return [100 * (bad or 0) / total if (total := (bad or 0) + (good or 0)) else None for bad, good in ended]


def step_for(length: timedelta, most: int = 300) -> timedelta:
    """The shortest step, a round number of intervals, with which `length` has at most `most` points."""
    for minutes in (5, 10, 15, 30, 60, 120, 240, 360, 720):
        if length <= most * timedelta(minutes=minutes):
            return timedelta(minutes=minutes)
    return timedelta(days=1)


def series(site: str = "", share: str = "", *, since: datetime, until: datetime, step: timedelta = INTERVAL) -> Series:
    """The numbers of one site and share ("" is all). One query on the index of one series."""
    ends = steps(since, until, step)
    found = _read(
        sql.SQL("'' AS key"),
        sql.SQL("site = %(site)s AND gshare = %(share)s"),
        NAMES,
        ends[0] - step,
        ends[-1],
        step,
        {"site": site, "share": share},
    )
    return Series(ends, step, _lists(found.get("", {}), NAMES, ends))


def each(
    of: Of,
    *,
    since: datetime,
    until: datetime,
    step: timedelta = INTERVAL,
    names: Iterable[str] = NAMES,
    site: str = "",
    share: str = "",
    under_way: bool = False,
) -> dict[str, Series]:
    """The same for every site or every share that has any sample then, by name. One query. `under_way` as of `steps`.

    With `site` the shares at that site, with `share` the sites of that share: of what was not zero, and of fewer days.
    """
    wanted = tuple(names)
    if of == "site":
        column, where = sql.SQL("site AS key"), sql.SQL("site <> '' AND gshare = %(share)s")
    else:
        column, where = sql.SQL("gshare AS key"), sql.SQL("gshare <> '' AND site = %(site)s")
    # The conditions of the partial indexes are said as constants.
    if not (share if of == "site" else site):
        where = sql.SQL("site <> '' AND gshare = ''") if of == "site" else sql.SQL("site = '' AND gshare <> ''")
    ends = steps(since, until, step, under_way=under_way)
    # A sample of the step under way is put to the end that this will have.
    whole = [ends[0] + step * number for number in range(len(ends))]
    found = _read(column, where, wanted, whole[0] - step, ends[-1], step, {"site": site, "share": share})
    return {key: Series(ends, step, _lists(points, wanted, whole)) for key, points in sorted(found.items())}


def averages(of: Of, name: str, *, sinces: Sequence[datetime], until: datetime) -> dict[str, list[float]]:
    """Means of a number of the moment, of every site or share, since each of some times. One query."""
    column, where = {
        "site": (sql.SQL("site"), sql.SQL("site <> '' AND gshare = ''")),
        "share": (sql.SQL("gshare"), sql.SQL("site = '' AND gshare <> ''")),
    }[of]
    mean = sql.SQL("coalesce(avg({0}) FILTER (WHERE at > %s), 0)::float8").format(sql.Identifier(name))
    statement = sql.SQL("SELECT {0}, {1} FROM samples WHERE {2} AND at > %s AND at <= %s GROUP BY 1").format(
        column, sql.SQL(", ").join([mean] * len(sinces)), where
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [*sinces, min(sinces), until])
        return {key: means for key, *means in cursor.fetchall()}


def steps(since: datetime, until: datetime, step: timedelta, *, under_way: bool = False) -> list[datetime]:
    """Ends of all steps whose interval lies in (since, until], at least one.

    With `under_way` the one that has begun then ends at `until`: right for means of numbers of a moment, not for sums.
    """
    first = ORIGIN + step * ((since - ORIGIN) // step + 1)
    ends = [first + step * number for number in range(max(1, (until - first) // step + 1))]
    return [*ends, until] if under_way and ends[-1] < until else ends


def _read(
    key: sql.Composable,
    where: sql.Composable,
    names: Iterable[str],
    since: datetime,
    until: datetime,
    step: timedelta,
    values: Mapping[str, Any],
) -> dict[str, dict[datetime, tuple[float | None, ...]]]:
    columns = [
        sql.SQL("avg({0})::float8" if name in GAUGES else "sum({0})::float8").format(sql.Identifier(name))
        for name in names
    ]
    # A sample belongs to the step in which its interval ends; an end that is also a step's is that step's.
    statement = sql.SQL(
        """SELECT {key}, date_bin(%(step)s, at - interval '1 second', %(origin)s) + %(step)s AS bin, {columns}
             FROM samples WHERE {where} AND at > %(since)s AND at <= %(until)s GROUP BY 1, 2"""
    ).format(key=key, columns=sql.SQL(", ").join(columns), where=where)
    bounds: dict[str, Any] = {"step": step, "origin": ORIGIN, "since": since, "until": until}
    found: dict[str, dict[datetime, tuple[float | None, ...]]] = defaultdict(dict)
    with connection.cursor() as cursor:
        cursor.execute(statement, {**values, **bounds})
        for name, end, *numbers in cursor.fetchall():
            found[name][end] = tuple(numbers)
    return found


def _lists(
    points: Mapping[datetime, tuple[float | None, ...]], names: Iterable[str], ends: list[datetime]
) -> dict[str, list[float | None]]:
    return {name: [points[end][number] if end in points else None for end in ends] for number, name in enumerate(names)}
