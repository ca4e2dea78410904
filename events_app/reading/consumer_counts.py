"""Consumers of events: what each has of its ranges, the jobset that it belongs to, its merge job and the zip files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import connection

from events_app.lifecycle.range_moves import RANGES, is_in
from events_app.rules.event_jobs import EventJobKind
from events_app.rules.event_states import HANDED_OUT, PROCESSED, EventStatus
from events_app.rules.range_standing import per_hour
from tasks_app.domain.states import JOB_FINAL, JOB_OPEN, TASK_FINAL
from tasks_app.models import JobFile

MOST: Final = 50
MOST_BLOCKS: Final = 2_000
"""Blocks of a consumer that are counted."""
MERGE: Final = 2
KINDS: Final = {
    1: "consumer",
    2: "merge job",
    3: "clone",
    4: "jumbo job",
    5: "consumer beside jumbo jobs",
    6: "fine-grained",
}
"""What jobs of event service are, by their column EVENTSERVICE."""
ZIPS: Final = ("zipoutput", "zipinput")
# ruff: noqa: S608 - every piece is a constant of ours
_CONSUMERS: Final = f"""
SELECT j.*, c.sent, c.processed, c.failed, c.blocks >= %(blocks)s
  FROM (SELECT pandaid, eventservice, jobsetid, jobstatus, coalesce(jobsubstatus, ''), coalesce(computingsite, ''), attemptnr,
               starttime, endtime, heartbeat_at, ranges_reported_at
          FROM jobs WHERE jeditaskid = %(task)s AND eventservice > 0 AND {{which}}
         ORDER BY pandaid DESC LIMIT %(most)s) j
 CROSS JOIN LATERAL (
       SELECT coalesce(sum({RANGES}) FILTER (WHERE {is_in(HANDED_OUT)}), 0)::bigint AS sent,
              coalesce(sum({RANGES}) FILTER (WHERE {is_in(PROCESSED)}), 0)::bigint AS processed,
              coalesce(sum({RANGES}) FILTER (WHERE {is_in({EventStatus.FAILED})}
                       AND (is_jumbo IS NULL OR j.eventservice = {int(EventJobKind.JUMBO)})), 0)::bigint AS failed,
              count(*) AS blocks
         FROM (SELECT status, is_jumbo, def_min_eventid, def_max_eventid, events_per_range FROM jedi_events
                WHERE jeditaskid = %(task)s AND pandaid = j.pandaid LIMIT %(blocks)s) e) c
 ORDER BY j.pandaid DESC
"""
_AT_WORK: Final = _CONSUMERS.format(which="jobstatus = ANY(%(states)s)")
_OF_JOBSET: Final = _CONSUMERS.format(which="jobsetid = %(jobset)s")
MOST_TASKS: Final = 200
TASKS: Final = """
    SELECT jeditaskid, coalesce(taskname, '') AS name, username FROM jedi_tasks
     WHERE eventservice > 0 AND status <> ALL(%(final)s) ORDER BY jeditaskid DESC LIMIT %(tasks)s"""
"""SQL: the newest open tasks with event service."""
_REPORTING: Final = ", ".join(
    str(int(kind)) for kind in (EventJobKind.CONSUMER, EventJobKind.JUMBO, EventJobKind.CO_JUMBO)
)
IDLE: Final = f"""
JOIN jobs j ON j.jeditaskid = t.jeditaskid AND j.jobstatus = 'running'
           AND (j.eventservice IN ({_REPORTING})
                OR j.eventservice = {int(EventJobKind.FINE)} AND j.ranges_reported_at IS NOT NULL)
           AND coalesce(j.ranges_reported_at, j.starttime) < %(before)s"""
"""SQL behind tasks `t`: their running consumers `j` that have reported no range since a time, nor started after it.

Clones report no ranges, and fine-grained jobs need not.
"""
_IDLE: Final = f"""
SELECT j.pandaid, j.jeditaskid, t.name, coalesce(j.computingsite, ''), j.starttime, j.ranges_reported_at, j.heartbeat_at
  FROM ({TASKS}) t {IDLE}
 ORDER BY coalesce(j.ranges_reported_at, j.starttime), j.pandaid LIMIT %(most)s
"""


def called(kind: int) -> str:
    """What people call a job of event service."""
    return KINDS[EventJobKind(kind)] if kind in set(EventJobKind) else f"job of event service {kind}"


@dataclass(frozen=True, slots=True)
class IdleConsumer:
    """A consumer that has reported no range for hours; `reported`: when it last did, None if never."""

    job_id: int
    task_id: int
    task_name: str
    site: str
    started: datetime
    reported: datetime | None
    heartbeat_at: datetime | None


@dataclass(frozen=True, slots=True)
class Consumer:
    """A job of event service, with the ranges that it has at work, has processed, and that failed in it.

    What failed in a jumbo job passes to the consumer of its file when that ends, and is not counted there.

    `is_capped`: not all of its blocks were counted.
    """

    job_id: int
    kind: int
    jobset_id: int | None
    status: str
    sub_status: str
    site: str
    attempt: int | None
    started: datetime | None
    ended: datetime | None
    heartbeat_at: datetime | None
    reported: datetime | None
    sent: int
    processed: int
    failed: int
    is_capped: bool = False

    @property
    def called(self) -> str:
        return called(self.kind)

    @property
    def is_merge(self) -> bool:
        return self.kind == MERGE

    @property
    def is_jumbo(self) -> bool:
        return self.kind == EventJobKind.JUMBO

    @property
    def has_ended(self) -> bool:
        return self.status in JOB_FINAL

    def rate(self, now: datetime) -> float | None:
        """Ranges that it has processed an hour since it started; None of what has not started, or only just."""
        if self.started is None or self.is_merge:
            return None
        return per_hour(self.processed, ((self.ended or now) - self.started).total_seconds())


def _consumers(statement: str, values: dict[str, Any]) -> list[Consumer]:
    with connection.cursor() as cursor:
        cursor.execute(statement, {**values, "blocks": MOST_BLOCKS})
        return [Consumer(*row) for row in cursor.fetchall()]


def at_work(task_id: int, most: int = MOST) -> list[Consumer]:
    """The jobs of event service of a task that have not ended, newest first; one more than `most` where there are more."""
    values = {"task": task_id, "states": sorted(JOB_OPEN), "most": most + 1}
    return _consumers(_AT_WORK, values)


def of_jobset(task_id: int, jobset_id: int, most: int = MOST) -> list[Consumer]:
    """The jobs of a jobset, newest first: consumers and merge jobs; one more than `most` where there are more."""
    return _consumers(_OF_JOBSET, {"task": task_id, "jobset": jobset_id, "most": most + 1})


def idle(before: datetime, most: int = MOST) -> list[IdleConsumer]:
    """Consumers of the newest open tasks that have reported no range since a time, nor started after it; the longest first.

    One more than `most` where there are more.
    """
    values: dict[str, Any] = {
        "final": sorted(TASK_FINAL),
        "tasks": MOST_TASKS,
        "before": before,
        "most": most + 1,
    }
    with connection.cursor() as cursor:
        cursor.execute(_IDLE, values)
        return [IdleConsumer(*row) for row in cursor.fetchall()]


def zips(job_ids: Sequence[int], most: int = MOST) -> list[JobFile]:
    """The zip files that jobs wrote or read; one more than `most` where there are more."""
    return list(JobFile.objects.filter(job_id__in=job_ids, type__in=ZIPS).order_by("job_id", "id")[: most + 1])
