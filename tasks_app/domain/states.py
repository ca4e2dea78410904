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
    REMOVED = "removed"


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

ASKED_OF_ANY = frozenset({T.TOABORT, T.ABORTING, T.FINISHING, T.PASSED, T.TOBROKEN, T.PAUSED, T.PENDING})
"""What a command or a watchdog can ask of every active task."""


def _task(*nexts: TaskStatus) -> frozenset[TaskStatus]:
    """What an active task may become: the given states, and those that a command or a watchdog can ask of any."""
    return frozenset(nexts) | ASKED_OF_ANY


TASK_MOVES: Mapping[TaskStatus, frozenset[TaskStatus]] = {
    T.REGISTERED: _task(T.DEFINED, T.TOPREPROCESS, T.STAGING),
    T.STAGING: _task(T.STAGED, T.DEFINED),
    T.STAGED: _task(T.DEFINED),
    T.REREFINE: _task(T.DEFINED, T.TOPREPROCESS, T.READY, T.PREPARED),
    T.DEFINED: _task(T.ASSIGNING, T.READY, T.STAGING, T.EXHAUSTED, T.TOREASSIGN),
    T.ASSIGNING: _task(T.READY, T.SCOUTING, T.RUNNING, T.EXHAUSTED, T.TOREASSIGN),
    T.READY: _task(
        T.DEFINED, T.PREPROCESSING, T.SCOUTING, T.RUNNING, T.PREPARED, T.EXHAUSTED, T.THROTTLED, T.TOREASSIGN
    ),
    T.SCOUTING: _task(T.SCOUTED, T.RUNNING, T.EXHAUSTED, T.PREPARED, T.THROTTLED, T.DEFINED, T.TOREASSIGN),
    T.SCOUTED: _task(T.RUNNING, T.TOREASSIGN),
    T.RUNNING: _task(T.PREPARED, T.DEFINED, T.THROTTLED, T.EXHAUSTED, T.READY, T.TOREASSIGN),
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
        T.TOREASSIGN,
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
        T.TOREASSIGN,
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
    T.EXHAUSTED: _task(T.TORETRY, T.TOINCEXEC, T.TOREASSIGN, T.SCOUTING, T.RUNNING, T.READY),
    T.TOREASSIGN: _task(T.REASSIGNING, T.DEFINED, T.ASSIGNING, T.READY, T.SCOUTING, T.SCOUTED, T.RUNNING, T.EXHAUSTED),
    T.REASSIGNING: _task(T.ASSIGNING, T.READY, T.RUNNING, T.SCOUTING, T.DEFINED),
    T.TORETRY: _task(T.READY, T.EXHAUSTED, T.FINISHED, T.FAILED, T.ABORTED),
    T.TOINCEXEC: _task(T.REREFINE),
    T.FINISHED: frozenset({T.TORETRY, T.TOINCEXEC, T.DONE}),
    T.FAILED: frozenset({T.TORETRY, T.TOINCEXEC}),
    T.ABORTED: frozenset({T.TORETRY, T.TOINCEXEC}),
    T.DONE: frozenset({T.TOINCEXEC}),
    T.BROKEN: frozenset(),
}

TASK_FINAL = frozenset({T.DONE, T.FINISHED, T.FAILED, T.ABORTED, T.BROKEN})
"""A task rests here; only a retry or an incremental execution starts it again."""

TASK_GENERATING = frozenset({T.READY, T.SCOUTING, T.RUNNING})
"""The job generator looks at tasks in these states."""

TASK_SEEKS_INPUT = frozenset({T.REGISTERED, T.STAGED, T.REREFINE, T.DEFINED})
"""Refiner and feeder look at tasks in these states. One that they set aside returns there: it waits for input, or its parent."""

_ENDS = frozenset({J.FINISHED, J.FAILED, J.CANCELLED, J.CLOSED})

JOB_MOVES: Mapping[JobStatus, frozenset[JobStatus]] = {
    J.PENDING: _ENDS | {J.DEFINED, J.ASSIGNED, J.ACTIVATED, J.THROTTLED},
    J.WAITING: _ENDS | {J.DEFINED, J.ACTIVATED},
    J.DEFINED: _ENDS | {J.ASSIGNED, J.ACTIVATED, J.THROTTLED},
    J.ASSIGNED: _ENDS | {J.ACTIVATED, J.THROTTLED},
    J.ACTIVATED: _ENDS | {J.THROTTLED, J.SENT},
    J.THROTTLED: _ENDS | {J.ACTIVATED},
    J.SENT: _ENDS | {J.STARTING, J.RUNNING, J.HOLDING, J.MERGING},
    J.STARTING: _ENDS | {J.RUNNING, J.HOLDING, J.MERGING},
    J.RUNNING: _ENDS | {J.HOLDING, J.MERGING},
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


D, F = DatasetStatus, FileStatus
_LOOKED_UP = frozenset({D.READY, D.PENDING, D.DONE, D.FINISHED, D.FAILED, D.BROKEN, D.REMOVED})
_DATASET_ENDS = frozenset({D.DONE, D.FINISHED, D.FAILED})

DATASET_MOVES: Mapping[str, Mapping[DatasetStatus, frozenset[DatasetStatus]]] = {
    "input": {
        D.REGISTERED: _LOOKED_UP | {D.DEFINED, D.TOUPDATE},
        D.DEFINED: _LOOKED_UP | {D.TOUPDATE},
        D.TOUPDATE: _LOOKED_UP,
        D.PENDING: _LOOKED_UP - {D.PENDING} | {D.TOUPDATE},
        D.READY: _DATASET_ENDS | {D.TOUPDATE, D.DEFINED, D.REMOVED, D.BROKEN},
        D.DONE: _DATASET_ENDS - {D.DONE} | {D.READY, D.TOUPDATE, D.REMOVED},
        D.FINISHED: _DATASET_ENDS - {D.FINISHED} | {D.READY, D.TOUPDATE, D.REMOVED},
        D.FAILED: _DATASET_ENDS - {D.FAILED} | {D.READY, D.TOUPDATE, D.REMOVED},
        D.REMOVED: frozenset({D.DEFINED, D.TOUPDATE}),
        D.BROKEN: frozenset({D.TOUPDATE, D.REMOVED}),
    },
    "output": {
        D.REGISTERED: frozenset({D.DEFINED}),
        D.DEFINED: _DATASET_ENDS | {D.READY, D.RUNNING},
        D.READY: _DATASET_ENDS | {D.PREPARED, D.RUNNING},
        D.RUNNING: _DATASET_ENDS | {D.PREPARED, D.READY},
        D.PREPARED: _DATASET_ENDS,
        D.DONE: _DATASET_ENDS - {D.DONE} | {D.READY},
        D.FINISHED: _DATASET_ENDS - {D.FINISHED} | {D.READY},
        D.FAILED: _DATASET_ENDS - {D.FAILED} | {D.READY},
    },
}
"""Of datasets that a task reads, and of those that it makes. One that has ended ends anew with each end of its task."""

FILE_MOVES: Mapping[str, Mapping[FileStatus, frozenset[FileStatus]]] = {
    "input": {
        F.STAGING: frozenset({F.PENDING, F.READY, F.LOST, F.MISSING, F.REMOVED}),
        F.PENDING: frozenset({F.READY, F.LOST, F.MISSING, F.REMOVED}),
        F.READY: frozenset({F.PICKED, F.RUNNING, F.PARTIAL, F.LOST, F.MISSING, F.REMOVED}),
        F.PICKED: frozenset({F.RUNNING, F.READY}),
        F.RUNNING: frozenset({F.FINISHED, F.PARTIAL, F.READY}),
        F.FINISHED: frozenset({F.READY}),
        F.PARTIAL: frozenset({F.READY}),
        F.LOST: frozenset({F.PENDING, F.READY, F.STAGING, F.REMOVED}),
        F.MISSING: frozenset({F.PENDING, F.READY, F.STAGING, F.REMOVED}),
        F.REMOVED: frozenset(),
    },
    "output": {
        F.DEFINED: frozenset({F.FINISHED, F.FAILED, F.CANCELLED, F.NOOUTPUT, F.READY, F.RUNNING}),
        F.READY: frozenset({F.PICKED, F.RUNNING, F.NOTMERGED, F.FAILED, F.CANCELLED}),
        F.PICKED: frozenset({F.RUNNING, F.READY}),
        F.RUNNING: frozenset({F.FINISHED, F.READY, F.NOTMERGED, F.FAILED, F.CANCELLED}),
        F.FINISHED: frozenset({F.LOST}),
        F.FAILED: frozenset(),
        F.CANCELLED: frozenset(),
        F.NOOUTPUT: frozenset(),
        F.NOTMERGED: frozenset(),
        F.LOST: frozenset({F.FINISHED}),
    },
}
"""Of files that a task reads: one that has used up its attempts is ready still, and counted as failed. Of files that it
makes: those that are to be merged become ready, and are inputs of merge jobs."""
FILE_PROCESSED = frozenset({F.FINISHED, F.PARTIAL})
"""Of files that a task reads: its jobs have made what they could of it. Of a partial one some events were given up."""
FILE_STATES = tuple(status for status in FileStatus if any(status in moves for moves in FILE_MOVES.values()))
"""Those that a file can be in. The other states are words of JEDI's documents, which no list, filter or answer offers."""


class IllegalMoveError(ValueError):
    """A state change that the tables do not allow; the sentence names both states."""


def check_task_move(old: str, new: str) -> None:
    """Raise IllegalMoveError unless a task in state `old` may become `new`."""
    if TaskStatus(new) not in TASK_MOVES[TaskStatus(old)]:
        raise IllegalMoveError(f"a task cannot go from {old} to {new}")
