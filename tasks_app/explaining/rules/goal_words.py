"""How far a task is from its goal, in words. Pure."""

from __future__ import annotations

from datetime import datetime

from tasks_app.domain.states import TASK_FINAL, TaskStatus


def goal_line(goal: int, reached: int, status: str, due: datetime | None) -> str:
    """A goal and what is reached of it, both per mille of the input; `due`: when running tasks are looked at next."""
    line = f"{goal / 10:g} % of the input; {reached / 10:g} % is processed, so that it is "
    if status in TASK_FINAL:
        return line + ("reached" if reached >= goal else "missed")
    look = f"; the next look is at {due:%H:%M:%S} UTC" if due is not None and status == TaskStatus.RUNNING else ""
    if reached >= goal:
        return f"{line}reached: the task is finished once every file was tried{look}"
    return f"{line}not reached yet{look}"
