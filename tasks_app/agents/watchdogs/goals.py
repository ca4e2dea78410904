"""Watchdog: running tasks that have reached their goal, and have tried every file, are finished gently."""

from __future__ import annotations

from jedisite.agents import troubles
from jedisite.agents.registry import Pass, agent
from tasks_app.configured import timeout_limits
from tasks_app.domain.states import TaskStatus
from tasks_app.lifecycle import claims
from tasks_app.upkeep import finishing_unasked

ME = "goals"


@agent("goals", every=timeout_limits.limit("task.goal"), title="Finishes tasks that have reached their goal")
def run() -> Pass:
    """Give the command to finish gently: no more jobs are made, those at work end."""
    if not claims.states_in_use([TaskStatus.RUNNING]):
        return Pass()
    tasks = finishing_unasked.running_with_goal()
    return Pass(troubles.each(ME, tasks, lambda task_id: finishing_unasked.finish_at_goal(tasks[task_id], by=ME)))
