"""The state of a subjob from its job on the site, and that of a master from its subjobs. Pure.

States are Ganga's words: new, submitting, submitted, running, completing, completed, failed, killed.
"""

from __future__ import annotations

from collections.abc import Iterable

NEW, SUBMITTING, SUBMITTED, RUNNING = "new", "submitting", "submitted", "running"
COMPLETING, COMPLETED, FAILED, KILLED = "completing", "completed", "failed", "killed"
STATUSES = (NEW, SUBMITTING, SUBMITTED, RUNNING, COMPLETING, COMPLETED, FAILED, KILLED)
FINAL = frozenset({COMPLETED, FAILED, KILLED})
ACTIVE = frozenset({SUBMITTING, SUBMITTED, RUNNING, COMPLETING})

_WAITS = (SUBMITTED, frozenset({SUBMITTING, SUBMITTED}))
_RUNS = (RUNNING, frozenset({RUNNING, COMPLETING}))
_ENDED = ((FAILED, frozenset({FAILED})), (COMPLETED, frozenset({COMPLETED})), (KILLED, frozenset({KILLED})))


def master_status(subjobs: Iterable[str], *, running_first: bool = False) -> str:
    """The state of a master whose subjobs are in these states: the first row of the table that fits.

    Subjobs that were never submitted (new) count only when there are no others; a master that has none is new.
    `running_first` lets running win over submitted. Raises ValueError for a word that is no state.
    """
    present = set(subjobs)
    if unknown := present.difference(STATUSES):
        raise ValueError(f"{sorted(unknown)[0]} is not the state of a subjob: there are {', '.join(STATUSES)}")
    first = (_RUNS, _WAITS) if running_first else (_WAITS, _RUNS)
    return next((status for status, some in (*first, *_ENDED) if present & some), NEW)


_QUEUED = frozenset({"pending", "waiting", "defined", "assigned", "activated", "throttled", "sent", "starting"})
_GATHERED = frozenset({"holding", "transferring", "merging"})


def subjob_status(file: str, job: str | None, *, given_up: bool, task_is_final: bool, task_is_broken: bool) -> str:
    """The state of a subjob of a task.

    `file`: the state of its first input in the books; `job`: that of its last job, None before there is one. `given_up`: no
    job of it will follow. A task that has ended makes no more jobs, and one that is broken fails all.
    """
    if file == "finished":
        return COMPLETED
    if job == "running":
        return RUNNING
    if job in _GATHERED:
        return COMPLETING
    if job in _QUEUED:
        return SUBMITTED
    if file in ("lost", "missing"):
        return FAILED
    if file == "removed":
        return KILLED
    if not given_up and not task_is_final:
        return SUBMITTED
    return FAILED if task_is_broken or job in ("failed", "finished") else KILLED
