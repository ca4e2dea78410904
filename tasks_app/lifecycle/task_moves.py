"""The doors through which the state of a task changes: one transaction each, written to the status log with who and why."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import Q, Subquery
from django.utils import timezone

from jedisite import audit
from jedisite.agents.passes import kick
from jedisite.vocabulary.words import sentence
from tasks_app.configured import timeout_limits
from tasks_app.domain.states import (
    TASK_FINAL,
    TASK_GENERATING,
    IllegalMoveError,
    TaskStatus,
    check_task_move,
)
from tasks_app.lifecycle import outbox
from tasks_app.lifecycle.claims import LostClaimError
from tasks_app.models import Task, TaskParams, TaskStatusLog
from tasks_app.models.task import STUCK

HOST = socket.gethostname()[:128]

READY: Final = "READY"
"""The mark by which catalogues of metadata find tasks whose outputs are complete."""
SUCCEEDED: Final = (TaskStatus.DONE, TaskStatus.FINISHED)

NEXT_AGENT: dict[str, tuple[str, ...]] = {
    TaskStatus.REGISTERED: ("refiner",),
    TaskStatus.DEFINED: ("feeder",),
    TaskStatus.ASSIGNING: ("task_broker",),
    TaskStatus.TOPREPROCESS: ("job_generator",),
    TaskStatus.READY: ("job_generator", "post_processor"),
    TaskStatus.RUNNING: ("job_generator",),
    TaskStatus.SCOUTING: ("job_generator",),
    TaskStatus.PREPARED: ("post_processor",),
    TaskStatus.PASSED: ("post_processor",),
    TaskStatus.TOBROKEN: ("post_processor",),
    TaskStatus.TOABORT: ("post_processor",),
    TaskStatus.ABORTING: ("commando",),
    TaskStatus.FINISHING: ("commando",),
    TaskStatus.TOREASSIGN: ("commando",),
    TaskStatus.REREFINE: ("refiner",),
    TaskStatus.STAGED: ("refiner",),
}
"""Which agents have work as soon as a task is in a state."""


@transaction.atomic
def move_task(
    task_id: int,
    to: str,
    *,
    by: str,
    reason: str = "",
    remember: bool = False,
    wait: timedelta | None = None,
    fence: int | None = None,
    **columns: Any,
) -> Task:
    """Change a task's state; the only place that does, besides its creation.

    `remember` keeps the state it leaves, to return to. `wait` hides the task from agents for that time. `columns` are
    further attributes to set. The task's lock is freed. With `fence`, the move is the last act of a claim. Raises
    IllegalMoveError, or LostClaimError when that claim is gone, and then writes nothing.
    """
    task = Task.objects.select_for_update().get(pk=task_id)
    if fence is not None and task.fence != fence:
        raise LostClaimError(f"the claim on task {task_id} is gone")
    check_task_move(task.status, to)
    now, old = timezone.now(), task.status
    TaskStatusLog.objects.create(
        task_id=task_id,
        old_status=old,
        status=to,
        at=now,
        attempt=task.attempt,
        by=by,
        reason=reason,
        host=HOST,
    )
    changed = {
        **columns,
        "status": to,
        "state_change_time": now,
        "modification_time": now,
        "next_check": now + (wait or timedelta()),
        "locked_by": None,
        "locked_time": None,
        "fence": task.fence + 1,
    }
    if remember:
        # Pending over pending keeps the state from before the first.
        changed["old_status"] = task.old_status if task.status == to and task.old_status else task.status
    if to in SUCCEEDED:
        changed["ami_flag"] = READY
    elif old in TASK_FINAL:
        changed["ami_flag"] = None
    if to not in TASK_GENERATING:
        changed |= {"ttc_predicted": None, "ttc_prediction_date": None}
    changed.setdefault("frozen_time", (task.frozen_time or now) if to in STUCK else None)
    for name, value in changed.items():
        setattr(task, name, value)
    task.save(update_fields=list(changed))
    outbox.task_changed(task, old, at=now, by=by, reason=reason)
    kick(*NEXT_AGENT.get(to, ()))
    return task


@transaction.atomic
def submit(
    params: dict[str, Any],
    *,
    name: str,
    user: str,
    vo: str,
    label: str,
    task_type: str,
    priority: int,
    parent_id: int | None,
    task_id: int | None = None,
) -> int:
    """Register a task with its parameters as they came. Returns its id. The refiner reads them next.

    `task_id`: the number that a production system has taken for it.
    """
    task_id = task_id or next_task_id()
    task = Task.objects.create(
        id=task_id,
        name=name,
        status=TaskStatus.REGISTERED,
        user=user,
        vo=vo,
        prod_source_label=label,
        task_type=task_type,
        task_priority=priority,
        current_priority=priority,
        parent_id=parent_id or task_id,
        attempt=0,
        req_id=task_id,
    )
    TaskParams.objects.create(task_id=task_id, params=params)
    TaskStatusLog.objects.create(
        task_id=task_id, status=TaskStatus.REGISTERED, attempt=0, by=user, reason="submitted", host=HOST
    )
    outbox.task_changed(task, None, at=timezone.now(), by=user, reason="submitted")
    audit.record(user, "submit", "task", task_id)
    kick("refiner")
    return task_id


def next_task_id() -> int:
    """The next number of the sequence. No row of T_TASK has it: the table takes only numbers that were given before."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval('jedi_tasks_id_seq')")
        return int(cursor.fetchone()[0])


def note_on_task(task_id: int, *, by: str, reason: str) -> None:
    """Write into a task's status log what was done to it in the state in which it is. Its row is the caller's to lock."""
    note_on_tasks([task_id], by=by, reason=reason)


def note_on_tasks(task_ids: Sequence[int], *, by: str, reason: str) -> None:
    """The same for several tasks."""
    TaskStatusLog.objects.bulk_create(
        TaskStatusLog(task_id=task_id, status=status, attempt=attempt, by=by, reason=reason, host=HOST)
        for task_id, status, attempt in Task.objects.filter(pk__in=task_ids).values_list("id", "status", "attempt")
    )


WARNED: Final = "warned when it was submitted: "
"""Begins the second line of a task's log, where there is something."""
_FEEDER: Final = "feeder"
_READ_AND_WARNED: Final = "; warning: "


def note_warnings(task_id: int, warnings: Sequence[str], *, by: str) -> None:
    """Keep what was doubted of a task that was submitted just now."""
    note_on_task(task_id, by=by, reason=WARNED + " ".join(warnings))


def with_warning(reason: str, warning: str) -> str:
    """The reason of the move by which the feeder hands a task on, with what it doubts of the input."""
    return f"{reason}{_READ_AND_WARNED}{warning}" if warning else reason


def warnings_of(task_id: int) -> str:
    """What was doubted of a task when it was submitted, and of its input when that was read last; "" for nothing. One query."""
    log = TaskStatusLog.objects.filter(task_id=task_id)
    second = log.order_by("id").values("id")[1:2]
    read = log.filter(by=_FEEDER, status__in=[TaskStatus.READY, TaskStatus.ASSIGNING]).order_by("-id").values("id")[:1]
    said = []
    for reason in (
        log.filter(Q(id=Subquery(second)) | Q(id=Subquery(read))).order_by("id").values_list("reason", flat=True)
    ):
        if reason.startswith(WARNED):
            said.append(reason.removeprefix(WARNED))
        elif (warning := sentence(reason.partition(_READ_AND_WARNED)[2])) and warning not in " ".join(said):
            said.append(warning)
    return " ".join(said)


def wake_task(task_id: int, *agents: str) -> None:
    """Whatever the task waits for, these agents look at it now."""
    wake_tasks([task_id], *agents)


def wake_tasks(task_ids: Sequence[int], *agents: str) -> None:
    """The same for several tasks."""
    Task.objects.filter(pk__in=task_ids).update(next_check=timezone.now())
    kick(*agents)


@transaction.atomic
def set_aside(
    task_id: int,
    fence: int,
    *,
    by: str,
    reason: str,
    wait: timedelta | None = None,
    frozen: bool = True,
    parent_ran: bool = False,
) -> None:
    """Put a task into pending with the reason for people to read; it is tried again after `wait`.

    Without a wait, or with none to speak of, the table of time-outs says how long, by its label and priority.
    `parent_ran`: the reason is that its parent had not ended; when that has ended since, the task is tried again at once.
    """
    if not wait:
        label, priority = Task.objects.values_list("prod_source_label", "current_priority").get(pk=task_id)
        wait = timeout_limits.pending_wait(label or "", priority or 0)
    more: dict[str, Any] = {"error_dialog": reason}
    if not frozen:
        more["frozen_time"] = None
    task = move_task(task_id, TaskStatus.PENDING, by=by, reason=reason, remember=True, wait=wait, fence=fence, **more)
    # From here on the end of the parent waits for this row, and wakes the task. What ended before is seen here.
    if parent_ran and Task.objects.filter(pk=task.parent_id, status__in=TASK_FINAL).exists():
        wake_task(task_id, "pending")


def break_task(task_id: int, fence: int, *, by: str, reason: str) -> None:
    """The task cannot ever run: it will be broken, with the reason on it."""
    move_task(task_id, TaskStatus.TOBROKEN, by=by, reason=reason, fence=fence, error_dialog=reason)


def throttle_task(
    task_id: int, fence: int, *, by: str, reason: str, until: datetime, now: datetime, **columns: Any
) -> None:
    """No jobs are made of a task until a time; jobs that it has go on. `resume_throttled` ends that."""
    move_task(
        task_id,
        TaskStatus.THROTTLED,
        by=by,
        reason=reason,
        remember=True,
        wait=until - now,
        fence=fence,
        error_dialog=reason,
        throttled_time=until,
        **{k: v for k, v in columns.items() if v is not None},
    )


def resume_throttled(task: Task, fence: int, *, by: str, reason: str) -> None:
    """Return a throttled task to the state that it had before."""
    move_task(
        task.id,
        task.old_status or TaskStatus.RUNNING,
        by=by,
        reason=reason,
        fence=fence,
        old_status=None,
        error_dialog=None,
        throttled_time=None,
    )


@transaction.atomic
def note_task(task_id: int, fence: int, *, by: str, reason: str, **columns: Any) -> None:
    """Change columns of a claimed task and free it; its log says who and why. Its state stays.

    Raises LostClaimError, and then writes nothing.
    """
    task = Task.objects.select_for_update().get(pk=task_id)
    if task.fence != fence:
        raise LostClaimError(f"the claim on task {task_id} is gone")
    TaskStatusLog.objects.create(
        task_id=task_id,
        old_status=task.status,
        status=task.status,
        at=timezone.now(),
        attempt=task.attempt,
        by=by,
        reason=reason,
        host=HOST,
    )
    for name, value in columns.items():
        setattr(task, name, value)
    task.locked_by = task.locked_time = None
    task.save(update_fields=[*columns, "locked_by", "locked_time"])


__all__ = [
    "IllegalMoveError",
    "break_task",
    "move_task",
    "next_task_id",
    "note_on_task",
    "note_on_tasks",
    "note_task",
    "resume_throttled",
    "set_aside",
    "submit",
    "throttle_task",
    "wake_task",
    "wake_tasks",
]
