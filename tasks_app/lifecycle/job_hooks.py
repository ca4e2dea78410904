"""What an app above may do in the transactions of this one: jobs of event service are stored, clones are
handed out, a task is tried again.

Hooks are registered once, when Django is ready. Tasks without event service call none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
from django.utils.module_loading import import_string

from jedisite.database.sql import numbers
from tasks_app.domain.states import JobStatus
from tasks_app.models import Task

if TYPE_CHECKING:
    from tasks_app.params.splitrule import SplitRule
    from tasks_app.splitting.chunk import InputFile


class CannotStoreError(RuntimeError):
    """No job can ever be made of these files; the text says why."""


class Slot(NamedTuple):
    """A queue where a job may run, where its log goes from there, and what it asks of the queue."""

    queue: str
    log_endpoint: str | None
    cores: int | None
    memory_mb: int | None
    resource_type: str | None


@dataclass(frozen=True, slots=True)
class StoredJobs:
    """New jobs of event service of one task, the first of their jobsets.

    dataset_id    the master dataset
    jobs          numbers of the jobs, with `jobsets` and `files` (those of the master) of each in the same order
    slots         of each job: where others of its jobset run, its own first. While its input is brought there they wait for it
                  at that one; at the others they can begin at once
    tried_again   some of the files have been handed out before
    """

    task_id: int
    dataset_id: int
    rule: SplitRule
    jobs: Sequence[int]
    jobsets: Sequence[int]
    files: Sequence[Sequence[InputFile]]
    slots: Sequence[Sequence[Slot]]
    tried_again: bool = False


class Beside(NamedTuple):
    """What a hook has added to new jobs: how many records each dataset has more, which the caller counts, and by the number of a
    job the others of its jobset at the same queue, for which the caller has the input brought, too."""

    records: Mapping[int, int] = MappingProxyType({})
    jobs: Mapping[int, Sequence[int]] = MappingProxyType({})


StoredHook = Callable[[psycopg.Cursor[Any], StoredJobs], Beside]
"""Called in the transaction that stores the jobs, after their rows. May raise CannotStoreError."""
RetryHook = Callable[[Task, bool], None]
"""Called in the transaction of the command with the task, whose files are ready again, and whether events are discarded."""

LateHook = Callable[[Collection[int]], Collection[int]]
"""Called with clones that a pilot is about to get. Returns those that it does not get, since another one came first."""

_stored: Final[list[str]] = []
_tried_again: Final[list[str]] = []
_late: Final[list[str]] = []


def when_jobs_are_stored(hook: str) -> None:
    """Register what is done with new jobs of event service: a `StoredHook` by its dotted name, imported when it is called."""
    _stored[:] = [hook]


def when_a_task_is_tried_again(hook: str) -> None:
    """Register what is done when a task of event service is tried again: a `RetryHook` by its dotted name."""
    _tried_again[:] = [hook]


def when_clones_are_handed_out(hook: str) -> None:
    """Register who says which clones come too late: a `LateHook` by its dotted name, imported when it is called."""
    _late[:] = [hook]


def too_late(clones: Collection[int]) -> Collection[int]:
    """Call the hook for clones that were handed out; no statement without any."""
    for name in _late if clones else ():
        hook: LateHook = import_string(name)
        return hook(clones)
    return ()


def jobs_are_stored(cursor: psycopg.Cursor[Any], stored: StoredJobs) -> Beside:
    """Call the hook. Raises CannotStoreError."""
    for name in _stored:
        hook: StoredHook = import_string(name)
        return hook(cursor, stored)
    return Beside()


def task_is_tried_again(task: Task, *, discard: bool) -> None:
    """Call the hook for a task of event service, and none for others."""
    for name in _tried_again if task.event_service else ():
        hook: RetryHook = import_string(name)
        hook(task, discard)


# A job that has just been stored, and that nobody has seen: it is as if its pilot had reported its end.
_END = f"""
WITH moved AS (
    UPDATE jobs SET jobstatus = '{JobStatus.HOLDING}', fence = fence + 1, heartbeat_at = clock_timestamp(),
           specialhandling = concat_ws(',', nullif(specialhandling, ''), %(word)s::text)
     WHERE pandaid = ANY(%(jobs)s::bigint[])
    RETURNING pandaid, jeditaskid, attemptnr),
logged AS (
    UPDATE jobs_statuslog l SET jobstatus = '{JobStatus.HOLDING}', reason = %(reason)s::text
      FROM moved m WHERE l.pandaid = m.pandaid)
INSERT INTO job_output_report (pandaid, jeditaskid, attemptnr, jobstatus, data)
SELECT pandaid, jeditaskid, coalesce(attemptnr, 0), '{JobStatus.FINISHED}', '{{}}' FROM moved
"""  # noqa: S608 - states of ours


def end_at_once(cursor: psycopg.Cursor[Any], jobs: Collection[int], *, word: str, reason: str) -> None:
    """End jobs that this transaction has stored and that have nothing to do: the adder books them as if they had run.

    `word` is added to their special handling.
    """
    if jobs:
        cursor.execute(_END, {"jobs": numbers(sorted(jobs)), "word": word, "reason": reason})
