"""The hook of the ends of jobs of event service: `outcomes.book` asks what they become, after it has locked the jobs.

Who keeps the books of events registers once. Without anybody, such jobs end as all others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple, Protocol

import psycopg
from django.utils.module_loading import import_string

from jedisite.database.sql import numbers
from tasks_app.domain import range_jobs
from tasks_app.outcomes.job_outcome import Outcome

EVENT_JOB: Final = """CASE WHEN eventservice > 0 THEN jsonb_build_array(eventservice, coalesce(jobsetid, 0),
    coalesce(attemptnr, 0), coalesce(maxattempt, 0), coalesce(jobsubstatus, ''), coalesce(computingsite, ''),
    coalesce(specialhandling, ''), coalesce(piloterrorcode, 0), coalesce(piloterrordiag, ''),
    coalesce(nullif(piloterrorcode, 0), nullif(exeerrorcode, 0), nullif(superrorcode, 0), nullif(ddmerrorcode, 0),
             nullif(brokerageerrorcode, 0), nullif(jobdispatchererrorcode, 0)) IS NOT NULL
        OR coalesce(transexitcode, '') NOT IN ('', '0')) END"""
"""SQL: what an `EventJob` has besides its number, task and status, as a list; NULL for other jobs."""
EVENT_MERGE: Final = range_jobs.MERGE


class EventJob(NamedTuple):
    """A job of event service as its locked row is before its end. `event_service` says of which kind it is, `sub_status` is ""
    without one, `has_error` whether a component but the task buffer reports one."""

    job_id: int
    task_id: int
    status: str
    event_service: int
    jobset_id: int
    attempt: int
    max_attempt: int
    sub_status: str
    site: str
    special_handling: str
    pilot_error: int
    pilot_diag: str
    has_error: bool


class Ending(NamedTuple):
    """A job of event service that ends, and how its end was reported."""

    outcome: Outcome
    job: EventJob


@dataclass(frozen=True, slots=True)
class Ends:
    """What ends become. `outcomes` of jobs that end now; jobs that were asked about and are not among them end later.

    jobs    new jobs, by task
    logs    how many records of logs each dataset has more for them, by task and dataset
    unused  events of files that finish now without them, by task and dataset
    partial these files, by task
    """

    outcomes: Sequence[Outcome] = ()
    jobs: Mapping[int, Sequence[int]] = field(default_factory=dict)
    logs: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    unused: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    partial: Mapping[int, Collection[int]] = field(default_factory=dict)


class EndHook(Protocol):
    """Who keeps the books of events. `words` are those of lines in `job_output_report` that it has written itself."""

    @property
    def words(self) -> Collection[str]: ...

    def ends(self, cursor: psycopg.Cursor[Any], endings: Sequence[Ending]) -> Ends:
        """What becomes of jobs, in the order of their numbers; their rows are locked, and nothing else is."""
        ...

    def of_line(self, job_id: int, task_id: int, word: str, said: Mapping[str, Any]) -> Outcome:
        """How the job of a line ends."""
        ...

    def given_up(self, cursor: psycopg.Cursor[Any], task_id: int, files: Collection[int] | None) -> Mapping[int, int]:
        """How many events of partial files, of these or of all, were given up, by dataset."""
        ...

    def lose_merged(self, cursor: psycopg.Cursor[Any], task_id: int, files: Collection[int]) -> None:
        """The outputs of these files are no more: all of their events are processed again."""
        ...

    def merged_and_ready(self, cursor: psycopg.Cursor[Any], task_id: int) -> Collection[int]:
        """Files of a task that are not in use, of which some events are in an output that counts."""
        ...

    def awaiting_merge(self, cursor: psycopg.Cursor[Any], task_id: int, files: Collection[int]) -> Collection[int]:
        """Those of these files of which some events are finished, and wait in zip files to be merged."""
        ...


_registered: list[str] = []


def register(where: str) -> None:
    """From now on an instance of the class of this dotted name is asked. It is imported when the first job ends: most
    processes never need it."""
    _registered[:] = [where]


@cache
def _made(where: str) -> EndHook:
    hook: EndHook = import_string(where)()
    return hook


def of_line(job_id: int, task_id: int | None, word: str, said: Mapping[str, Any]) -> Outcome | None:
    """How the job of a line ends; None of a report that a pilot has sent."""
    for where in _registered:
        if task_id is not None and word in (hook := _made(where)).words:
            return hook.of_line(job_id, task_id, word, said)
    return None


def ends(cursor: psycopg.Cursor[Any], endings: Sequence[Ending]) -> Ends:
    """What becomes of jobs of event service. No statement when there are none."""
    for where in _registered:
        if endings:
            return _made(where).ends(cursor, endings)
    return Ends([ending.outcome for ending in endings])


def given_up(cursor: psycopg.Cursor[Any], task_id: int, files: Collection[int] | None = None) -> Mapping[int, int]:
    """How many events of partial files, of these or of all of a task, were given up, by dataset: the output lacks them."""
    for where in _registered:
        return _made(where).given_up(cursor, task_id, files)
    return {}


def lose_merged(cursor: psycopg.Cursor[Any], task_id: int, files: Collection[int]) -> None:
    """The outputs of these files are no more: all of their events are processed again."""
    for where in _registered:
        _made(where).lose_merged(cursor, task_id, files)


def merged_and_ready(cursor: psycopg.Cursor[Any], task_id: int) -> Collection[int]:
    """Files of a task that are not in use, of which some events are in an output that counts."""
    for where in _registered:
        return _made(where).merged_and_ready(cursor, task_id)
    return ()


def awaiting_merge(cursor: psycopg.Cursor[Any], task_id: int, files: Collection[int]) -> Collection[int]:
    """Those of these files of which some events are finished, and wait in zip files to be merged."""
    for where in _registered:
        return _made(where).awaiting_merge(cursor, task_id, files)
    return ()


def consumers_among(cursor: psycopg.Cursor[Any], jobs: Sequence[int]) -> set[int]:
    """Those of these jobs that process ranges: what they have made is merged, and pilots report no output of theirs."""
    if not jobs or not _registered:
        return set()
    cursor.execute(
        "SELECT pandaid FROM jobs WHERE pandaid = ANY(%s::bigint[]) AND eventservice = ANY(%s::int[])",
        [numbers(jobs), numbers(sorted(range_jobs.TAKING))],
    )
    return {job for (job,) in cursor}
