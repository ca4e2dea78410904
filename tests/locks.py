"""Two connections: what a function does while another transaction holds a row.

A lock is seen by what it is there for: the function *waits*, and then decides on what the other has committed; or it
*skips* the row, and does the rest.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import OperationalError, connection

LIMIT_S = 20.0
Row = tuple[str, str, Any]
"""Table, key column, value."""


@contextmanager
def another() -> Iterator[psycopg.Connection[Any]]:
    """A second connection, in a transaction that is rolled back in the end unless it was committed."""
    given = connection.get_connection_params()
    names = {key: given[key] for key in ("dbname", "user", "password", "host", "port") if key in given}
    with psycopg.connect(**names) as found:
        yield found
        found.rollback()


def lock(other: psycopg.Connection[Any], row: Row) -> None:
    table, key, value = row
    assert other.execute(f"SELECT 1 FROM {table} WHERE {key} = %s FOR UPDATE", [value]).rowcount, row  # noqa: S608


def is_free(other: psycopg.Connection[Any], row: Row) -> bool:
    """Whether nobody else holds the row; then the other connection has it."""
    table, key, value = row
    try:
        with other.transaction():
            other.execute(f"SELECT 1 FROM {table} WHERE {key} = %s FOR UPDATE NOWAIT", [value])  # noqa: S608
    except psycopg.errors.LockNotAvailable:
        return False
    return True


def skips(row: Row, work: Callable[[], Any]) -> Any:
    """Do the work while another transaction holds the row. Fails when the work waits for it."""
    with another() as other:
        lock(other, row)
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '1s'")
        try:
            return work()
        except OperationalError as exc:
            raise AssertionError(f"it waits for {row}") from exc
        finally:
            with connection.cursor() as cursor:
                cursor.execute("RESET lock_timeout")


def waits(
    row: Row, work: Callable[[], Any], *, then: str = "", values: Sequence[Any] = (), free: Row | None = None
) -> Any:
    """Let the work wait for the row; `then` is what the holder writes before it commits. Returns what the work did.

    `free` is a row that the work must not have locked before the one that it waits for.
    """
    done: list[Any] = []
    faults: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as exc:  # noqa: BLE001 - raised again below
            faults.append(exc)
        finally:
            connection.close()

    with another() as other:
        lock(other, row)
        if then:
            other.execute(then, values)
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        deadline = time.monotonic() + LIMIT_S
        while not _is_blocking(other):
            assert thread.is_alive(), f"it does not wait for {row}: {done or faults}"
            assert time.monotonic() < deadline
            thread.join(0.02)
        if free is not None:
            assert is_free(other, free), f"it locked {free} before {row}"
        other.commit()
        thread.join(LIMIT_S)
    assert not thread.is_alive()
    if faults:
        raise faults[0]
    return done[0]


def _is_blocking(other: psycopg.Connection[Any]) -> bool:
    found = other.execute(
        "SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
    ).fetchone()
    return found is not None
