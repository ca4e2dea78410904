"""Keyset pages and capped counts for lists that may be very long: no OFFSET, no full count."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db import connection
from django.db.models import Model, QuerySet
from django.http import HttpRequest, QueryDict
from psycopg import sql

from tasks_app.domain import words

M = TypeVar("M", bound=Model)
PAGE_SIZE = 50
LARGEST_ID = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Page(Generic[M]):
    """One page of a list, newest first, with the addresses of the first and the next page ("" where there is none)."""

    rows: Sequence[M]
    total: int
    first_url: str
    next_url: str

    @property
    def summary(self) -> str:
        return f"{words.count(len(self.rows))} of {words.capped(self.total)}"


def keyset_page(request: HttpRequest, found: QuerySet[M], *, size: int = PAGE_SIZE) -> Page[M]:
    """The page of `found` that starts below the id in `?before=`, by descending id. Two queries.

    A `before` that is not a number counts as none.
    """
    before = number(request.GET.get("before"))
    below = found if before is None else found.filter(pk__lt=before)
    rows = list(below.order_by("-pk")[: size + 1])
    more = len(rows) > size
    rows = rows[:size]
    # A first page that holds everything needs no second count.
    total = len(rows) if before is None and not more else capped_count(found)
    return Page(
        rows,
        total,
        first_url=address(request, before=None) if before is not None else "",
        next_url=address(request, before=rows[-1].pk) if more else "",
    )


def capped_count(found: QuerySet[Any], cap: int = words.COUNT_CAP) -> int:
    """Number of rows, not counted further than just above `cap`."""
    return found.order_by()[: cap + 1].count()


def capped_counts(table: str, column: str, values: Iterable[str], cap: int = words.COUNT_CAP) -> dict[str, int]:
    """Rows of a table for each value of an indexed column, each counted up to just above `cap`. One query.

    Table and column are names from the code, never from a request.
    """
    statement = sql.SQL(
        "SELECT v, (SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {column} = v LIMIT %s) counted)"
        " FROM unnest(%s::text[]) AS v"
    ).format(table=sql.Identifier(table), column=sql.Identifier(column))
    with connection.cursor() as cursor:
        cursor.execute(statement, [cap + 1, list(values)])
        return dict(cursor.fetchall())


def number(text: str | None) -> int | None:
    """A positive number that fits an id; None for anything else."""
    if not text or not text.isascii() or not text.isdecimal() or len(text) > 19:
        return None
    value = int(text)
    return value if value <= LARGEST_ID else None


def address(request: HttpRequest, /, **changes: object) -> str:
    """The address of this page with some parameters changed; None takes a parameter away."""
    parameters: QueryDict = request.GET.copy()
    for name, value in changes.items():
        if value is None:
            parameters.pop(name, None)
        else:
            parameters[name] = str(value)
    encoded = parameters.urlencode()
    return f"{request.path}?{encoded}" if encoded else request.path
