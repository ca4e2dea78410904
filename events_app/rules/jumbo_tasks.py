"""Jumbo jobs of a task: the states of useJumbo, how many jobs it may have, and where. Pure.

A jumbo job takes ranges of any jobset of its task. USEJUMBO of a task says how far it is with them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from events_app.rules.consumer_ends import NO_EVENT
from tasks_app.domain.jumbo_use import ENABLED, UseJumbo
from tasks_app.domain.states import JobStatus

U = UseJumbo

MOST_TASKS: Final = 50
"""Tasks of one work queue whose jumbo jobs are under way: above that no further task of it gets its first."""


class JumboEvent(Enum):
    """What changes USEJUMBO, with a sentence on it."""

    ENABLE = "jumbo jobs are switched on"
    SUBMIT = "jumbo jobs were made"
    NO_PLACE = "only queues for jumbo jobs take work of this task"
    END = "a jumbo job ended"
    NONE_LEFT = "no jumbo job is open"
    DISABLE = "jumbo jobs are switched off"


def after(use: UseJumbo | None, event: JumboEvent, *, left: int = 0) -> UseJumbo | None:
    """The state after an event. `left`: files of the master that are in no job yet.

    Only switching on leads out of None and of switched off.
    """
    if event is JumboEvent.ENABLE:
        return U.WAITING
    if event is JumboEvent.DISABLE:
        return U.DISABLED
    if use is None or use is U.DISABLED:
        return use
    if event is JumboEvent.SUBMIT:
        return U.PENDING if use is U.PENDING and left else U.RUNNING
    if event is JumboEvent.NO_PLACE:
        return use if use is U.LACK or (use is U.RUNNING and not left) else U.PENDING
    if event is JumboEvent.NONE_LEFT:
        return U.LACK if use in (U.PENDING, U.RUNNING) else use
    return U.LACK


def new_jobs(wanted: int, active: int) -> int:
    """How many jumbo jobs are to be made. `wanted` is nJumboJobs; `active` are open, and not only storing their outputs."""
    return max(0, wanted - active)


def may_begin(use: UseJumbo, tasks_under_way: int) -> bool:
    """Whether a task may get jumbo jobs now. `tasks_under_way`: tasks of its work queue that have some."""
    return use in ENABLED and (use is not U.WAITING or tasks_under_way < MOST_TASKS)


def places_of(queues: Sequence[str], active: Mapping[str, int], *, number: int, per_queue: int) -> list[str]:
    """Where new jumbo jobs go: one to each of `queues`, which are ordered, before any gets a second (maxJumboPerSite).

    `active`: those that are open, by queue.
    """
    counts = {queue: active.get(queue, 0) for queue in queues}
    found: list[str] = []
    while len(found) < number and counts:
        queue = min(counts, key=counts.__getitem__)
        if counts[queue] >= per_queue:
            break
        counts[queue] += 1
        found.append(queue)
    return found


NONE_MADE: Final = "; none is made: "
"""Stands in the history of a task before why it gets no jumbo job."""


def why_none(verdict: str, takers: Sequence[str], resting: Collection[str], per_queue: int) -> str:
    """Why a task that wants jumbo jobs gets none now: `verdict` is what its broker says, `takers` are the queues that take some,
    of which those in `resting` get none for a while."""
    if not takers:
        return f"no queue takes its jumbo jobs: {verdict.rstrip('.')}"
    if set(takers) <= set(resting):
        names = ", ".join(sorted(takers))
        return f"a jumbo job has just ended without a range at {names}: the next one waits an hour"
    return f"each queue that takes its jumbo jobs has {per_queue} (maxJumboPerSite)"


class JumboEnd(NamedTuple):
    """What the row of a jumbo job says at its end; code 0 is no error."""

    status: JobStatus
    code: int = 0


STOPPED_BY_PANDA: Final = 1144
"""The pilot's error of a job that it was told to end."""


def end_of_jumbo(status: str, *, processed: bool, pilot_error: int) -> JumboEnd | None:
    """What becomes of a jumbo job; None leaves it as it was reported: it was killed.

    `processed`: it has processed a range, whatever its pilot says.
    """
    if status not in (JobStatus.FINISHED, JobStatus.FAILED):
        return None
    if processed:
        return JumboEnd(JobStatus.FINISHED)
    return JumboEnd(JobStatus.CANCELLED if pilot_error == STOPPED_BY_PANDA else JobStatus.FAILED, NO_EVENT)
