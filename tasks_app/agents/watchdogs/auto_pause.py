"""Watchdog: tasks with too many failed jobs are paused, and with them running tasks of the same request type."""

from __future__ import annotations

from jedisite.agents import troubles
from jedisite.agents.registry import Pass, agent
from tasks_app.domain.task_commands import TaskCommand
from tasks_app.submission import command_queue
from tasks_app.upkeep.failing_tasks import to_pause

ME = "auto_pause"
LIMIT = 100


@agent("auto_pause", every="5m", title="Pauses tasks with too many failed jobs")
def run(limit: int = LIMIT) -> Pass:
    """Give the command to pause to tasks that fail too much, and to their siblings."""
    wanted = to_pause()

    def pause(task_id: int) -> bool:
        return command_queue.command_of_ours(task_id, TaskCommand.PAUSE, by=ME, reason=wanted[task_id])

    done = troubles.each(ME, list(wanted)[:limit], pause)
    return Pass(done, more=done >= limit)
