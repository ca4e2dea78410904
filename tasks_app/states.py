"""The states of tasks, datasets, files and jobs, and the moves between them: one table each.

The names are those of the JEDI documents. Code, diagrams and buttons are drawn from these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class TaskStatus(StrEnum):
    REGISTERED = "registered"
    DEFINED = "defined"
    ASSIGNING = "assigning"
    READY = "ready"
    PENDING = "pending"
    SCOUTING = "scouting"
    SCOUTED = "scouted"
    RUNNING = "running"
    PREPARED = "prepared"
    DONE = "done"
    FAILED = "failed"
    FINISHED = "finished"
    ABORTING = "aborting"
    TOABORT = "toabort"
    ABORTED = "aborted"
    FINISHING = "finishing"
    PASSED = "passed"
    TOPREPROCESS = "topreprocess"
    PREPROCESSING = "preprocessing"
    TOBROKEN = "tobroken"
    BROKEN = "broken"
    TORETRY = "toretry"
    TOINCEXEC = "toincexec"
    REREFINE = "rerefine"
    PAUSED = "paused"
    THROTTLED = "throttled"
    EXHAUSTED = "exhausted"
    STAGING = "staging"
    STAGED = "staged"
    TOREASSIGN = "toreassign"
    REASSIGNING = "reassigning"


class DatasetStatus(StrEnum):
    REGISTERED = "registered"
    DEFINED = "defined"
    TOUPDATE = "toupdate"
    PENDING = "pending"
    BROKEN = "broken"
    READY = "ready"
    RUNNING = "running"
    PREPARED = "prepared"
    DONE = "done"
    FINISHED = "finished"
    FAILED = "failed"
    REMOVED = "removed"


class FileStatus(StrEnum):
    DEFINED = "defined"
    STAGING = "staging"
    PENDING = "pending"
    READY = "ready"
    MISSING = "missing"
    LOST = "lost"
    BROKEN = "broken"
    PICKED = "picked"
    RUNNING = "running"
    PREPARED = "prepared"
    MERGING = "merging"
    FINISHED = "finished"
    FAILED = "failed"
    PARTIAL = "partial"
    CANCELLED = "cancelled"
    NOOUTPUT = "nooutput"
    NOTMERGED = "notmerged"


class JobStatus(StrEnum):
    PENDING = "pending"
    DEFINED = "defined"
    WAITING = "waiting"
    ASSIGNED = "assigned"
    ACTIVATED = "activated"
    THROTTLED = "throttled"
    SENT = "sent"
    STARTING = "starting"
    RUNNING = "running"
    HOLDING = "holding"
    TRANSFERRING = "transferring"
    MERGING = "merging"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    CLOSED = "closed"


T, J = TaskStatus, JobStatus

_STOPPABLE = frozenset({T.TOABORT, T.ABORTING, T.FINISHING, T.PASSED, T.TOBROKEN, T.PAUSED, T.PENDING, T.TOREASSIGN})


def _task(*nexts: TaskStatus) -> frozenset[TaskStatus]:
    """What an active task may become: the given states, and those that a command or a watch dog can ask of any."""
    return frozenset(nexts) | _STOPPABLE


TASK_MOVES: Mapping[TaskStatus, frozenset[TaskStatus]] = {
    T.REGISTERED: _task(T.DEFINED, T.TOPREPROCESS, T.STAGING),
    T.STAGING: _task(T.STAGED),
    T.STAGED: _task(T.DEFINED),
    T.REREFINE: _task(T.DEFINED, T.READY, T.PREPARED),
    T.DEFINED: _task(T.ASSIGNING, T.READY, T.EXHAUSTED),
    T.ASSIGNING: _task(T.READY, T.EXHAUSTED),
    T.READY: _task(T.DEFINED, T.PREPROCESSING, T.SCOUTING, T.RUNNING, T.PREPARED, T.EXHAUSTED, T.THROTTLED),
    T.SCOUTING: _task(T.SCOUTED, T.RUNNING, T.EXHAUSTED, T.PREPARED, T.THROTTLED, T.DEFINED),
    T.SCOUTED: _task(T.RUNNING),
    T.RUNNING: _task(T.PREPARED, T.DEFINED, T.THROTTLED, T.EXHAUSTED, T.READY),
    T.TOPREPROCESS: _task(T.PREPROCESSING),
    T.PREPROCESSING: _task(T.REGISTERED, T.PREPARED),
    T.PENDING: _task(
        T.REGISTERED,
        T.STAGED,
        T.REREFINE,
        T.DEFINED,
        T.ASSIGNING,
        T.READY,
        T.SCOUTING,
        T.RUNNING,
        T.TOPREPROCESS,
        T.PREPROCESSING,
        T.PREPARED,
        T.EXHAUSTED,
        T.THROTTLED,
    ),
    T.THROTTLED: _task(T.READY, T.SCOUTING, T.RUNNING, T.PREPARED),
    T.PAUSED: _task(
        T.REGISTERED,
        T.STAGING,
        T.STAGED,
        T.REREFINE,
        T.DEFINED,
        T.ASSIGNING,
        T.READY,
        T.SCOUTING,
        T.SCOUTED,
        T.RUNNING,
        T.TOPREPROCESS,
        T.PREPROCESSING,
        T.PREPARED,
        T.EXHAUSTED,
        T.THROTTLED,
        T.REASSIGNING,
        T.TORETRY,
        T.TOINCEXEC,
        T.DONE,
        T.FINISHED,
    ),
    T.PREPARED: _task(T.DONE, T.FINISHED, T.FAILED, T.EXHAUSTED),
    T.FINISHING: frozenset({T.PASSED, T.ABORTING, T.TOABORT}),
    T.PASSED: frozenset({T.DONE, T.FINISHED, T.FAILED, T.PAUSED}),
    T.ABORTING: frozenset({T.TOABORT}),
    T.TOABORT: frozenset({T.ABORTED, T.BROKEN}),
    T.TOBROKEN: frozenset({T.BROKEN}),
    T.EXHAUSTED: _task(T.TORETRY, T.TOINCEXEC, T.SCOUTING, T.RUNNING, T.READY),
    T.TOREASSIGN: _task(T.REASSIGNING, T.READY, T.RUNNING, T.SCOUTING, T.DEFINED, T.ASSIGNING, T.EXHAUSTED),
    T.REASSIGNING: _task(T.ASSIGNING, T.READY, T.RUNNING, T.SCOUTING),
    T.TORETRY: _task(T.READY, T.EXHAUSTED, T.FINISHED, T.FAILED, T.ABORTED),
    T.TOINCEXEC: _task(T.REREFINE),
    T.FINISHED: frozenset({T.TORETRY, T.TOINCEXEC}),
    T.FAILED: frozenset({T.TORETRY, T.TOINCEXEC}),
    T.ABORTED: frozenset({T.TORETRY, T.TOINCEXEC}),
    T.DONE: frozenset({T.TOINCEXEC}),
    T.BROKEN: frozenset(),
}

TASK_FINAL = frozenset({T.DONE, T.FINISHED, T.FAILED, T.ABORTED, T.BROKEN})
"""A task rests here; only a retry or an incremental execution starts it again."""

TASK_GENERATING = frozenset({T.READY, T.SCOUTING, T.RUNNING})
"""The job generator looks at tasks in these states."""

_ENDS = frozenset({J.FINISHED, J.FAILED, J.CANCELLED, J.CLOSED})

JOB_MOVES: Mapping[JobStatus, frozenset[JobStatus]] = {
    J.PENDING: _ENDS | {J.DEFINED, J.ASSIGNED, J.ACTIVATED, J.THROTTLED},
    J.WAITING: _ENDS | {J.DEFINED, J.ACTIVATED},
    J.DEFINED: _ENDS | {J.ASSIGNED, J.ACTIVATED},
    J.ASSIGNED: _ENDS | {J.ACTIVATED},
    J.ACTIVATED: _ENDS | {J.THROTTLED, J.SENT},
    J.THROTTLED: _ENDS | {J.ACTIVATED},
    J.SENT: _ENDS | {J.STARTING, J.RUNNING, J.HOLDING},
    J.STARTING: _ENDS | {J.RUNNING, J.HOLDING},
    J.RUNNING: _ENDS | {J.HOLDING},
    J.HOLDING: _ENDS | {J.TRANSFERRING, J.MERGING},
    J.TRANSFERRING: _ENDS | {J.MERGING},
    J.MERGING: _ENDS,
    J.FINISHED: frozenset(),
    J.FAILED: frozenset(),
    J.CANCELLED: frozenset(),
    J.CLOSED: frozenset(),
}

JOB_FINAL = frozenset(status for status, nexts in JOB_MOVES.items() if not nexts)
JOB_OPEN = frozenset(JobStatus) - JOB_FINAL
JOB_QUEUED = frozenset({J.PENDING, J.WAITING, J.DEFINED, J.ASSIGNED, J.ACTIVATED, J.THROTTLED})
"""Not handed to any pilot yet: can be ended at once."""
JOB_AT_PILOT = frozenset({J.SENT, J.STARTING, J.RUNNING})
"""A pilot holds it and owes heartbeats."""


class TaskCommand(StrEnum):
    KILL = "kill"
    FINISH = "finish"
    RETRY = "retry"
    PAUSE = "pause"
    RESUME = "resume"


_REJECTED = TASK_FINAL | {T.PREPARED, T.TOBROKEN, T.TOABORT, T.ABORTING, T.PASSED}

COMMAND_ACCEPTED_IN: Mapping[TaskCommand, frozenset[TaskStatus]] = {
    TaskCommand.KILL: frozenset(TaskStatus) - _REJECTED,
    TaskCommand.FINISH: frozenset(TaskStatus) - _REJECTED - {T.FINISHING},
    TaskCommand.RETRY: frozenset({T.FINISHED, T.FAILED, T.ABORTED, T.EXHAUSTED}),
    TaskCommand.PAUSE: frozenset(TaskStatus) - _REJECTED - {T.PAUSED, T.FINISHING},
    TaskCommand.RESUME: frozenset({T.PAUSED, T.THROTTLED, T.STAGING}),
}


class IllegalMoveError(ValueError):
    """A state change that the tables do not allow; the sentence names both states."""


def check_task_move(old: str, new: str) -> None:
    """Raise IllegalMoveError unless a task in state `old` may become `new`."""
    if TaskStatus(new) not in TASK_MOVES[TaskStatus(old)]:
        raise IllegalMoveError(f"a task that is {old} cannot become {new}")
