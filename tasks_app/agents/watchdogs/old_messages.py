"""Watch dog: messages and mails that are done with are deleted after their time."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import connection
from django.utils import timezone

from jedisite.agents.registry import Pass, agent

KEEP = timedelta(days=30)
KEEP_MAILS = timedelta(days=90)
LIMIT = 20_000
# The message with the highest position stays: the next one follows it, and consumers may ask for what is behind it.
_OUT = """sent < %s AND position < (SELECT max(position) FROM messages_out)"""
_IN = "processed < %s"
_MAILS = "(sent IS NOT NULL OR not_sent <> '') AND created < %s"


@agent("old_messages", every="1h", title="Deletes old messages and mails")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Delete up to `limit` rows of each table, the oldest first."""
    now = now or timezone.now()
    deleted = [
        delete_oldest("messages_out", _OUT, now - KEEP, limit),
        delete_oldest("messages_in", _IN, now - KEEP, limit),
        delete_oldest("notifications", _MAILS, now - KEEP_MAILS, limit),
    ]
    return Pass(sum(deleted), more=limit in deleted)


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
