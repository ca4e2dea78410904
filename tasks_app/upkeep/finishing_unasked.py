"""Tasks that are finished though nobody asked for it: exhausted for too long, or at their goal.

They are finished by a command, as a user would give it: queued jobs end, files that are left get no more attempts, and
the post-processor closes the books.
"""

from __future__ import annotations

from datetime import datetime

from django.db import connection

from tasks_app.configured import timeout_limits
from tasks_app.domain.states import JOB_OPEN, TaskStatus
from tasks_app.domain.task_commands import TaskCommand
from tasks_app.domain.throttling import ExhaustedView, finish_achieved, leave_exhausted
from tasks_app.models import Command, Task
from tasks_app.outcomes.books import books_of
from tasks_app.params.splitrule import SplitRule
from tasks_app.submission import command_queue

_OPEN = ", ".join(f"'{status}'" for status in sorted(JOB_OPEN))
# Files that are in no job, without those that come back from one, and jobs that try files for the first time.
_UNTRIED = f"""
SELECT greatest(coalesce(sum(d.nfilestobeused - d.nfilesused - (
           SELECT count(*) FROM file_retries r WHERE r.jeditaskid = d.jeditaskid AND r.datasetid = d.datasetid)), 0), 0)
       + (SELECT count(*) FROM jobs j WHERE j.jeditaskid = %(task)s AND j.jobstatus IN ({_OPEN}) AND j.attemptnr = 1)
  FROM jedi_datasets d WHERE d.jeditaskid = %(task)s AND d.masterid IS NULL AND d.type IN ('input', 'pseudo_input')
   AND d.status NOT IN ('removed', 'broken')
"""  # noqa: S608 - constants


def exhausted_for_long(now: datetime, limit: int) -> dict[int, Task]:
    """Tasks that have been exhausted for too long, by their ids, and wait for no command."""
    # DF=<any number> is on, as the JEDI documents read it.
    found = (
        Task.objects.filter(
            status=TaskStatus.EXHAUSTED, state_change_time__lte=now - timeout_limits.limit("task.exhausted")
        )
        .exclude(split_rule__regex=r"(^|,)DF=\d")
        .exclude(pk__in=Command.objects.filter(status="waiting").values("task_id"))
        .order_by("id")
    )
    return {task.id: task for task in found[:limit]}


def finish_exhausted(task: Task, now: datetime, *, by: str) -> bool:
    """Give the command to finish. Returns whether the task takes it."""
    view = ExhaustedView(task.state_change_time or task.creation_date, SplitRule.parse(task.split_rule).flag("DF"))
    step = leave_exhausted(view, now, timeout_limits.limit("task.exhausted"))
    if step is None:
        return False
    return command_queue.command_of_ours(task.id, TaskCommand.FINISH, by=by, reason=step.reason.detail)


def running_with_goal() -> dict[int, Task]:
    """Tasks at work that have a goal, by their ids, and wait for no command."""
    waiting = Command.objects.filter(status="waiting").values("task_id")
    found = Task.objects.filter(status=TaskStatus.RUNNING, goal__isnull=False).exclude(pk__in=waiting).order_by("id")
    return {task.id: task for task in found}


def finish_at_goal(task: Task, *, by: str) -> bool:
    """Finish a task that has reached its goal. Returns whether it has, and takes the command."""
    step = finish_achieved(task.status, books_of(task), _untried(task.id))
    if step is None:
        return False
    soft = {"soft": step.soft_finish}
    return command_queue.command_of_ours(task.id, TaskCommand.FINISH, by=by, reason=step.reason.detail, parameters=soft)


def _untried(task_id: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_UNTRIED, {"task": task_id})
        return int(cursor.fetchone()[0])
