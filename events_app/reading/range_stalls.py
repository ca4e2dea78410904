"""What keeps ranges from getting on: facts for the gate of a task and for the rules on what needs attention."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from django.db import connection
from django.db.models.functions import Coalesce

from events_app.lifecycle.range_moves import RANGES, is_in
from events_app.reading import range_counts
from events_app.reading.consumer_counts import IDLE, MERGE, MOST_TASKS, TASKS
from events_app.rules import range_gates, stalls
from events_app.rules.event_states import HANDED_OUT, EventStatus
from jedisite.database.sql import numbers
from tasks_app.attention.rules.findings import Found
from tasks_app.domain.range_jobs import BY_CHANNEL
from tasks_app.domain.states import JOB_FINAL, JOB_OPEN, TASK_FINAL, JobStatus
from tasks_app.explaining.rules.answers import Gate
from tasks_app.models import Job, Task

MOST_JOBSETS: Final = 500
"""Jobsets of a task whose ranges are looked at."""
MOST_BLOCKS: Final = 1_000
"""Blocks of a jobset that are looked at."""
BEGUN: Final = frozenset({JobStatus.SENT, JobStatus.STARTING, JobStatus.RUNNING})
"""States of consumers that take ranges, or are about to."""
MOST_JOBS: Final = 10_000
"""Open jobs of a task that its gate counts."""
# ruff: noqa: S608 - every piece is a constant of ours
_IDLE: Final = f"""
SELECT t.jeditaskid, t.name, t.username, count(*), min(coalesce(j.ranges_reported_at, j.starttime))
  FROM ({TASKS}) t {IDLE}
 GROUP BY 1, 2, 3
"""
# Ranges that wait belong to their jobset, whose number the jobs of the task have.
_HOPELESS: Final = f"""
SELECT t.jeditaskid, t.name, t.username, h.ranges, h.blocks >= %(blocks)s FROM ({TASKS}) t
 CROSS JOIN LATERAL (
       SELECT coalesce(sum({RANGES}), 0)::bigint AS ranges, max(blocks) AS blocks
         FROM (SELECT DISTINCT jobsetid FROM jobs
                WHERE jeditaskid = t.jeditaskid AND eventservice > 0 AND jobsetid IS NOT NULL LIMIT %(jobsets)s) s
        CROSS JOIN LATERAL (
              SELECT b.*, count(*) OVER () AS blocks
                FROM (SELECT status, attemptnr, def_min_eventid, def_max_eventid, events_per_range FROM jedi_events
                       WHERE jeditaskid = t.jeditaskid AND pandaid = s.jobsetid
                         AND {is_in({EventStatus.READY, EventStatus.FATAL})} LIMIT %(blocks)s) b) e
        WHERE {is_in({EventStatus.FATAL})} OR attemptnr <= 0) h
 WHERE h.ranges > 0
"""
_UNMERGED: Final = f"""
SELECT t.jeditaskid, t.name, t.username, count(*), min(j.statechangetime) FROM ({TASKS}) t
  JOIN jobs j ON j.jeditaskid = t.jeditaskid AND j.jobstatus = 'merging' AND j.eventservice > 0
             AND j.statechangetime < %(before)s
 WHERE NOT EXISTS (SELECT FROM jobs o WHERE o.jeditaskid = t.jeditaskid AND o.jobsetid = j.jobsetid
                      AND o.jobstatus = ANY(%(at_work)s))
 GROUP BY 1, 2, 3
"""
# Each job is looked up: counting the owners of ranges would read all ranges of the task.
_HOLDERS: Final = f"""
SELECT count(*)::int FROM unnest(%(jobs)s::bigint[]) j (job)
 CROSS JOIN LATERAL (SELECT FROM jedi_events WHERE jeditaskid = %(task)s AND pandaid = j.job AND {is_in(HANDED_OUT)} LIMIT 1) e
"""


def _rows(statement: str, **values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, {"final": sorted(TASK_FINAL), "tasks": MOST_TASKS, **values})
        return list(cursor.fetchall())


def without_progress(now: datetime) -> Iterator[Found]:
    """What the rules find among the newest open tasks with event service. Three statements."""
    idle = _rows(_IDLE, before=now - stalls.IDLE_AFTER)
    yield from stalls.idle_consumers([stalls.IdleFact(*row) for row in idle], now)
    hopeless = _rows(_HOPELESS, jobsets=MOST_JOBSETS, blocks=MOST_BLOCKS)
    yield from stalls.hopeless_ranges([stalls.HopelessFact(*row) for row in hopeless])
    at_work = sorted(str(status) for status in JOB_OPEN - {JobStatus.MERGING})
    unmerged = _rows(_UNMERGED, before=now - stalls.UNMERGED_AFTER, at_work=at_work)
    yield from stalls.unmerged_outputs([stalls.UnmergedFact(*row) for row in unmerged], now)


def gate(task: Task, now: datetime) -> Gate | None:
    """Whether the ranges of a task get on; None of one without event service. Three statements."""
    if not task.event_service:
        return None
    counted = range_counts.of_task(task.id)
    rows = Job.objects.filter(task_id=task.id, event_service__gt=0).exclude(status__in=JOB_FINAL)
    columns = ("id", "event_service", "status", Coalesce("ranges_reported_at", "start_time"))
    found = list(rows.values_list(*columns)[:MOST_JOBS])
    merging = sum(1 for _, kind, *_ in found if kind == MERGE)
    at_work = [job_id for job_id, kind, status, _ in found if kind != MERGE and status != JobStatus.MERGING]
    ((holders,),) = _rows(_HOLDERS, task=task.id, jobs=numbers(at_work))
    begun = sum(1 for _, kind, status, _ in found if kind != MERGE and status in BEGUN)
    heard = [at for _, kind, status, at in found if kind in BY_CHANNEL and status == JobStatus.RUNNING and at]
    return range_gates.ask(
        range_gates.RangeFacts(
            counted.counts,
            len(at_work),
            holders,
            merging,
            is_capped=counted.is_capped,
            begun=begun,
            silent=(now - min(heard)).total_seconds() if heard else None,
        )
    )
