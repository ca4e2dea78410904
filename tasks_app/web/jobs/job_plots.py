"""Plots over a filtered list of jobs: states by hour, times of waiting, CPU efficiency, queue by state. One statement.

Only the newest rows are read, up to the cap of all counts; the page says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet
from psycopg import sql

from tasks_app.domain import words
from tasks_app.domain.units import TELLS_EFFICIENCY
from tasks_app.domain.words import COUNT_CAP
from tasks_app.drawing.bars import Box, pile
from tasks_app.drawing.scales import Frame, Tick

WAITS: Final = (
    (60, "1 min"),
    (300, "5 min"),
    (900, "15 min"),
    (3600, "1 h"),
    (4 * 3600, "4 h"),
    (12 * 3600, "12 h"),
    (24 * 3600, "1 d"),
    (3 * 86400, "3 d"),
)
"""Upper ends of the classes of waiting times; one more class is above them."""
EFFICIENCY_STEP: Final = 10
HOURS: Final = 48
SITES: Final = 15
FRAME: Final = Frame(460, 130, 4, 456, 4, 112)
_COLUMNS = (
    "pk",
    "status",
    "site",
    "modification_time",
    "creation_time",
    "start_time",
    "end_time",
    "cpu_time_s",
    "actual_cores",
    "core_count",
)
_TELLS = sql.SQL(TELLS_EFFICIENCY.format(cpu="cpu", core_s="core_s"))
_OUTER = """
SELECT grouping(hour, wait, efficiency, site), count(*), status, hour, wait, efficiency, site FROM (
    SELECT status, coalesce(site, '') AS site, date_bin('1 hour', changed, 'epoch') AS hour,
           width_bucket(extract(epoch FROM started - created), %s::numeric[]) AS wait,
           CASE WHEN {tells} THEN width_bucket(100.0 * cpu / core_s, 0, 100, 10) END AS efficiency
      FROM ({inner}) AS newest (id, status, site, changed, created, started, ended, cpu, actual, cores),
           LATERAL (SELECT extract(epoch FROM ended - started) * coalesce(nullif(actual, 0), nullif(cores, 0), 1) AS core_s) u) j
 GROUP BY GROUPING SETS ((status, hour), (wait), (efficiency), (status, site))
"""


@dataclass(frozen=True, slots=True)
class Piece:
    """A rectangle of a plot, and what it says."""

    box: Box
    tone: str
    title: str


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars from left to right, stacked where a bar has several pieces; `rows` are the same numbers as a table."""

    title: str
    pieces: list[Piece]
    marks: list[Tick]
    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]
    legend: Sequence[tuple[str, str]] = ()
    top: int = 0
    frame: Frame = FRAME


@dataclass(frozen=True, slots=True)
class Matrix:
    """Jobs by queue and state: heads, then a row a queue with numbers in their order and the part of the largest."""

    statuses: list[str]
    rows: list[tuple[str, list[tuple[str, int]], int]]
    others: int


@dataclass(frozen=True, slots=True)
class JobPlots:
    jobs: int
    is_capped: bool
    hours: Bars
    waits: Bars
    efficiencies: Bars
    matrix: Matrix

    @property
    def bars(self) -> tuple[Bars, ...]:
        return (self.hours, self.waits, self.efficiencies)


def of(queryset: QuerySet[Any], cap: int = COUNT_CAP) -> JobPlots | None:
    """The plots of the newest `cap` rows; None when there are none."""
    try:
        inner, parameters = queryset.order_by("-pk").values_list(*_COLUMNS)[:cap].query.sql_with_params()
    except EmptyResultSet:
        return None
    with connection.cursor() as cursor:
        statement = sql.SQL(_OUTER).format(inner=sql.SQL(inner), tells=_TELLS)
        cursor.execute(statement, [[float(end) for end, _ in WAITS], *parameters])
        found = cursor.fetchall()
    by_hour: dict[tuple[datetime, str], int] = {}
    by_site: dict[tuple[str, str], int] = {}
    waits: dict[int, int] = defaultdict(int)
    efficiencies: dict[int, int] = defaultdict(int)
    # Of hour, wait, efficiency and site, the one that stands for a group has its bit unset.
    for mask, number, status, hour, wait, efficiency, site in found:
        if not mask & 8:
            by_hour[hour, status] = number
        elif not mask & 4 and wait is not None:
            waits[wait] += number
        elif not mask & 2 and efficiency is not None:
            efficiencies[efficiency] += number
        elif not mask & 1:
            by_site[site, status] = number
    jobs = sum(by_hour.values())
    if not jobs:
        return None
    names = [f"up to {WAITS[0][1]}", *(f"to {name}" for _, name in WAITS[1:]), f"over {WAITS[-1][1]}"]
    percents = [f"{low}–{low + EFFICIENCY_STEP} %" for low in range(0, 100, EFFICIENCY_STEP)] + ["over 100 %"]
    return JobPlots(
        jobs,
        jobs >= cap,
        _by_hour(by_hour),
        _histogram("Time waited before the start", names, [waits[n] for n in range(len(names))], "Waited"),
        _histogram(
            "CPU efficiency of ended jobs", percents, [efficiencies[n + 1] for n in range(11)], "CPU time over walltime"
        ),
        _matrix(by_site),
    )


def _by_hour(counts: dict[tuple[datetime, str], int]) -> Bars:
    """Jobs by the hour of their last change, stacked by what their state says."""
    hours = sorted({hour for hour, _ in counts})[-HOURS:]
    statuses = [status for status in words.JOB_TONE_ORDER if any(s == status for _, s in counts)]
    columns = [[counts.get((hour, status), 0) for status in statuses] for hour in hours]
    boxes = pile(FRAME, columns, fewest=8, gap=0.1)
    pieces = [
        Piece(box, words.tone(status), f"{hour:%Y-%m-%d %H}:00 UTC: {words.count(number)} {status}")
        for hour, column, of_hour in zip(hours, columns, boxes, strict=True)
        for status, number, box in zip(statuses, column, of_hour, strict=True)
        if number
    ]
    rows = [[f"{hour:%Y-%m-%d %H}:00", *column] for hour, column in zip(hours, columns, strict=True)]
    x = FRAME.x(0, max(len(hours), 8))
    every = max(1, len(hours) // 6)
    marks = [Tick(x(place), f"{hour:%H}:00") for place, hour in enumerate(hours) if place % every == 0]
    tones = {words.tone(status): "" for status in statuses}
    legend = [(tone, ", ".join(s for s in statuses if words.tone(s) == tone)) for tone in tones]
    return Bars(
        "States by the hour of the last change",
        pieces,
        marks,
        ["Hour (UTC)", *statuses],
        rows,
        legend,
        max(map(sum, columns)),
    )


def _histogram(title: str, names: Sequence[str], numbers: Sequence[int], head: str) -> Bars:
    boxes = pile(FRAME, [[number] for number in numbers], gap=0.05)
    pieces = [
        Piece(box, "run", f"{name}: {words.plural(number, 'job')}")
        for name, number, (box,) in zip(names, numbers, boxes, strict=True)
        if number
    ]
    x = FRAME.x(0, len(names))
    marks = [
        Tick(x(place), name.removeprefix("up to ").removeprefix("to ").removesuffix(" %"))
        for place, name in enumerate(names)
        if place % 2 == 0
    ]
    return Bars(title, pieces, marks, [head, "Jobs"], list(zip(names, numbers, strict=True)), (), max([*numbers, 1]))


def _matrix(counts: dict[tuple[str, str], int]) -> Matrix:
    statuses = [status for status in words.JOB_TONE_ORDER if any(s == status for _, s in counts)]
    totals: dict[str, int] = defaultdict(int)
    for (site, _), number in counts.items():
        totals[site] += number
    busiest = sorted(totals, key=lambda site: (-totals[site], site))
    rows = [
        (site, [(status, counts.get((site, status), 0)) for status in statuses], totals[site])
        for site in busiest[:SITES]
    ]
    return Matrix(statuses, rows, max(len(busiest) - SITES, 0))
