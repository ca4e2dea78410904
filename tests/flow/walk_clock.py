"""A clock that stands still until a walk moves it: for this process, and for the database as this process uses it.

So what happens in a walk depends on its seed, not on how busy the machine is: what a process keeps for some seconds, waits that
are over, changes that a look may not have seen.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

from django.db import connection
from django.utils import timezone

FUNCTIONS = ("clock_timestamp", "statement_timestamp", "transaction_timestamp", "now")
_DEFAULTS = """
SELECT format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT ', c.oid::regclass, a.attname), pg_get_expr(d.adbin, d.adrelid)
  FROM pg_attrdef d JOIN pg_class c ON c.oid = d.adrelid
  JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
 WHERE c.relnamespace = 'public'::regnamespace AND NOT c.relispartition
   AND pg_get_expr(d.adbin, d.adrelid) ~* '(timestamp|now)\\(\\)|current_timestamp'
"""


class WalkClock:
    """`now` is the time; it begins with the true one."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)
        self._began = self.now

    def move(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('walk_clock.now', %s, false)", [self.now.isoformat()])

    def monotonic(self) -> float:
        return 1e6 + (self.now - self._began).total_seconds()


@contextmanager
def standing_clock() -> Iterator[WalkClock]:
    """Whoever asks for the time gets that of the clock: Python's, the database's, and what rows have by default."""
    clock = WalkClock()
    functions = [
        f"""CREATE FUNCTION walk_clock.{name}() RETURNS timestamptz STABLE LANGUAGE sql
            AS $$ SELECT current_setting('walk_clock.now')::timestamptz $$"""
        for name in FUNCTIONS
    ]
    with connection.cursor() as cursor:
        cursor.execute(_DEFAULTS)
        defaults = cursor.fetchall()
        new = [f"{column} walk_clock.clock_timestamp()" for column, _ in defaults]
        cursor.execute(";".join(["CREATE SCHEMA walk_clock", *functions, *new]))
        # Names without a schema are looked for here before they are among the server's own.
        cursor.execute("SET search_path = walk_clock, pg_catalog, public")
    clock.move(0)
    try:
        with patch.object(timezone, "now", lambda: clock.now), patch.object(time, "monotonic", clock.monotonic):
            yield clock
    finally:
        with connection.cursor() as cursor:
            old = [f"{column} {was}" for column, was in defaults]
            cursor.execute(";".join(["RESET search_path", *old, "DROP SCHEMA walk_clock CASCADE"]))
