"""Consumers that no pilot has fetched, of a jobset of which no range is left: the adder is to end them.

They are not locked here: whoever ends them has them locked, and leaves those that a pilot has fetched meanwhile.
"""

from __future__ import annotations

from typing import Any, Final

import psycopg

from events_app.rules.event_jobs import UNNEEDED
from jedisite.agents.passes import kick
from jedisite.database.sql import numbers

ES_UNUSED: Final = "es_unused"
"""What a line of `job_output_report` says of such a job."""
_LINES: Final = """
INSERT INTO job_output_report (pandaid, jeditaskid, attemptnr, jobstatus, data)
SELECT j.pandaid, j.jeditaskid, coalesce(j.attemptnr, 0), %(said)s, '{}'
  FROM jobs j
 WHERE j.jeditaskid = %(task)s AND j.jobstatus IN ('assigned', 'activated', 'throttled') AND j.jobsetid = %(jobset)s
   AND j.eventservice = ANY(%(kinds)s::smallint[])
   AND EXISTS (SELECT FROM jobs a WHERE a.pandaid = %(asking)s AND a.jobstatus IN ('sent', 'starting', 'running')
                  AND a.commandtopilot IS DISTINCT FROM 'tobekilled')
    ON CONFLICT DO NOTHING
"""


def end_unneeded(cursor: psycopg.Cursor[Any], task_id: int, jobset_id: int, asking: int) -> int:
    """Of the jobset of a job that asked for ranges and is at work. Returns how many there are that had no line yet."""
    kinds = numbers(sorted(UNNEEDED))
    cursor.execute(_LINES, {"said": ES_UNUSED, "task": task_id, "jobset": jobset_id, "asking": asking, "kinds": kinds})
    if cursor.rowcount:
        kick("adder")
    return cursor.rowcount
