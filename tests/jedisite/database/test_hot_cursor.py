"""The cursor of the hot paths is kept by its thread, as long as that is safe."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from django.db import DataError, connection

from jedisite.database.sql import FEW_ROWS, hot_cursor

pytestmark = pytest.mark.django_db(transaction=True)


def ask(rows: int = 1) -> psycopg.Cursor[Any]:
    with hot_cursor() as cursor:
        assert len(cursor.execute("SELECT * FROM generate_series(1, %s)", [rows]).fetchall()) == rows
        return cursor


def test_a_thread_keeps_its_cursor() -> None:
    first, second = ask(), ask()
    assert first is second


def test_a_block_within_a_block_has_a_cursor_of_its_own() -> None:
    with hot_cursor() as outer:
        outer.execute("SELECT * FROM generate_series(1, 3)")
        assert outer.fetchone() == (1,)
        with hot_cursor() as inner:
            inner.execute("SELECT 'within'")
            assert inner.fetchall() == [("within",)]
        assert outer.fetchall() == [(2,), (3,)]


def test_one_that_brought_many_rows_is_not_kept() -> None:
    first, second = ask(FEW_ROWS + 1), ask()
    assert first is not second


def test_a_new_connection_gets_a_new_cursor() -> None:
    first = ask()
    connection.close()
    second = ask()
    assert first is not second


def test_after_an_error_the_next_block_works() -> None:
    with pytest.raises(DataError), hot_cursor() as cursor:
        cursor.execute("SELECT 1 / 0")
    assert ask()
