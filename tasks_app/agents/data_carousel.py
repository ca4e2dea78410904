"""The data carousel: what has come from tape is given to the tasks that wait for it."""

from __future__ import annotations

from jedisite.agents import troubles
from jedisite.agents.passes import kick
from jedisite.agents.registry import Pass, agent
from tasks_app.inputs.staging import ME, settle_task, tasks_to_settle


@agent("data_carousel", every="10s", title="Gives tasks the inputs that have come from tape")
def run() -> Pass:
    """A transaction each task. What could not be brought is missing; nothing more is brought for a task that has ended."""
    moved = troubles.each(ME, tasks_to_settle(), settle_task)
    if moved:
        kick("feeder")
    return Pass(moved)
