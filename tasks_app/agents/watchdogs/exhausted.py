"""Watchdog: exhausted tasks that nobody has acted on are finished with their present outputs.

They are finished by a command, as a user would give it: queued jobs end, files that are left get no more attempts, and
the post-processor closes the books.
"""

from __future__ import annotations

from datetime import datetime

from jedisite.agents import troubles
from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time
from tasks_app.configured import timeout_limits
from tasks_app.domain.states import TaskStatus
from tasks_app.domain.task_commands import TaskCommand
from tasks_app.domain.throttling import ExhaustedView, leave_exhausted
from tasks_app.models import Command, Task
from tasks_app.params.splitrule import SplitRule
from tasks_app.submission import command_queue

ME = "exhausted"
LIMIT = 100


@agent("exhausted", every="5m", title="Finishes exhausted tasks that nobody has acted on")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Give the command to finish to tasks that have been exhausted for too long."""
    now, longest = the_time(now), timeout_limits.limit("task.exhausted")
    # DF=<any number> is on, as the JEDI documents read it.
    old = (
        Task.objects.filter(status=TaskStatus.EXHAUSTED, state_change_time__lte=now - longest)
        .exclude(split_rule__regex=r"(^|,)DF=\d")
        .exclude(pk__in=Command.objects.filter(status="waiting").values("task_id"))
        .order_by("id")
    )
    tasks = {task.id: task for task in old[:limit]}

    def finish(task_id: int) -> bool:
        task = tasks[task_id]
        view = ExhaustedView(task.state_change_time or task.creation_date, SplitRule.parse(task.split_rule).flag("DF"))
        step = leave_exhausted(view, now, longest)
        if step is None:
            return False
        return command_queue.command_of_ours(task_id, TaskCommand.FINISH, by=ME, reason=step.reason.detail)

    done = troubles.each(ME, tasks, finish)
    return Pass(done, more=done == limit)
