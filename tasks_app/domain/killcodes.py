"""Kill codes: what each one means, who may use it, and what becomes of the job. Pure.

From the running system's table (lifecycle 7.2); "killed by the system ends closed, by hand ends cancelled" is the
JEDI document's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import Final, Literal

from tasks_app.domain.states import JOB_FINAL, JOB_QUEUED, JobStatus

SubStatus = Literal["toreassign", "taskdone"]


class Kill(IntEnum):
    USER = 0
    EXPIRED = 2
    EXTERNAL = 3
    EXPIRED_WAITING = 4
    SERVER_RETRY = 7
    REBROKERAGE = 8
    FORCE = 9
    FAST_REBROKERAGE = 10
    JEDI = 50
    REASSIGN = 51
    JEDI_FORCE = 52
    TASK_DONE = 55
    EMPTY_WORKER = 60
    PRODUCTION_ROLE = 91
    PRODUCTION_FORCE = 99


@dataclass(frozen=True, slots=True)
class KillCode:
    """One row of the table. `sub_status` is written; with `keeps_sub_status` the pilot's own stays."""

    code: Kill
    meaning: str
    status: JobStatus
    sub_status: SubStatus | None = None
    keeps_sub_status: bool = False


_C, _X = JobStatus.CLOSED, JobStatus.CANCELLED

KILL_CODES: Final[Mapping[int, KillCode]] = MappingProxyType(
    {
        row.code: row
        for row in (
            KillCode(Kill.USER, "killed by a user", _X),
            KillCode(Kill.EXPIRED, "expired", _C, "toreassign"),
            KillCode(Kill.EXTERNAL, "aborted through an external interface", _X),
            KillCode(Kill.EXPIRED_WAITING, "expired while waiting", _C, "toreassign"),
            KillCode(Kill.SERVER_RETRY, "tried again by the server", _X),
            KillCode(Kill.REBROKERAGE, "brokered again", _X),
            KillCode(Kill.FORCE, "killed by force", _X),
            KillCode(Kill.FAST_REBROKERAGE, "brokered again, because the queue is overloaded", _C),
            KillCode(Kill.JEDI, "killed with its task", _X),
            KillCode(Kill.REASSIGN, "assigned anew", _C, "toreassign"),
            KillCode(Kill.JEDI_FORCE, "killed by force with its task", _X),
            KillCode(Kill.TASK_DONE, "no longer needed, the task is (almost) done", _C, "taskdone"),
            KillCode(Kill.EMPTY_WORKER, "the worker ended without doing any work", _C, keeps_sub_status=True),
            KillCode(Kill.PRODUCTION_ROLE, "killed by a production manager", _X),
            KillCode(Kill.PRODUCTION_FORCE, "killed by force by a production manager", _X),
        )
    }
)

MANAGER_MAY_USE: Final = frozenset({2, 4, 7, 8, 9, 10, 50, 51, 52, 91, 99})
"""The codes with which a production manager may end the jobs of others' analysis."""

MADE_ANEW: Final = frozenset({Kill.REBROKERAGE, Kill.FAST_REBROKERAGE, Kill.REASSIGN})
"""The codes of jobs that are ended so that another queue may have the work."""


@dataclass(frozen=True, slots=True)
class KilledJob:
    """What a kill needs to know of a job. `event_service` excludes job cloning."""

    status: JobStatus
    label: str = ""
    event_service: bool = False


class When(Enum):
    """When a kill takes effect."""

    NOW = "the job ends at once"
    NEXT_HEARTBEAT = "the pilot is told to stop at its next heartbeat"
    NEVER = "the job is left alone"


@dataclass(frozen=True, slots=True)
class KillResult:
    """What becomes of a job: when, its final status and substatus (None leaves the substatus), and what it is called.

    `spares_attempt`: no pilot has had the job and another one is made of its files, so they keep the attempts that they had.
    """

    when: When
    status: JobStatus
    sub_status: str | None
    meaning: str
    spares_attempt: bool = False


def kill_code(code: int | None) -> KillCode:
    """The row of a code; an unknown one and None are a user's kill."""
    return KILL_CODES.get(code or 0, KILL_CODES[Kill.USER])


ERROR_BASE: Final = 100
"""A killed job bears this plus its kill code as the error of the task buffer; 100 itself is a user's kill."""


def error_code(code: int | None) -> int:
    """The task buffer's error code of a job killed with `code`."""
    return ERROR_BASE + kill_code(code).code


def killed_with(error: int | None) -> KillCode:
    """The kill code behind a task buffer's error code; None and every other error are a user's kill."""
    return kill_code((error or ERROR_BASE) - ERROR_BASE)


def kill_result(
    code: int | None, job: KilledJob, *, production_role: bool = False, keep_unmerged: bool = False
) -> KillResult:
    """What a kill with this code does to a job.

    A job that has ended keeps its status; with `keep_unmerged` so does one that waits for its merge. Queued jobs end
    at once. Running ones are told to stop, unless nobody would hear it (merging, event service) or force was used: 9
    and 52 for managed and test jobs, 99 with the production role.
    """
    row = kill_code(code)
    if job.status in JOB_FINAL or (keep_unmerged and job.status == JobStatus.MERGING):
        return KillResult(When.NEVER, job.status, None, row.meaning)
    when = When.NOW if _at_once(row.code, job, production_role) else When.NEXT_HEARTBEAT
    spares = row.code in MADE_ANEW and job.status in JOB_QUEUED
    return KillResult(when, row.status, row.sub_status, row.meaning, spares)


def _at_once(code: Kill, job: KilledJob, production_role: bool) -> bool:
    if job.status in JOB_QUEUED or job.status == JobStatus.MERGING or job.event_service:
        return True
    if code in (Kill.FORCE, Kill.JEDI_FORCE):
        return job.label == "managed" or "test" in job.label
    return code == Kill.PRODUCTION_FORCE and production_role


def may_kill(code: int | None, *, owner: bool, production_role: bool, analysis: bool) -> bool:
    """Whether somebody may end a job with this code: owners their own; production managers all, but the analysis
    jobs of others (`analysis`) only with the codes of MANAGER_MAY_USE."""
    if owner:
        return True
    return production_role and (not analysis or (code or 0) in MANAGER_MAY_USE)
