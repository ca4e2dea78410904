"""Who may give which command, from the table of commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jedisite.vocabulary.roles import RIGHT_WORDS, Caller, Right
from tasks_app.domain.task_commands import Giver
from tasks_app.models import Task
from tasks_app.params.acts import ACTS
from tasks_app.params.splitrule import SplitRule

CODE = frozenset({"fixedSandbox", "sourceURL", "cliParams"})
"""Changes with which jobs run other code than the owner of their task gave them."""


HIGHEST_PRIORITY = 1000
"""The highest priority that users without the production right give their tasks: submitted, or run again with changes."""


def refusal(caller: Caller, name: str, task: Task, parameters: Mapping[str, Any] | None = None) -> str | None:
    """Why the caller may not give this command to this task, or change it so; None when they may."""
    if not caller.may_command(task.user, task.working_group):
        return f"Task {task.id} belongs to {task.user}; you may not command it."
    if ACTS[name].giver is Giver.PRODUCTION and not caller.may(Right.STEER):
        return f"{name} needs the right to {Right.STEER.value}."
    if (parameters or {}).get("transcend") and not caller.may(Right.STEER):
        return f"transcend (retry beyond the limits) needs the right to {Right.STEER.value}."
    changes = (parameters or {}).get("changes") or {}
    priority = changes.get("currentPriority")
    if priority is not None and priority > HIGHEST_PRIORITY and not caller.may(Right.STEER):
        needed = f"the right to {Right.STEER.value} ({RIGHT_WORDS[Right.STEER]})"
        return f"currentPriority {priority} is above {HIGHEST_PRIORITY}, and that needs {needed}."
    if caller.name != task.user and CODE & changes.keys() and SplitRule.parse(task.split_rule).flag("ST"):
        return f"Jobs of task {task.id} get the secrets of {task.user}; only {task.user} can change their code."
    return None
