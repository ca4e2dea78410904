"""A pytest plug-in: what a test that commits leaves behind is taken away at little cost.

Only the tables that have rows are emptied, since a flush takes ten times longer. What each installation has is written back from
a copy. And the connection is kept: a new one has to read the catalogue of all tables again, which costs more than most tests.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import cache
from typing import Any, ClassVar

import pytest

KEPT = frozenset({"django_migrations", "django_content_type", "auth_permission"})
"""What migrations make of the code alone."""
COPIES = "copies_of_rows"
"""The schema with copies of what each installation has."""
RESET = """SET SESSION AUTHORIZATION DEFAULT; RESET ALL; CLOSE ALL; UNLISTEN *; SELECT pg_advisory_unlock_all(); DISCARD TEMP;
    DISCARD SEQUENCES"""
"""What DISCARD ALL does, without the plans of prepared statements, which psycopg believes to be there."""


@cache
def _with_rows() -> str:
    """A statement that names the tables with rows."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
                  AND NOT relispartition ORDER BY relname"""
        )
        names = [name for (name,) in cursor.fetchall() if name not in KEPT]
    return " UNION ALL ".join(f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {name})" for name in names)  # noqa: S608


def _partitions(cursor: Any) -> Any:
    """What differs when partitions come or go."""
    cursor.execute("SELECT count(*), sum(inhrelid::bigint) FROM pg_inherits")
    return cursor.fetchone()


@cache
def _copied() -> tuple[list[str], Any]:
    """Copy what each installation has, while all tables are empty: statements that write it back as of now, its partitions."""
    from django.db import connection

    from jedisite.agents.passes import synchronise_after_migrate

    synchronise_after_migrate()
    back = []
    with connection.cursor() as cursor:
        cursor.execute(_with_rows())
        names = [name for (name,) in cursor.fetchall()]
        cursor.execute(f"DROP SCHEMA IF EXISTS {COPIES} CASCADE; CREATE SCHEMA {COPIES}")
        for name in names:
            cursor.execute(f"CREATE TABLE {COPIES}.{name} AS TABLE {name}")
            cursor.execute(
                """SELECT column_name, is_nullable = 'NO' AND data_type = 'timestamp with time zone'
                     FROM information_schema.columns WHERE table_schema = 'public' AND table_name = %s""",
                [name],
            )
            columns = dict(cursor.fetchall())
            values = ", ".join("clock_timestamp()" if is_time else column for column, is_time in columns.items())
            back.append(f"INSERT INTO {name} ({', '.join(columns)}) SELECT {values} FROM {COPIES}.{name}")  # noqa: S608
        return back, _partitions(cursor)


def empty_tables(test: Any = None) -> None:
    """Delete every row in one transaction, then write what each installation has, as a flush does."""
    from django.db import connection, transaction

    from jedisite.agents.passes import synchronise_after_migrate
    from jedisite.database.sql import hot_cursor

    copied = _copied.cache_info().currsize > 0
    with transaction.atomic(), hot_cursor() as planned_once:
        planned_once.execute(_with_rows())
        found = [name for (name,) in planned_once.fetchall()]
    back = _copied()[0] if copied else []
    _execute_without_triggers("; ".join([f"DELETE FROM {name}" for name in found] + back))  # noqa: S608
    with connection.cursor() as cursor:
        if _partitions(cursor) != _copied()[1]:
            synchronise_after_migrate()
            _copied.cache_clear()


class _Other:
    """The connection that empties tables. Everything goes, so no reference has to be followed: its role says so, once, since
    PostgreSQL forgets the plans of a session at each change of its role, and would plan all statements of the next test anew.
    """

    kept: ClassVar[Any] = None

    @classmethod
    def close(cls) -> None:
        if cls.kept is not None:
            cls.kept.close()
            cls.kept = None

    @classmethod
    def execute(cls, statements: str) -> None:
        from django.db import connection

        if cls.kept is None:
            cls.kept = connection.copy()
            with cls.kept.cursor() as cursor:
                cursor.execute("SET session_replication_role = replica; SET lock_timeout = '20s'")
        with cls.kept.cursor() as cursor:
            cursor.execute(statements)


def _execute_without_triggers(statements: str) -> None:
    """All in one transaction; once more where a test ended the connection."""
    from django.db import InterfaceError, OperationalError, connection

    if not statements:
        return
    if connection.in_atomic_block:  # rows that only this transaction sees
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL session_replication_role = replica; {statements}")
        return
    try:
        _Other.execute(statements)
    except (InterfaceError, OperationalError):
        _Other.close()
        _Other.execute(statements)


def forget_session(test: Any = None) -> bool:
    """Whether connections must be opened anew. Else nothing that a test set in this one stays but prepared statements."""
    from django.db import connections

    with suppress(RuntimeError):
        asyncio.get_running_loop()
        return True  # while a browser's loop runs in this thread, Django has other connections here, which end with it
    connection = connections["default"]
    if connection.connection is None:
        return False
    if connection.in_atomic_block or not connection.get_autocommit() or not connection.is_usable():
        return True
    with connection.cursor() as cursor:
        cursor.execute(RESET)
    connection.ensure_timezone()
    return False


PLANS = 1000
"""Prepared statements that a connection keeps: the tests of a file run far more of them than a process of a site,
for which psycopg's hundred are enough."""


def _keep_plans(connection: Any, **_: Any) -> None:
    connection.connection.prepared_max = PLANS


@pytest.fixture(scope="session", autouse=True)
def emptying_instead_of_flush() -> None:
    from django.db.backends.postgresql.creation import DatabaseCreation
    from django.db.backends.signals import connection_created
    from django.test import TransactionTestCase

    connection_created.connect(_keep_plans)
    TransactionTestCase._fixture_teardown = empty_tables  # type: ignore[assignment]
    TransactionTestCase._should_reload_connections = forget_session  # type: ignore[attr-defined]

    def destroy(self: Any, name: str, verbosity: int, drop: Any = DatabaseCreation._destroy_test_db) -> None:
        _Other.close()  # a database with connections cannot be dropped
        drop(self, name, verbosity)

    DatabaseCreation._destroy_test_db = destroy  # type: ignore[method-assign]
