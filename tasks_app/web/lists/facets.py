"""Counts of a filtered list by its attributes: what there is to choose from. One statement for all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import F, QuerySet, Value
from psycopg import sql

from tasks_app.domain.words import COUNT_CAP

MOST_VALUES = 12


@dataclass(frozen=True, slots=True)
class FacetOf:
    """An attribute to count by: the parameter that filters by it, its title, and where the model has it.

    `names`: what people call values that are keys, asked for all values at once.
    """

    parameter: str
    title: str
    source: str
    names: Callable[[Collection[str]], Mapping[str, str]] | None = None


@dataclass(frozen=True, slots=True)
class Facet:
    """The most frequent values of an attribute, with numbers; `others` values are not listed."""

    of: FacetOf
    values: list[tuple[str, int]]
    others: int


@dataclass(frozen=True, slots=True)
class Counted:
    """`total` is exact up to the cap, and cap + 1 for more; facets then count the newest rows up to the cap."""

    total: int
    facets: list[Facet]

    @property
    def is_capped(self) -> bool:
        return self.total > COUNT_CAP


def count(
    queryset: QuerySet[Any], facets: Sequence[FacetOf], cap: int = COUNT_CAP, *, narrowed: bool = False
) -> Counted:
    """How many rows there are, and how many of each value. Reads at most `cap` + 1 of the newest rows.

    `narrowed`: the rows belong to one thing, such as a task, and an index finds them all. The order is then one that no
    index has, as else the whole table might be walked by its key for the newest of them.
    """
    paths = [facet.source for facet in facets]
    order: Any = (F("pk") + Value(0)).desc() if narrowed else "-pk"
    newest = queryset.order_by(order).values_list("pk", *paths)[: cap + 1]
    if not facets:
        return Counted(newest.count(), [])
    try:
        inner, parameters = newest.query.sql_with_params()
    except EmptyResultSet:  # a filter that nothing can match
        return Counted(0, [])
    names = [f"c{number}" for number in range(len(facets) + 1)]
    columns = [sql.Identifier(name) for name in names[1:]]
    statement = sql.SQL(
        "SELECT grouping({all}), count(*), {all} FROM ({inner}) AS newest ({names})"
        " GROUP BY GROUPING SETS ((), {sets}) ORDER BY 2 DESC"
    ).format(
        all=sql.SQL(", ").join(columns),
        inner=sql.SQL(inner),
        names=sql.SQL(", ").join(map(sql.Identifier, names)),
        sets=sql.SQL(", ").join(sql.SQL("({})").format(column) for column in columns),
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        found = cursor.fetchall()
    everything = (1 << len(facets)) - 1
    total = 0
    values: list[list[tuple[str, int]]] = [[] for _ in facets]
    for mask, number, *groups in found:
        if mask == everything:
            total = number
            continue
        # In a row of one grouping set, the bits of all other columns are set; the leftmost column has the highest bit.
        place = len(facets) - (everything ^ mask).bit_length()
        value = groups[place]
        if value not in (None, ""):
            values[place].append((str(value), number))
    made = [
        Facet(of, listed[:MOST_VALUES], max(len(listed) - MOST_VALUES, 0))
        for of, listed in zip(facets, values, strict=True)
        if listed
    ]
    return Counted(total, made)
