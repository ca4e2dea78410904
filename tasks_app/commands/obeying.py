"""A command is carried out on its task; tasks that are in the midst of one get it again, or are completed when no job is left."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

import structlog
from django.db import transaction

from jedisite.agents.passes import owner
from jedisite.agents.turns import TurnTooLongError, turn
from jedisite.processes.logs import sentence_of
from jedisite.vocabulary.words import plural
from tasks_app.commands import handlers, rerun  # noqa: F401 - its functions declare which commands they carry out
from tasks_app.commands.handlers import HANDLERS, Order
from tasks_app.domain.states import JOB_OPEN, JOB_QUEUED, JobStatus, TaskStatus
from tasks_app.domain.task_commands import TASK_DOING, TaskCommand
from tasks_app.lifecycle import claims, file_moves, task_moves
from tasks_app.models import Command, Task
from tasks_app.models.command import FOLLOWS
from tasks_app.params.command_parameters import HARD
from tasks_app.submission import command_queue

log = structlog.get_logger(__name__)
ME = "commando"
LIMIT = 50
"""Tasks or commands of one pass."""
STUCK_AFTER = timedelta(minutes=5)
"""A task that is in the midst of a command for so long gets it again: whoever began it may be gone."""


# Of one task's commands only the first that waits: a second is obeyed after it, even if another process has the first.
_FIRST = """NOT EXISTS (SELECT 1 FROM task_commands e WHERE e.comm_task = task_commands.comm_task
                         AND e.comm_status = 'waiting' AND e.id < task_commands.id)"""


@transaction.atomic
def obey_next() -> bool:
    waiting = Command.objects.select_for_update(skip_locked=True, of=("self",)).filter(status="waiting")
    command = waiting.extra(where=[_FIRST]).order_by("id").first()
    if command is None:
        return False
    task = Task.objects.select_for_update().get(pk=command.task_id)
    try:
        with transaction.atomic():  # a refused command leaves nothing behind
            order = _order_of(command)
            if not order.parameters.get(FOLLOWS):
                command_queue.check_command(task, command.name, order.parameters)
            with turn(ME, task.id):
                status, answer = "done", HANDLERS[TaskCommand(command.name)](task, order)
    except command_queue.CommandRefusedError as exc:
        status, answer = "refused", str(exc)
    except (Exception, TurnTooLongError) as exc:
        log.exception("commando.failed", command=command.id, task=task.id)
        status, answer = "refused", f"an unexpected error stopped the command: {sentence_of(exc)}"
    command.end(status, answer)
    return True


def _order_of(command: Command) -> Order:
    return Order(command.name, command.owner, command.comment, command.parameters or {})


def _last_order(task: Task, name: TaskCommand) -> Order:
    """The command that a task is in the midst of; one without parameters when it has no command of the kind."""
    command = Command.objects.filter(task=task, name=name, status="done").order_by("-id").first()
    return _order_of(command) if command else Order(name, ME, "")


def obey_again(now: datetime) -> None:
    """Give tasks that have been in the midst of a command for long the same command again."""
    long_ago = (now - STUCK_AFTER).isoformat()
    condition = f"t.statechangetime < '{long_ago}' AND t.modificationtime < '{long_ago}'"
    stuck = claims.claim_tasks(owner(), list(TASK_DOING), LIMIT, condition=condition, even_waiting=True, agent=ME)
    claims.for_each(stuck, partial(_do_again, now=now), by=ME)


@transaction.atomic
def _do_again(task_id: int, fence: int, *, now: datetime) -> bool:
    if not claims.still_holds(task_id, fence):
        return False
    task = Task.objects.get(pk=task_id)
    status = TaskStatus(task.status)
    name = TASK_DOING[status]
    try:
        with transaction.atomic():
            HANDLERS[name](task, _last_order(task, name))
    except command_queue.CommandRefusedError as exc:
        back = task.old_status or TaskStatus.READY
        task_moves.move_task(task_id, back, by=ME, reason=str(exc), old_status=None, error_dialog=str(exc))
        return True
    # Not again before the same time has passed.
    Task.objects.filter(pk=task_id, status=status).update(modification_time=now)
    claims.release_task(task_id, fence)
    return True


def _list(statuses: frozenset[str] | frozenset[object]) -> str:
    return ", ".join(f"'{status}'" for status in sorted(map(str, statuses)))


_JOBS = "SELECT 1 FROM jobs j WHERE j.jeditaskid = t.jeditaskid AND j.jobstatus IN"
_NO_JOB = f"NOT EXISTS ({_JOBS} ({_list(JOB_OPEN)}))"
# A task that is to finish waits for its merge jobs; one that is killed does not.
_NO_JOB_WORKS = f"NOT EXISTS ({_JOBS} ({_list(JOB_OPEN - {JobStatus.MERGING})}))"
# A reassignment waits for running jobs only when it ends them.
_JOBS_ENDED = f"""CASE (SELECT coalesce(c.comm_parameters ->> 'mode', '{HARD}') FROM task_commands c
                         WHERE c.comm_task = t.jeditaskid AND c.comm_cmd = 'reassign' AND c.comm_status = 'done'
                         ORDER BY c.id DESC LIMIT 1)
    WHEN 'nokill' THEN TRUE WHEN 'soft' THEN NOT EXISTS ({_JOBS} ({_list(JOB_QUEUED)}))
    ELSE {_NO_JOB} END"""  # noqa: S608 - constants


def complete_commands() -> int:
    """Tasks whose last job has ended go on as their command says. Returns how many."""
    done = _complete(TaskStatus.ABORTING, _NO_JOB_WORKS, _abort) + _complete(TaskStatus.FINISHING, _NO_JOB, _pass)
    done += _complete(TaskStatus.TOREASSIGN, _JOBS_ENDED, _reassigned)
    return done + _complete(TaskStatus.REASSIGNING, _JOBS_ENDED, _reassigned)


def _complete(status: str, condition: str, work: Callable[[int, int], None]) -> int:
    """Tasks that are in the midst of a command and have no more job that it waits for go on."""
    claimed = claims.claim_tasks(owner(), [status], LIMIT, condition=condition, even_waiting=True, agent=ME)
    return claims.for_each(claimed, work, by=ME)


def _abort(task_id: int, fence: int) -> None:
    task_moves.move_task(task_id, TaskStatus.TOABORT, by=ME, reason="no job is left", fence=fence, old_status=None)


@transaction.atomic
def _pass(task_id: int, fence: int) -> None:
    given_up = file_moves.give_up(task_id)
    reason = f"no job is left; {plural(given_up, 'file was', 'files were')} not processed"
    task_moves.move_task(task_id, TaskStatus.PASSED, by=ME, reason=reason, fence=fence)


@transaction.atomic
def _reassigned(task_id: int, fence: int) -> None:
    task = Task.objects.get(pk=task_id)
    handlers.complete_reassign(task, _last_order(task, TaskCommand.REASSIGN), fence)
