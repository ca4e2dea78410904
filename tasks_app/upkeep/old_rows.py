"""Rows of history that have been kept long enough: the oldest go first, a limited number at a time."""

from __future__ import annotations

from datetime import datetime

from django.db import connection

LIMIT = 20_000


def delete_oldest(table: str, condition: str, before: datetime, limit: int, key: str = "id") -> int:
    """Delete rows of a table, whose names are constants. They lie in the order of their keys about as old as they are, so
    that only the oldest are looked at."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""DELETE FROM {table} WHERE {key} IN (
                   SELECT {key} FROM {table}
                    WHERE {key} <= (SELECT max({key}) FROM (SELECT {key} FROM {table} ORDER BY {key} LIMIT %s) oldest)
                      AND {condition}
                    ORDER BY {key} FOR UPDATE SKIP LOCKED)""",  # noqa: S608
            [limit, before],
        )
        return int(cursor.rowcount)
