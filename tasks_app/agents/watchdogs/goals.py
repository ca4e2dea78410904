"""Watchdog: running tasks that have reached their goal, and have tried every file, are finished gently."""

from __future__ import annotations

from django.db import connection

from jedisite.agents import troubles
from jedisite.agents.registry import Pass, agent
from tasks_app.configured import timeout_limits
from tasks_app.domain.states import JOB_OPEN, TaskStatus
from tasks_app.domain.task_commands import TaskCommand
from tasks_app.domain.throttling import finish_achieved
from tasks_app.lifecycle import claims
from tasks_app.models import Command, Task
from tasks_app.outcomes.books import books_of
from tasks_app.submission import command_queue

ME = "goals"
_OPEN = ", ".join(f"'{status}'" for status in sorted(JOB_OPEN))
# Files that are in no job, without those that come back from one, and jobs that try files for the first time.
_UNTRIED = f"""
SELECT greatest(coalesce(sum(d.nfilestobeused - d.nfilesused - (
           SELECT count(*) FROM file_retries r WHERE r.jeditaskid = d.jeditaskid AND r.datasetid = d.datasetid)), 0), 0)
       + (SELECT count(*) FROM jobs j WHERE j.jeditaskid = %(task)s AND j.jobstatus IN ({_OPEN}) AND j.attemptnr = 1)
  FROM jedi_datasets d WHERE d.jeditaskid = %(task)s AND d.masterid IS NULL AND d.type IN ('input', 'pseudo_input')
   AND d.status NOT IN ('removed', 'broken')
"""  # noqa: S608 - constants


@agent("goals", every=timeout_limits.limit("task.goal"), title="Finishes tasks that have reached their goal")
def run() -> Pass:
    """Give the command to finish gently: no more jobs are made, those at work end."""
    if not claims.states_in_use([TaskStatus.RUNNING]):
        return Pass()
    waiting = Command.objects.filter(status="waiting").values("task_id")
    found = Task.objects.filter(status=TaskStatus.RUNNING, goal__isnull=False).exclude(pk__in=waiting).order_by("id")
    tasks = {task.id: task for task in found}
    done = troubles.each(ME, tasks, lambda task_id: _finish(tasks[task_id]))
    return Pass(done)


def _finish(task: Task) -> bool:
    """Finish a task that has reached its goal. Returns whether it has, and takes the command."""
    step = finish_achieved(task.status, books_of(task), _untried(task.id))
    if step is None:
        return False
    soft = {"soft": step.soft_finish}
    return command_queue.command_of_ours(task.id, TaskCommand.FINISH, by=ME, reason=step.reason.detail, parameters=soft)


def _untried(task_id: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_UNTRIED, {"task": task_id})
        return int(cursor.fetchone()[0])
