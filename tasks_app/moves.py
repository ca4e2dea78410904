"""The doors through which the state of a task changes: one transaction each, written to the status log with who and why."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import connection, transaction
from django.utils import timezone

from jedisite import audit, troubles
from jedisite.agents import kick, renew_lease
from jedisite.logs import sentence_of
from jedisite.turns import FOR_EACH_S, TurnTooLongError, turn
from tasks_app import timeouts
from tasks_app.accounting.throttling import Cause
from tasks_app.messaging import outbox
from tasks_app.models import Command, Task, TaskParams, TaskStatusLog
from tasks_app.states import (
    COMMAND_ACCEPTED_IN,
    MORE_ATTEMPTS_IN,
    IllegalMoveError,
    TaskCommand,
    TaskStatus,
    check_task_move,
)

log = structlog.get_logger(__name__)
HOST = socket.gethostname()[:128]

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


class LostClaimError(RuntimeError):
    """Another process has taken the task over: nothing was written."""


class CommandRefusedError(ValueError):
    """The task's state does not accept the command; the sentence names both."""


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
    stuck = to in (TaskStatus.PENDING, TaskStatus.ASSIGNING)
    changed.setdefault("frozen_time", (task.frozen_time or now) if stuck else None)
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
) -> int:
    """Register a task with its parameters as they came. Returns its id. The refiner reads them next."""
    task_id = next_task_id()
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
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval('jedi_tasks_id_seq')")
        return int(cursor.fetchone()[0])


@transaction.atomic
def give_command(
    task_id: int, command: str, *, by: str, reason: str = "", parameters: dict[str, Any] | None = None
) -> Command:
    """Queue a command for a task. Raises CommandRefusedError when its state does not accept it now."""
    task = Task.objects.select_for_update().get(pk=task_id)
    (row,) = queue_commands([task], command, by=by, reason=reason, parameters=parameters)
    return row


def queue_commands(
    tasks: Sequence[Task],
    command: str,
    *,
    by: str,
    reason: str,
    parameters: dict[str, Any] | None = None,
    act: Mapping[str, Any] | None = None,
) -> list[Command]:
    """Queue a command for each of several tasks, whose rows the caller's transaction has locked.

    `act` is noted in the audit trail beside the parameters. Raises CommandRefusedError, and writes nothing, when the
    state of one does not accept it now.
    """
    for task in tasks:
        check_command(task, command)
    rows = Command.objects.bulk_create(
        Command(task=task, name=command, owner=by, comment=reason, parameters=parameters) for task in tasks
    )
    details = {**(parameters or {}), **(act or {})} or None
    audit.record_many(by, command, "task", [task.id for task in tasks], reason=reason, details=details)
    kick("commando")
    return rows


def check_command(task: Task, command: str) -> None:
    """Raise CommandRefusedError unless a task in this state accepts the command."""
    accepted = COMMAND_ACCEPTED_IN[TaskCommand(command)]
    status = TaskStatus(task.status)
    if status not in accepted:
        raise CommandRefusedError(
            f"task {task.id} is {task.status}; {command} is accepted in: {', '.join(sorted(accepted))}"
        )
    if command == TaskCommand.RETRY and status in MORE_ATTEMPTS_IN and task.prod_source_label != "user":
        raise CommandRefusedError(
            f"task {task.id} is {task.status}; only tasks with the label user are retried in this state"
        )


def note_on_task(task_id: int, *, by: str, reason: str) -> None:
    """Write into a task's status log what was done to it in the state in which it is. Its row is the caller's to lock."""
    note_on_tasks([task_id], by=by, reason=reason)


def note_on_tasks(task_ids: Sequence[int], *, by: str, reason: str) -> None:
    """The same for several tasks."""
    TaskStatusLog.objects.bulk_create(
        TaskStatusLog(task_id=task_id, status=status, attempt=attempt, by=by, reason=reason, host=HOST)
        for task_id, status, attempt in Task.objects.filter(pk__in=task_ids).values_list("id", "status", "attempt")
    )


def wake_task(task_id: int, *agents: str) -> None:
    """Whatever the task waits for, these agents look at it now."""
    wake_tasks([task_id], *agents)


def wake_tasks(task_ids: Sequence[int], *agents: str) -> None:
    """The same for several tasks."""
    Task.objects.filter(pk__in=task_ids).update(next_check=timezone.now())
    kick(*agents)


_CAUSES: dict[str, Cause] = {"job_generator": "job_broker", "task_broker": "task_broker"}
"""Who sets a task aside says for how long it rests; see `timeouts.pending_wait`."""


def set_aside(
    task_id: int, fence: int, *, by: str, reason: str, wait: timedelta | None = None, frozen: bool = True
) -> None:
    """Put a task into pending with the reason for people to read; it is tried again after `wait`.

    Without a wait, or with none to speak of, the table of time-outs says how long, by who could not place the task.
    """
    if not wait:
        label, priority = Task.objects.values_list("prod_source_label", "current_priority").get(pk=task_id)
        wait = timeouts.pending_wait(label or "", priority or 0, _CAUSES.get(by, "other"))
    more: dict[str, Any] = {"error_dialog": reason}
    if not frozen:
        more["frozen_time"] = None
    move_task(task_id, TaskStatus.PENDING, by=by, reason=reason, remember=True, wait=wait, fence=fence, **more)


def break_task(task_id: int, fence: int, *, by: str, reason: str) -> None:
    """The task cannot ever run: it will be broken, with the reason on it."""
    move_task(task_id, TaskStatus.TOBROKEN, by=by, reason=reason, fence=fence, error_dialog=reason)


def throttle_task(
    task_id: int, fence: int, *, by: str, reason: str, until: datetime, now: datetime, **columns: Any
) -> None:
    """No jobs are made of a task until a time; jobs that it has go on. `go_on` ends that."""
    move_task(
        task_id, TaskStatus.THROTTLED, by=by, reason=reason, remember=True, wait=until - now, fence=fence,
        error_dialog=reason, throttled_time=until, **{k: v for k, v in columns.items() if v is not None},
    )  # fmt: skip


def go_on(task: Task, fence: int, *, by: str, reason: str) -> None:
    """A throttled task does what it did before."""
    move_task(
        task.id, task.old_status or TaskStatus.RUNNING, by=by, reason=reason, fence=fence, old_status=None,
        error_dialog=None, throttled_time=None,
    )  # fmt: skip


@transaction.atomic
def note_task(task_id: int, fence: int, *, by: str, reason: str, **columns: Any) -> None:
    """Change columns of a claimed task and free it; its log says who and why. Its state stays.

    Raises LostClaimError, and then writes nothing.
    """
    task = Task.objects.select_for_update().get(pk=task_id)
    if task.fence != fence:
        raise LostClaimError(f"the claim on task {task_id} is gone")
    TaskStatusLog.objects.create(
        task_id=task_id, old_status=task.status, status=task.status, at=timezone.now(), attempt=task.attempt, by=by,
        reason=reason, host=HOST,
    )  # fmt: skip
    for name, value in columns.items():
        setattr(task, name, value)
    task.locked_by = task.locked_time = None
    task.save(update_fields=[*columns, "locked_by", "locked_time"])


def command_of_ours(
    task_id: int, command: str, *, by: str, reason: str, parameters: dict[str, Any] | None = None
) -> bool:
    """A watch dog gives a command, as a user would; it is obeyed by task commando. False when it is not accepted now."""
    try:
        give_command(task_id, command, by=by, reason=reason, parameters=parameters)
    except CommandRefusedError:
        return False
    return True


def claim_tasks(
    by: str,
    statuses: Iterable[str],
    limit: int,
    *,
    agent: str = "",
    condition: str = "TRUE",
    values: Mapping[str, Any] | None = None,
    even_waiting: bool = False,
) -> list[tuple[int, int]]:
    """Lock up to `limit` tasks of these states for a process and return (task id, fence) of each, most urgent first.

    Tasks that another holds are skipped, those that `agent` leaves aside after an error, and those that wait for their
    time unless `even_waiting`. `condition` is SQL of ours on the row `t`, with `values`. The lock is freed by a move or by
    `release_task`; the watch dog frees what its holder left.
    """
    due = "TRUE" if even_waiting else "t.next_check_at <= clock_timestamp()"
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            WITH chosen AS (
                SELECT t.jeditaskid FROM jedi_tasks t
                 WHERE t.status = ANY(%(statuses)s) AND t.lockedby IS NULL AND {due} AND {condition}
                   AND NOT {troubles.left_aside("task", "t.jeditaskid")}
                 ORDER BY t.currentpriority DESC NULLS LAST, t.jeditaskid LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
            UPDATE jedi_tasks t SET lockedby = %(by)s, lockedtime = clock_timestamp(), fence = fence + 1
              FROM chosen WHERE t.jeditaskid = chosen.jeditaskid
            RETURNING t.jeditaskid, t.fence, t.currentpriority
            """,  # noqa: S608 - the conditions are ours, never a user's
            {**(values or {}), "statuses": list(statuses), "limit": limit, "by": by, "agent": agent},
        )
        rows = cursor.fetchall()
    return [(task, fence) for task, fence, _ in sorted(rows, key=lambda r: (-(r[2] or 0), r[0]))]


def release_task(
    task_id: int, fence: int, *, wait: timedelta = timedelta(), note: str | None = None, thawed: bool = False
) -> None:
    """Free a claim without changing the state; agents look again after `wait`. A claim that is gone is left alone.

    `note` becomes the sentence that the task's page shows. `thawed` says that something could be done for the task: the
    clock of how long it has been stuck ends.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """UPDATE jedi_tasks SET lockedby = NULL, lockedtime = NULL,
                      next_check_at = clock_timestamp() + %s * interval '1 second', errordialog = coalesce(%s, errordialog),
                      frozentime = CASE WHEN %s THEN NULL ELSE frozentime END
                WHERE jeditaskid = %s AND fence = %s""",
            [wait.total_seconds(), note, thawed, task_id, fence],
        )


def for_each(claimed: Iterable[tuple[int, int]], work: Callable[[int, int], bool | None], *, by: str) -> int:
    """Do a pass's work on each claimed task: `work(task id, fence)`, which returns False when it found nothing to do.

    Returns how many went well and moved something.

    A task whose work fails unexpectedly, or takes too long, is left aside by this agent, longer each time; the others go
    on. When the time for one go is over, the rest is set free for the next pass.
    """
    rest, well, moved = list(claimed), [], 0
    began = renewed = time.monotonic()
    while rest and time.monotonic() - began < FOR_EACH_S:
        if time.monotonic() - renewed > RENEW_CLAIMS_S:
            _renew(rest)
            renewed = time.monotonic()
        task_id, fence = rest.pop(0)
        renew_lease()
        try:
            with turn(by, task_id):
                moved += work(task_id, fence) is not False
        except LostClaimError:
            log.info("task.lost_claim", task=task_id, agent=by)
        except (Exception, TurnTooLongError) as exc:
            log.exception("task.pass_failed", task=task_id, agent=by)
            _fail(task_id, fence, by, exc)
        else:
            well.append(task_id)
    _recover(well, by)
    for task_id, fence in rest:
        release_task(task_id, fence)
    if rest:
        kick(by)
    return moved


RENEW_CLAIMS_S = 10.0
"""So old a claim may be when its turn comes; then the turn fits into the lease of the claim."""


def _renew(claimed: Sequence[tuple[int, int]]) -> None:
    """The leases of these claims start anew, as far as they stand."""
    with connection.cursor() as cursor:
        cursor.execute(
            """UPDATE jedi_tasks t SET lockedtime = clock_timestamp() FROM unnest(%s::bigint[], %s::bigint[]) c (id, fence)
                WHERE t.jeditaskid = c.id AND t.fence = c.fence AND t.lockedby IS NOT NULL""",
            [[task_id for task_id, _ in claimed], [fence for _, fence in claimed]],
        )


_FAILED = "{by} met an unexpected error and will try again: "


@transaction.atomic
def _fail(task_id: int, fence: int, by: str, error: BaseException) -> None:
    said = sentence_of(error)
    troubles.note(by, "task", task_id, said, task_id)
    release_task(task_id, fence, note=_FAILED.format(by=by) + said)


@transaction.atomic
def _recover(tasks: Sequence[int], by: str) -> None:
    """What went well is no trouble any more, and its page says so."""
    for task_id in troubles.clear(by, "task", tasks):
        Task.objects.filter(pk=task_id, error_dialog__startswith=_FAILED.format(by=by)).update(error_dialog=None)


def still_holds(task_id: int, fence: int) -> bool:
    """Lock the task's row in this transaction and say whether the claim stands."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM jedi_tasks WHERE jeditaskid = %s AND fence = %s FOR UPDATE", [task_id, fence])
        return cursor.fetchone() is not None


__all__ = [
    "CommandRefusedError",
    "IllegalMoveError",
    "LostClaimError",
    "break_task",
    "check_command",
    "claim_tasks",
    "command_of_ours",
    "for_each",
    "give_command",
    "go_on",
    "move_task",
    "next_task_id",
    "note_on_task",
    "note_on_tasks",
    "note_task",
    "queue_commands",
    "release_task",
    "set_aside",
    "still_holds",
    "submit",
    "throttle_task",
    "wake_task",
    "wake_tasks",
]
