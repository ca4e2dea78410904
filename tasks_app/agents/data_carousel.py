"""The data carousel: what has come from tape is given to the tasks that wait for it."""

from __future__ import annotations

from jedisite.agents.passes import kick
from jedisite.agents.registry import Pass, agent
from tasks_app.inputs.staging import settle_task, tasks_to_settle


@agent("data_carousel", every="10s", title="Gives tasks the inputs that have come from tape")
def run() -> Pass:
    """A transaction each task. What could not be brought is missing; nothing more is brought for a task that has ended."""
    moved = sum(settle_task(task_id) for task_id in tasks_to_settle())
    if moved:
        kick("feeder")
    return Pass(moved)
