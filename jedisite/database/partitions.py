"""Partitions of large tables: made ahead of need, dropped after their time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from django.db import connection, transaction

RANGE = 1_000_000
"""Numbers that share one partition."""
MONTHS_AHEAD = 2
OF_NUMBERS = "WITH (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0)"
"""Room in each page for a new version of every one of its rows, since the job generator changes whole pages at once: with
less room, rows move to other pages and all indexes are written again, five times slower."""


@dataclass(frozen=True, slots=True)
class Monthly:
    """A table partitioned by month. `keep_months` None keeps everything."""

    table: str
    keep_months: int | None


@dataclass(frozen=True, slots=True)
class Numbered:
    """A table partitioned by ranges of a number that `sequence` gives out."""

    table: str
    sequence: str


MONTHLY: list[Monthly] = []
NUMBERED: list[Numbered] = []
"""Each app adds its tables at start-up."""


def month_start(day: date, months: int = 0) -> date:
    """First day of the month that lies `months` after the month of `day`."""
    index = day.year * 12 + day.month - 1 + months
    return date(index // 12, index % 12 + 1, 1)


def ensure_months(table: str, today: date) -> list[str]:
    """Make the partitions of this month and the next ones. Returns the names of new partitions."""
    months = [(month_start(today, ahead), month_start(today, ahead + 1)) for ahead in range(MONTHS_AHEAD + 1)]
    wanted = [(f"{table}_{first:%Y%m}", f"'{first} 00:00Z'", f"'{after} 00:00Z'") for first, after in months]
    return [name for name, low, high in wanted if _make(table, name, low, high)]


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


def ensure_numbers(table: str, highest: int) -> list[str]:
    """Make the partition that holds the number `highest` and the next one. Returns the names of new partitions."""
    parts = (highest // RANGE, highest // RANGE + 1)
    wanted = [(f"{table}_p{part}", str(part * RANGE), str((part + 1) * RANGE)) for part in parts]
    return [name for name, low, high in wanted if _make(table, name, low, high, OF_NUMBERS)]


def highest_of(sequence: str) -> int:
    """The number that a sequence gave out last. Its name is ours, never a user's."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT last_value FROM {sequence}")  # noqa: S608
        return int(cursor.fetchone()[0])


@transaction.atomic
def _make(table: str, name: str, low: str, high: str, storage: str = "") -> bool:
    """Make the partition for low <= key < high, unless it is there. Names and bounds are ours, never a user's.

    Rows of that range that the default partition has taken meanwhile move over: PostgreSQL would refuse the new
    partition because of them.
    """
    if _exists(name):
        return False
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {name} (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS) {storage}")
        if _exists(f"{table}_default"):
            key = _key(table)
            cursor.execute(f"LOCK TABLE {table}_default IN ACCESS EXCLUSIVE MODE")
            cursor.execute(
                f"""WITH strays AS (DELETE FROM {table}_default WHERE {key} >= {low} AND {key} < {high} RETURNING *)
                    INSERT INTO {name} SELECT * FROM strays"""  # noqa: S608 - see above
            )
        cursor.execute(f"ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ({low}) TO ({high})")
    return True


def _key(table: str) -> str:
    """The column that a table is partitioned by."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT a.attname FROM pg_partitioned_table p JOIN pg_attribute a
                   ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0] WHERE p.partrelid = %s::regclass""",
            [table],
        )
        return str(cursor.fetchone()[0])


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
