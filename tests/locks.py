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
from django.db import OperationalError, connection, transaction

LIMIT_S = 20.0
Row = tuple[str, str, Any]
"""Table, key column, value."""

FOR_UPDATE, FOR_NO_KEY_UPDATE, FOR_SHARE, FOR_KEY_SHARE = (
    "AccessExclusiveLock",
    "ExclusiveLock",
    "RowShareLock",
    "AccessShareLock",
)
"""What PostgreSQL calls a wait for a row; a plain UPDATE waits as FOR NO KEY UPDATE does."""
_AS_ON_DISK = "; ".join(
    f"SET enable_{way} = off" for way in ("indexscan", "indexonlyscan", "bitmapscan", "nestloop", "mergejoin")
)


@contextmanager
def another() -> Iterator[psycopg.Connection[Any]]:
    """A second connection, in a transaction that is rolled back in the end unless it was committed."""
    given = connection.get_connection_params()
    names = {key: given[key] for key in ("dbname", "user", "password", "host", "port") if key in given}
    with psycopg.connect(**names) as found:
        yield found
        found.rollback()


def lock(other: psycopg.Connection[Any], row: Row, strength: str = "UPDATE") -> None:
    table, key, value = row
    assert other.execute(f"SELECT 1 FROM {table} WHERE {key} = %s FOR {strength}", [value]).rowcount, row  # noqa: S608


def is_free(other: psycopg.Connection[Any], row: Row) -> bool:
    """Whether nobody else holds the row; then the other connection has it."""
    table, key, value = row
    try:
        with other.transaction():
            other.execute(f"SELECT 1 FROM {table} WHERE {key} = %s FOR UPDATE NOWAIT", [value])  # noqa: S608
    except psycopg.errors.LockNotAvailable:
        return False
    return True


def skips(row: Row, work: Callable[[], Any], strength: str = "UPDATE") -> Any:
    """Do the work while another transaction holds the row. Fails when the work waits for it."""
    with another() as other:
        lock(other, row, strength)
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
    row: Row,
    work: Callable[[], Any],
    *,
    then: str = "",
    values: Sequence[Any] = (),
    free: Row | None = None,
    held: str = FOR_UPDATE,
) -> Any:
    """Let the work wait for the row; `then` is what the holder writes before it commits. Returns what the work did.

    It must wait with a lock of its own (`held`), before it writes. `free` is a row that it must not have locked before the
    one that it waits for; in the same table, although it lies before it on the disk.
    """
    of_one_table = free is not None and free[0] == row[0]
    if free is not None and of_one_table:
        _put_behind(row, free)
    with another() as other:
        lock(other, row)
        if then:
            other.execute(then, values)
        return _await(other, work, f"{row}", held=held, free=free, in_order_of_the_disk=of_one_table)


def waits_for(statement: str, values: Sequence[Any], work: Callable[[], Any]) -> Any:
    """The same for a lock that is no row's: the holder executes the statement."""
    with another() as other:
        other.execute(statement, values)
        return _await(other, work, statement)


def _await(
    other: psycopg.Connection[Any],
    work: Callable[[], Any],
    what: str,
    *,
    held: str = "",
    free: Row | None = None,
    in_order_of_the_disk: bool = False,
) -> Any:
    done: list[Any] = []
    faults: list[BaseException] = []

    def run() -> None:
        try:
            if in_order_of_the_disk:
                with connection.cursor() as cursor:
                    cursor.execute(_AS_ON_DISK)
            done.append(work())
        except BaseException as exc:  # noqa: BLE001 - raised again below
            faults.append(exc)
        finally:
            connection.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    deadline = time.monotonic() + LIMIT_S
    while (mode := _waits_with(other)) is None:
        assert thread.is_alive(), f"it does not wait for {what}: {done or faults}"
        assert time.monotonic() < deadline
        thread.join(0.01)
    locked_early = free is not None and not is_free(other, free)
    other.commit()
    thread.join(LIMIT_S)
    assert not thread.is_alive()
    assert mode == held, f"it waits for {what} with {mode or 'no lock of a row'}, not {held}: it has not locked it"
    assert not locked_early, f"it locked {free} before {what}"
    if faults:
        raise faults[0]
    return done[0]


def _put_behind(row: Row, other: Row) -> None:
    """Let the row lie behind the other on the disk, where a lock without an order comes to it last."""
    (table, key, value), (_, _, before) = row, other
    with transaction.atomic(), connection.cursor() as cursor:  # in one transaction no place is used twice
        for _ in range(100):
            cursor.execute(
                f"SELECT a.ctid > b.ctid FROM {table} a, {table} b WHERE a.{key} = %s AND b.{key} = %s",  # noqa: S608
                [value, before],
            )
            found = cursor.fetchone()
            assert found is not None, f"{row} and {other} are not there"
            if found[0]:
                return
            cursor.execute(f"UPDATE {table} SET {key} = {key} WHERE {key} = %s", [value])  # noqa: S608
    raise AssertionError(f"{row} stays before {other}")


def _waits_with(other: psycopg.Connection[Any]) -> str | None:
    """With which lock on a row somebody waits for this connection; "" is none of a row, None that nobody waits."""
    found = other.execute(
        """SELECT coalesce((SELECT max(t.mode) FROM pg_locks t WHERE t.pid = w.pid AND t.locktype = 'tuple' AND t.granted), '')
             FROM pg_locks w WHERE NOT w.granted AND pg_backend_pid() = ANY(pg_blocking_pids(w.pid))"""
    ).fetchone()
    return None if found is None else found[0]
