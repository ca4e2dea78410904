"""The log of a task's states for people: attempts of a pending task that came to nothing are one line."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import connection

MOST_READ: Final = 10_000
"""Entries that are read, the latest ones: three days of a task that is tried again each minute, in some 60 ms."""


@dataclass(frozen=True, slots=True)
class Line:
    """An entry of the log; of a folded one the latest.

    tries     how often it was tried again in vain since `since`
    is_cut    earlier entries were not read, so that there may be more
    """

    at: datetime
    status: str
    by: str
    reason: str
    tries: int = 0
    since: datetime | None = None
    is_cut: bool = False


# An entry that became pending again ends an attempt in vain when the agent `pending` had let the task try before it, and it
# had been pending by the same before that. These two earlier entries are part of its line.
_FOLDED: Final = """
WITH latest AS (
    SELECT id, modificationtime AS at, status, actor, reason FROM tasks_statuslog
     WHERE jeditaskid = %(task)s ORDER BY id DESC LIMIT %(most)s),
tried AS (
    SELECT *, status = 'pending' AND lead(actor) OVER w = 'pending' AND lead(status, 2) OVER w = 'pending'
              AND lead(actor, 2) OVER w = actor AS again
      FROM latest WINDOW w AS (ORDER BY id DESC)),
placed AS (
    SELECT *, coalesce(lag(again) OVER w, false) OR coalesce(lag(again, 2) OVER w, false) AS is_part, row_number() OVER w AS place
      FROM tried WINDOW w AS (ORDER BY id DESC)),
lines AS (SELECT *, count(*) FILTER (WHERE NOT is_part) OVER (ORDER BY id DESC) AS line FROM placed)
SELECT max(at) FILTER (WHERE NOT is_part), max(status) FILTER (WHERE NOT is_part), max(actor) FILTER (WHERE NOT is_part),
       max(reason) FILTER (WHERE NOT is_part), count(*) FILTER (WHERE again), min(at) FILTER (WHERE is_part),
       count(*) FILTER (WHERE again) > 0 AND max(place) > %(most)s - 2
  FROM lines GROUP BY line ORDER BY line LIMIT %(lines)s
"""


def latest_lines(task_id: int, lines: int, most: int = MOST_READ) -> list[Line]:
    """The latest lines of the log of a task, from `most` entries at most, the latest first. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(_FOLDED, {"task": task_id, "lines": lines, "most": most})
        return [Line(*row) for row in cursor.fetchall()]
