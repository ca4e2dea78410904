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


def delete_fingerprints(before: datetime, limit: int) -> int:
    """Delete fingerprints that nobody has classified and no failure has any more. One that is seen again at this moment is
    locked, and stays."""
    with connection.cursor() as cursor:
        cursor.execute(
            """DELETE FROM error_fingerprints WHERE id IN (
                   SELECT id FROM error_fingerprints p
                    WHERE last_seen < %s AND classified_by = ''
                      AND NOT EXISTS (SELECT 1 FROM job_failures f WHERE f.fingerprint_id = p.id)
                    ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED)""",
            [before, limit],
        )
        return int(cursor.rowcount)


# The message with the highest position stays: the next one follows it, and consumers may ask for what is behind it. So do
# those that a reader of the site itself has not come to.
_SENT = """sent < %s AND position < (SELECT max(position) FROM messages_out)
       AND position <= (SELECT coalesce(min(r.position), messages_out.position) FROM messages_out_readers r)"""


def delete_sent_messages(before: datetime, limit: int) -> int:
    """Delete messages that were sent long ago, but for the last one and those that are still to be read."""
    return delete_oldest("messages_out", _SENT, before, limit)
