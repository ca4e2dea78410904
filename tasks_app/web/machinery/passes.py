"""What the passes of agents were like: how long they took, which failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from django.db import connection

from brokerage_app.formulas.quantiles import percentile
from tasks_app.domain import words
from tasks_app.drawing.sparklines import Sparkline, sparkline

SHOWN: Final = 60
"""Passes in a small plot."""
COUNTED: Final = 5000
"""Failed passes of an agent that are looked at to count those of a day; it makes one a minute while it fails."""
_SERIES = """
SELECT a.name, p.durations, p.failed, coalesce(p.last, 0), coalesce(p.note, ''), e.errors
  FROM agents a
 CROSS JOIN LATERAL (
    SELECT array_agg(x.duration_s ORDER BY x.id) AS durations, array_agg(x.failed ORDER BY x.id) AS failed, max(x.id) AS last,
           (array_agg(x.note ORDER BY x.id DESC))[1] AS note
      FROM (SELECT id, duration_s, error <> '' AS failed, left(note, 300) AS note FROM agent_passes
             WHERE agent = a.name ORDER BY id DESC LIMIT %(shown)s) x) p
 CROSS JOIN LATERAL (
    SELECT count(*) AS errors
      FROM (SELECT started_at FROM agent_passes WHERE agent = a.name AND error <> '' ORDER BY id DESC LIMIT %(counted)s) f
     WHERE f.started_at > clock_timestamp() - interval '24 hours') e
 WHERE %(name)s IN ('', a.name)
"""


@dataclass(frozen=True)
class Series:
    """The latest recorded passes of an agent, oldest first: seconds, and whether each failed.

    `last` is the number of the last one and `note` what it said; `errors` are those that failed in the last 24 hours.
    """

    durations: Sequence[float]
    failed: Sequence[bool]
    last: int
    note: str
    errors: int

    @cached_property
    def p95_s(self) -> float | None:
        return percentile(self.durations, 0.95) if self.durations else None

    @cached_property
    def spark(self) -> Sparkline | None:
        return sparkline(self.durations, self.failed, self.label)

    @property
    def label(self) -> str:
        """What the plot shows, in words."""
        if not self.durations:
            return "no passes recorded"
        middle, slowest = percentile(self.durations, 0.5), max(self.durations)
        return (
            f"{words.plural(len(self.durations), 'recorded pass', 'recorded passes')}: median {words.duration(middle)}, "
            f"95 % within {words.duration(self.p95_s)}, slowest {words.duration(slowest)}, {sum(self.failed)} failed"
        )


def series(name: str = "", shown: int = SHOWN) -> dict[str, Series]:
    """The passes of every agent, or of one. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_SERIES, {"name": name, "shown": shown, "counted": COUNTED})
        return {row[0]: Series(row[1] or (), row[2] or (), *row[3:]) for row in cursor.fetchall()}
