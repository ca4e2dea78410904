"""A table of failed jobs by two of their dimensions, with shares of what ended, and how dark each cell is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from django.db.models import Count, F, Q, QuerySet, Sum

from tasks_app.domain.job_errors import NO_ERROR
from tasks_app.domain.window import Window
from tasks_app.failures.failure_queries import (
    DIMENSIONS,
    MOST_KINDS,
    Dimension,
    ended_jobs,
    fingerprints,
    in_window,
    key_text,
)
from tasks_app.models import ErrorFingerprint, JobFailure

Measure = Literal["failures", "wasted", "rate"]
MEASURES: Final[dict[Measure, str]] = {
    "failures": "failed jobs",
    "wasted": "core hours wasted",
    "rate": "failures per 1 000 ended jobs",
}
ROWS, COLUMNS = 40, 12
CANDIDATES = 300
"""Rows with most failures, among which those with the highest rates are looked for."""


@dataclass(frozen=True, slots=True)
class Head:
    """The value of a dimension at the head of a row or column. `ended`: jobs of it that ended; None where not counted."""

    key: str
    label: str
    failures: int
    wasted_core_s: int
    ended: int | None

    @property
    def rate(self) -> float | None:
        return per_thousand(self.failures, self.ended)


@dataclass(frozen=True, slots=True)
class Cell:
    """Failures of one row and column; `value` is that of the measure."""

    row: Head
    column: Head
    failures: int
    wasted_core_s: int
    rate: float | None
    value: float | None


@dataclass(frozen=True, slots=True)
class Pivot:
    """Rows and columns are those with most, by the measure; `failures` and `wasted_core_s` are of everything."""

    rows_by: Dimension
    columns_by: Dimension
    measure: Measure
    rows: list[Head]
    columns: list[Head]
    cells: list[list[Cell]]
    failures: int
    wasted_core_s: int
    ended: int | None

    @property
    def rate(self) -> float | None:
        return per_thousand(self.failures, self.ended)

    @property
    def filled(self) -> list[Cell]:
        """The cells that have failures, row by row."""
        return [cell for line in self.cells for cell in line if cell.failures]

    @property
    def rate_of(self) -> str:
        """Of what the rates in the cells are, in words."""
        of = next((d for d in (self.rows_by, self.columns_by) if d.ends), None)
        return f"ended jobs of the {of.title.lower()}" if of else "ended jobs of the whole grid"


def choice(given: Mapping[str, str]) -> tuple[str, str, Measure, list[str]]:
    """Rows, columns and measure that an address asks for, and what is wrong with it, in sentences."""
    faults = []
    chosen = {"rows": given.get("rows") or "error", "columns": given.get("columns") or "site"}
    for name, value in chosen.items():
        if value not in DIMENSIONS:
            faults.append(f"{name} is one of {', '.join(DIMENSIONS)}.")
    measure = next((name for name in MEASURES if name == (given.get("show") or "failures")), None)
    if measure is None:
        faults.append(f"show is one of {', '.join(MEASURES)}.")
    if not faults and chosen["rows"] == chosen["columns"]:
        faults.append("rows and columns must differ.")
    if faults or measure is None:
        return "error", "site", "failures", faults
    return chosen["rows"], chosen["columns"], measure, faults


def per_thousand(failures: int, ended: int | None) -> float | None:
    """None where nothing ended or it was not counted. Hours are counted in full, so that it is 1 000 at most."""
    return 1000 * failures / max(ended, failures) if ended else None


def pivot(
    found: QuerySet[JobFailure],
    window: Window,
    rows_by: str,
    columns_by: str,
    measure: Measure,
    *,
    most_rows: int = ROWS,
    most_columns: int = COLUMNS,
) -> Pivot:
    """The table of the failures that `found` holds. Six queries at most, whatever the number of failures.

    Rates count ended jobs of the row, or of the column when the row is a kind of error, wherever they ran.
    Raises KeyError for a dimension that does not exist.
    """
    row_dimension, column_dimension = DIMENSIONS[rows_by], DIMENSIONS[columns_by]
    found = in_window(found, window)
    of_rows, of_columns = (
        _axis(found, row_dimension, measure, most_rows),
        _axis(found, column_dimension, measure, most_columns),
    )
    failures, wasted = of_rows.totals or of_columns.totals or _totals(found)
    rows, columns = of_rows.heads, of_columns.heads
    ended = ended_jobs(
        {
            "all": [""],
            **{
                d.ends: [h.key for h in heads]
                for d, heads in ((row_dimension, rows), (column_dimension, columns))
                if d.ends
            },
        },
        window,
    )
    rows = _finished(rows, row_dimension, ended, measure)[:most_rows]
    columns = _finished(columns, column_dimension, ended, measure)[:most_columns]
    everything = ended.get(("all", ""))
    counted = _cells(found, replace(of_rows, heads=rows), replace(of_columns, heads=columns))
    values: list[list[tuple[Head, Head, int, int, float | None]]] = []
    for row in rows:
        line = []
        for column in columns:
            n, core_s = counted.get((row.key, column.key), (0, 0))
            of = row.ended if row_dimension.ends else column.ended if column_dimension.ends else everything
            line.append((row, column, n, core_s, per_thousand(n, of)))
        values.append(line)
    shown = [[_value(measure, n, core_s, rate) for _, _, n, core_s, rate in line] for line in values]
    cells = [
        [Cell(*one, value) for one, value in zip(line, line_values, strict=True)]
        for line, line_values in zip(values, shown, strict=True)
    ]
    return Pivot(row_dimension, column_dimension, measure, rows, columns, cells, failures, wasted, everything)


def _totals(found: QuerySet[JobFailure]) -> tuple[int, int]:
    totals = found.aggregate(n=Count("id"), wasted=Sum("wasted_core_s"))
    return totals["n"], totals["wasted"] or 0


def _value(measure: Measure, failures: int, wasted_core_s: int, rate: float | None) -> float | None:
    if not failures:
        return None
    return {"failures": float(failures), "wasted": wasted_core_s / 3600, "rate": rate}[measure]


@dataclass(frozen=True, slots=True)
class _Axis:
    """A dimension with the values that have most. Kinds of errors are counted by fingerprint, which is quick, and put
    together here: `kinds` has the key of each fingerprint. `totals`: failures and core seconds of everything, if known."""

    dimension: Dimension
    heads: list[Head]
    kinds: Mapping[int, str]
    totals: tuple[int, int] | None = None

    @property
    def source(self) -> str:
        return self.dimension.source if self.dimension.ends else "fingerprint_id"

    def condition(self) -> Q:
        keys = {head.key for head in self.heads}
        if not self.dimension.ends:
            return Q(fingerprint_id__in=[number for number, key in self.kinds.items() if key in keys])
        if self.dimension.name != "task":
            return Q(**{f"{self.source}__in": sorted(keys)})
        known = Q(task_id__in=[int(key) for key in keys if key])
        return known | Q(task_id=None) if "" in keys else known

    def key(self, value: Any) -> str:
        return key_text(value) if self.dimension.ends else self.kinds[value]


def _axis(found: QuerySet[JobFailure], dimension: Dimension, measure: Measure, most: int) -> _Axis:
    """The values of a dimension that have most. Rates are compared later, among more of those with most failures."""
    order = "-wasted" if measure == "wasted" else "-n"
    grouped = found.values(axis=F(dimension.source if dimension.ends else "fingerprint_id"))
    grouped = grouped.annotate(n=Count("id"), wasted=Sum("wasted_core_s")).order_by(order, "axis")
    if dimension.ends:
        rows = list(grouped[: CANDIDATES if measure == "rate" else most])
        keys = [key_text(row["axis"]) for row in rows]
        heads = [Head(k, k or "not known", row["n"], row["wasted"], None) for k, row in zip(keys, rows, strict=True)]
        return _Axis(dimension, heads, {})
    rows = list(grouped[:MOST_KINDS])
    prints = fingerprints([row["axis"] for row in rows])
    kinds = {number: _key(dimension, known) for number, known in prints.items()}
    sums: dict[str, list[int]] = {}
    for row in rows:
        line = sums.setdefault(kinds[row["axis"]], [0, 0])
        line[0] += row["n"]
        line[1] += row["wasted"]
    labels = {str(number): str(known) for number, known in prints.items()} if dimension.name == "fingerprint" else {}
    heads = [Head(key, labels.get(key, key), n, wasted, None) for key, (n, wasted) in sums.items()]
    heads.sort(key=lambda head: (-(head.wasted_core_s if measure == "wasted" else head.failures), head.key))
    whole = (sum(head.failures for head in heads), sum(head.wasted_core_s for head in heads))
    return _Axis(dimension, heads[:most], kinds, whole if len(rows) < MOST_KINDS else None)


def _key(dimension: Dimension, known: ErrorFingerprint) -> str:
    if dimension.name == "category":
        return known.category
    if dimension.name == "fingerprint":
        return str(known.id)
    return known.key if known.component else NO_ERROR


def _finished(
    heads: list[Head], dimension: Dimension, ended: Mapping[tuple[str, str], int], measure: Measure
) -> list[Head]:
    """The same with the jobs that ended, in the order of the measure."""
    if not dimension.ends:
        return heads
    heads = [replace(head, ended=ended.get((dimension.ends, head.key))) for head in heads]
    if measure == "rate":
        heads.sort(key=lambda head: (-(head.rate or 0), -head.failures, head.key))
    return heads


def _cells(found: QuerySet[JobFailure], rows: _Axis, columns: _Axis) -> dict[tuple[str, str], tuple[int, int]]:
    """(failures, wasted core seconds) by the keys of row and column. One query."""
    if not rows.heads or not columns.heads:
        return {}
    counted = (
        found.filter(rows.condition(), columns.condition())
        .values(row_key=F(rows.source), column_key=F(columns.source))
        .annotate(n=Count("id"), wasted=Sum("wasted_core_s"))
        .order_by()
    )
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for cell in counted:
        keys = rows.key(cell["row_key"]), columns.key(cell["column_key"])
        n, wasted = sums.get(keys, (0, 0))
        sums[keys] = n + cell["n"], wasted + cell["wasted"]
    return sums
