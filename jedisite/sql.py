"""Cursors for the hot paths: statements prepared by the server, and COPY, on Django's connection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connection


@contextmanager
def hot_cursor() -> Iterator[psycopg.Cursor[Any]]:
    """A psycopg cursor that binds on the server, in Django's current transaction."""
    connection.ensure_connection()
    with psycopg.Cursor(connection.connection) as cursor:
        yield cursor


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
