"""How long tasks of a kind usually stay in each state, worked out from the status log."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from jedisite.database.sql import hot_cursor
from tasks_app.domain.states import TASK_FINAL

BACK = timedelta(days=30)
LEAST_STAYS = 3
"""Fewer say nothing about what is usual."""

# Notes in the log stand in the state in which the task is: a stay goes from the row that entered a state to the row that
# left it.
_MEASURE = """
WITH rows AS (
    SELECT jeditaskid, status, modificationtime AS at, id,
           lag(status) OVER (PARTITION BY jeditaskid ORDER BY id) IS DISTINCT FROM status AS enters
      FROM tasks_statuslog WHERE modificationtime >= %(since)s AND modificationtime < %(now)s
), stays AS (
    SELECT jeditaskid, status, extract(epoch FROM lead(at) OVER (PARTITION BY jeditaskid ORDER BY id) - at)::float8 AS s
      FROM rows WHERE enters
)
INSERT INTO usual_durations AS u (task_type, label, processing_type, status, stays, median_s, low_s, high_s, updated)
SELECT type, label, processing, status, n, parts[2], parts[1], parts[3], %(now)s
  FROM (SELECT coalesce(t.tasktype, '') AS type, coalesce(t.prodsourcelabel, '') AS label,
               coalesce(t.processingtype, '') AS processing, s.status, count(*) AS n,
               percentile_cont(ARRAY[0.1, 0.5, 0.9]) WITHIN GROUP (ORDER BY s.s) AS parts
          FROM stays s JOIN jedi_tasks t USING (jeditaskid)
         WHERE s.s >= 0 AND s.status <> ALL(%(final)s)
         GROUP BY 1, 2, 3, 4 HAVING count(*) >= %(least)s) kinds
ON CONFLICT (task_type, label, processing_type, status) DO UPDATE
   SET stays = excluded.stays, median_s = excluded.median_s, low_s = excluded.low_s, high_s = excluded.high_s,
       updated = excluded.updated
"""


@transaction.atomic
def measure(now: datetime) -> int:
    """Replace the whole small table by what the last 30 days say. Returns how many states of kinds of tasks it has."""
    with hot_cursor() as cursor:
        cursor.execute("SET LOCAL work_mem = '128MB'")  # a month of the log is sorted once an hour
        cursor.execute(_MEASURE, {"since": now - BACK, "now": now, "final": sorted(TASK_FINAL), "least": LEAST_STAYS})
        kept = cursor.rowcount
        cursor.execute("DELETE FROM usual_durations WHERE updated < %s", [now])
    return kept
