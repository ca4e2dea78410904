"""What is read of tasks with jumbo jobs: these, the ranges that are ready, and consumers that wait or need not begin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import psycopg

from events_app.lifecycle.range_moves import is_in
from events_app.rules.event_jobs import UNNEEDED, EventJobKind
from events_app.rules.event_states import HANDED_OUT, EventStatus
from jedisite.database.sql import numbers, texts
from tasks_app.domain.jumbo_use import ENABLED, UseJumbo, read_use
from tasks_app.domain.states import JOB_FINAL, JOB_QUEUED, JobStatus, TaskStatus
from tasks_app.params.splitrule import SplitRule

IN: Final = frozenset(
    {
        TaskStatus.DEFINED,
        TaskStatus.READY,
        TaskStatus.SCOUTING,
        TaskStatus.RUNNING,
        TaskStatus.PENDING,
        TaskStatus.THROTTLED,
    }
)
"""States of tasks that get jumbo jobs, and whose consumers are looked after: defined is one that waits for more input."""
STORING: Final = frozenset({JobStatus.HOLDING, JobStatus.TRANSFERRING, JobStatus.MERGING})
"""A jumbo job in these states takes no more ranges: another may begin."""
RESTS: Final = timedelta(hours=1)
"""A queue at which a jumbo job has processed nothing gets none of the same task for so long."""
MOST: Final = 1_000
"""Consumers of a pass that are ended without having begun."""


class JumboJob(NamedTuple):
    """A jumbo job of a task; `ended_at` is None while it is open."""

    job_id: int
    queue: str
    status: JobStatus
    made_at: datetime
    ended_at: datetime | None
    events: int


@dataclass(frozen=True, slots=True)
class JumboFacts:
    """One task with jumbo jobs.

    wanted, per_queue   nJumboJobs and maxJumboPerSite
    is_bound            the task names its site, so that jumbo jobs are nothing to it
    all_done            all files so far of its masters are finished, or failed for good
    left                files of its masters that are in no job yet
    ready_events        events of ranges that wait
    waiting             consumers that wait for jumbo jobs or for a queue, in order; `idle`: those with ranges to process
    decided             consumers that have not begun and of whose files no range is left
    """

    task_id: int
    use: UseJumbo | None
    work_queue: int = 0
    wanted: int = 0
    per_queue: int = 1
    is_bound: bool = False
    all_done: bool = False
    left: int = 0
    ready_events: int = 0
    waiting: tuple[int, ...] = ()
    idle: tuple[int, ...] = ()
    decided: tuple[int, ...] = ()
    jobs: tuple[JumboJob, ...] = field(default=())

    @property
    def active(self) -> Mapping[str, int]:
        """Jumbo jobs that take ranges, or will, by queue."""
        return Counter(job.queue for job in self.jobs if job.ended_at is None and job.status not in STORING)

    @property
    def one_has_ended(self) -> bool:
        """Whether a jumbo job has ended since the last one was made."""
        last = max((job.made_at for job in self.jobs), default=None)
        return any(job.ended_at is not None and last is not None and job.ended_at >= last for job in self.jobs)

    @property
    def queued(self) -> list[int]:
        """Jumbo jobs that have not begun."""
        return [job.job_id for job in self.jobs if job.status in JOB_QUEUED]

    def resting(self, now: datetime) -> set[str]:
        """Queues that get no jumbo job for a while: one has ended, or is about to, without an event."""
        over = [job for job in self.jobs if not job.events and (job.ended_at is not None or job.status in STORING)]
        return {job.queue for job in over if job.ended_at is None or now - job.ended_at < RESTS}

    @property
    def unneeded(self) -> list[int]:
        """Jumbo jobs that have not begun and need not: they are switched off, or nothing is left to do."""
        return self.queued if self.use is UseJumbo.DISABLED or self.all_done else []

    @property
    def has_work(self) -> bool:
        """Whether something may have to be done for the task."""
        missing = self.use in ENABLED and self.ready_events > 0 and sum(self.active.values()) < self.wanted
        return bool(self.waiting or self.decided or missing or self.unneeded)


# ruff: noqa: S608 - every piece is a constant of ours
_KINDS: Final = ", ".join(str(int(kind)) for kind in sorted(UNNEEDED))
_ENDED: Final = ", ".join(f"'{status}'" for status in sorted(JOB_FINAL))
_TASKS: Final = f"""
SELECT t.jeditaskid, t.usejumbo, coalesce(t.workqueue_id, 0), coalesce(t.splitrule, ''), coalesce(t.site, '') <> '',
       m.files > 0 AND m.ended >= m.files, m.rest,
       (SELECT coalesce(sum(e.def_max_eventid - e.def_min_eventid + 1), 0)::bigint FROM jedi_events e
         WHERE e.jeditaskid = t.jeditaskid AND {is_in({EventStatus.READY}, "e.")} AND e.attemptnr > 0),
       ARRAY(SELECT j.pandaid FROM jobs j WHERE j.jeditaskid = t.jeditaskid AND j.jobstatus = 'waiting'
                AND j.eventservice IN ({_KINDS}) ORDER BY j.currentpriority DESC, j.pandaid),
       ARRAY(SELECT j.pandaid FROM jobs j WHERE j.jeditaskid = t.jeditaskid AND j.jobstatus = 'waiting'
                AND j.eventservice IN ({_KINDS}) AND EXISTS (
                    SELECT FROM jedi_events e WHERE e.jeditaskid = j.jeditaskid AND e.pandaid = j.jobsetid
                       AND {is_in({EventStatus.READY}, "e.")} AND e.attemptnr > 0)
              ORDER BY j.currentpriority DESC, j.pandaid)
  FROM jedi_tasks t
 CROSS JOIN LATERAL (
       SELECT coalesce(sum(d.nfiles), 0)::bigint AS files, coalesce(sum(d.nfilesfinished + d.nfilesfailed), 0)::bigint AS ended,
              coalesce(sum(greatest(d.nfilestobeused - d.nfilesused, 0)), 0)::bigint AS rest
         FROM jedi_datasets d
        WHERE d.jeditaskid = t.jeditaskid AND d.masterid IS NULL AND d.type IN ('input', 'pseudo_input')) m
 WHERE t.usejumbo IS NOT NULL AND t.eventservice = 1 AND t.status = ANY(%(statuses)s::text[])
 ORDER BY t.jeditaskid
"""
_JOBS: Final = f"""
SELECT jeditaskid, pandaid, coalesce(computingsite, ''), jobstatus, creationtime,
       CASE WHEN jobstatus IN ({_ENDED}) THEN coalesce(statechangetime, modificationtime) END, coalesce(nevents, 0)
  FROM jobs WHERE jeditaskid = ANY(%(tasks)s::bigint[]) AND eventservice = {int(EventJobKind.JUMBO)}
"""
# Nothing of its files waits, and nobody is at work on it.
_DECIDED: Final = f"""
SELECT j.jeditaskid, j.pandaid FROM jobs j
 WHERE j.jeditaskid = ANY(%(tasks)s::bigint[]) AND j.eventservice IN ({_KINDS})
   AND j.jobstatus IN ('waiting', 'assigned', 'activated', 'throttled')
   AND NOT EXISTS (
       SELECT FROM job_files f JOIN jedi_events e ON e.jeditaskid = j.jeditaskid AND e.fileid = f.fileid
        WHERE f.pandaid = j.pandaid AND f.type IN ('input', 'pseudo_input')
          AND ({is_in(HANDED_OUT, "e.")} OR ({is_in({EventStatus.READY}, "e.")} AND e.attemptnr > 0)))
 ORDER BY j.pandaid LIMIT {MOST}
"""


def read_tasks(cursor: psycopg.Cursor[Any]) -> list[JumboFacts]:
    """All tasks that have jumbo jobs, or had them. Three statements."""
    cursor.execute(_TASKS, {"statuses": texts(sorted(IN))})
    rows = cursor.fetchall()
    if not rows:
        return []
    values = {"tasks": numbers(row[0] for row in rows)}
    cursor.execute(_JOBS, values)
    jobs = _by_task(
        (task, JumboJob(job, queue, JobStatus(status), *rest)) for task, job, queue, status, *rest in cursor.fetchall()
    )
    cursor.execute(_DECIDED, values)
    decided = _by_task(cursor.fetchall())
    return [_facts(row, jobs.get(row[0], ()), decided.get(row[0], ())) for row in rows]


def _by_task(rows: Iterable[tuple[int, Any]]) -> dict[int, tuple[Any, ...]]:
    found: dict[int, list[Any]] = {}
    for task, one in rows:
        found.setdefault(task, []).append(one)
    return {task: tuple(some) for task, some in found.items()}


def _facts(row: tuple[Any, ...], jobs: tuple[JumboJob, ...], decided: tuple[int, ...]) -> JumboFacts:
    task, use, work_queue, text, is_bound, all_done, left, ready, waiting, idle = row
    rule = SplitRule.parse(text)
    return JumboFacts(
        task,
        read_use(use),
        work_queue,
        0 if is_bound else rule.get_int("NJ") or 0,
        rule.get_int("MJ") or 1,
        is_bound,
        all_done,
        left,
        ready,
        tuple(waiting),
        tuple(idle),
        decided,
        jobs,
    )
