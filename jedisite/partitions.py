"""Partitions of large tables: made ahead of need, dropped after their time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from django.db import connection

TASK_RANGE = 1_000_000
"""Task ids that share one partition."""
MONTHS_AHEAD = 2


@dataclass(frozen=True, slots=True)
class Monthly:
    """A table partitioned by month. `keep_months` None keeps everything."""

    table: str
    keep_months: int | None


MONTHLY: list[Monthly] = []
BY_TASK: list[str] = []


def month_start(day: date, months: int = 0) -> date:
    """First day of the month that lies `months` after the month of `day`."""
    index = day.year * 12 + day.month - 1 + months
    return date(index // 12, index % 12 + 1, 1)


def ensure_months(table: str, today: date) -> list[str]:
    """Make the partitions of this month and the next ones. Returns the names of new partitions."""
    made = []
    with connection.cursor() as cursor:
        for ahead in range(MONTHS_AHEAD + 1):
            first, after = month_start(today, ahead), month_start(today, ahead + 1)
            name = f"{table}_{first:%Y%m}"
            if not _exists(name):
                # Names and dates are ours, never a user's.
                cursor.execute(f"CREATE TABLE {name} PARTITION OF {table} FOR VALUES FROM ('{first}') TO ('{after}')")
                made.append(name)
    return made


def drop_old_months(table: str, today: date, keep_months: int) -> list[str]:
    """Drop the partitions of months before the last `keep_months`. Returns their names."""
    limit = f"{month_start(today, -keep_months):%Y%m}"
    dropped = []
    with connection.cursor() as cursor:
        for name in _partitions(table):
            suffix = name.rsplit("_", 1)[1]
            if suffix.isdigit() and suffix < limit:
                cursor.execute(f"DROP TABLE {name}")
                dropped.append(name)
    return dropped


def months_of(table: str) -> list[date]:
    """First days of the months that have a partition, in order."""
    suffixes = [name.rsplit("_", 1)[1] for name in _partitions(table)]
    return sorted(date(int(s[:4]), int(s[4:]), 1) for s in suffixes if s.isdigit() and len(s) == 6)


def ensure_task_ranges(table: str, highest_task_id: int) -> list[str]:
    """Make the partition that holds `highest_task_id` and the next one. Returns the names of new partitions."""
    made = []
    with connection.cursor() as cursor:
        for number in (highest_task_id // TASK_RANGE, highest_task_id // TASK_RANGE + 1):
            name = f"{table}_p{number}"
            if not _exists(name):
                low = number * TASK_RANGE
                # Room in each page for a new version of every one of its rows, since the job generator changes whole pages
                # at once: with less room, rows move to other pages and all indexes are written again, five times slower.
                cursor.execute(
                    f"CREATE TABLE {name} PARTITION OF {table} FOR VALUES FROM ({low}) TO ({low + TASK_RANGE}) "
                    "WITH (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0)"
                )
                made.append(name)
    return made


def _exists(name: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [name])
        return bool(cursor.fetchone()[0])


def _partitions(table: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass ORDER BY 1", [table]
        )
        return [name for (name,) in cursor.fetchall()]
