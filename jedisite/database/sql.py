"""Cursors for the hot paths: statements prepared by the server, and COPY, on Django's connection."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connection, connections

FEW_ROWS = 1000
"""A cursor that brought more is not kept: their memory would be, too."""

_kept = threading.local()


class hot_cursor:
    """A psycopg cursor that binds on the server, in Django's current transaction.

    What the database refuses is raised as Django's errors, and a connection that is lost is replaced at the next request.
    A thread keeps the cursor for its next block, since making one costs a sixth of a short statement; a block
    within a block gets one of its own. A class with few calls, not a generator: after each round trip to the server the
    processor has to fetch anew whatever Python runs, which then takes several times as long as in a loop of its own.
    """

    __slots__ = ("_cursor", "_wrapper")

    def __enter__(self) -> psycopg.Cursor[Any]:
        self._wrapper, self._cursor = _kept.__dict__.pop("last", (None, None))
        if self._cursor is None or self._cursor.connection is not self._wrapper.connection:
            self._wrapper = connections[DEFAULT_DB_ALIAS]
            self._wrapper.ensure_connection()
            self._cursor = psycopg.Cursor(self._wrapper.connection)
        return self._cursor

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._wrapper.wrap_database_errors.__exit__(kind, error, trace)
        elif self._cursor.rowcount <= FEW_ROWS:
            _kept.last = self._wrapper, self._cursor


@contextmanager
def hash_joins(cursor: psycopg.Cursor[Any]) -> Iterator[None]:
    """In a transaction: the server joins by hashing only.

    For statements that join some thousand rows which they find through `= ANY(...)` conditions: with statistics that
    are old or missing, as just after a large feed, it would compare each row with each.
    """
    cursor.execute("SELECT set_config('enable_nestloop', 'off', true), set_config('enable_mergejoin', 'off', true)")
    yield
    cursor.execute("SELECT set_config('enable_nestloop', 'on', true), set_config('enable_mergejoin', 'on', true)")


def numbers(values: Iterable[int | None]) -> str:
    """An array of numbers or truth values, for a parameter that is cast: `%s::bigint[]`.

    Given as text, the parameter is of that very type. psycopg's own arrays are of the smallest type that holds their
    values, which a general plan casts anew for each row, and take much longer to make.
    """
    return f"{{{','.join(['NULL' if v is None else str(v) for v in values])}}}"


def texts(values: Iterable[str | None]) -> str:
    """The same for texts: `%s::text[]`."""
    return f"{{{','.join(['NULL' if v is None else _quoted(v) for v in values])}}}"


def _quoted(value: str) -> str:
    if '"' in value or "\\" in value:
        value = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{value}"'


_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def copy_text(value: str) -> str:
    """A text as COPY's text format wants it."""
    # Nearly every name is plain, and asking is ten times faster than translating.
    if "\\" not in value and value.isprintable():
        return value
    return value.translate(_ESCAPES)


def copy_lines(cursor: psycopg.Cursor[Any], table: str, columns: Iterable[str], lines: Iterable[str]) -> None:
    """COPY lines of tab-separated text, each ending in a newline. Table and columns are names of ours."""
    with cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy:
        block: list[str] = []
        for line in lines:
            block.append(line)
            if len(block) >= 5000:
                copy.write("".join(block))
                block.clear()
        copy.write("".join(block))


def take_ids(cursor: psycopg.Cursor[Any], sequence: str, count: int) -> list[int]:
    """Take `count` numbers from a sequence, ascending."""
    cursor.execute("SELECT nextval(%s::regclass) FROM generate_series(1, %s)", [sequence, count])
    return [number for (number,) in cursor.fetchall()]


def the_time(now: datetime | None = None) -> datetime:
    """The database's clock, which all processes share, unless a time is given."""
    if now is not None:
        return now
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        found: datetime = cursor.fetchone()[0]
    return found


def sql_time(moment: datetime) -> str:
    """A moment as an SQL literal, for conditions that take no parameters."""
    return f"timestamptz '{moment.isoformat()}'"
