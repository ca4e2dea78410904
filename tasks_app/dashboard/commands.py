"""Commands that people give to tasks on the pages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.http import Http404

from jedisite.identity import Caller
from tasks_app import moves
from tasks_app.commands import parameters, rights
from tasks_app.models import Command, Task
from tasks_app.params.faults import ParamErrors
from tasks_app.params.kinds import Key
from tasks_app.states import COMMANDS, CommandRule, TaskCommand

LONGEST_REASON = 1000


class RefusedCommandError(ValueError):
    """A command that cannot be given; the sentence says why."""


def allowed(task: Task, caller: Caller) -> list[tuple[str, CommandRule, tuple[Key, ...]]]:
    """The commands that a task in its state accepts from this caller, each with its row of the table and its parameters."""
    found = []
    for command, rule in COMMANDS.items():
        try:
            moves.check_command(task, command)
        except moves.CommandRefusedError:
            continue
        if rights.refusal(caller, command, task) is None:
            keys = [
                k
                for k in parameters.PARAMETERS.get(command, ())
                if not rights.refusal(caller, command, task, {k.name: 1})
            ]
            found.append((command.value, rule, tuple(keys)))
    return found


def give(task_id: int, name: str, *, caller: Caller, reason: str, form: Mapping[str, str] | None = None) -> Command:
    """Queue a command of a person for a task; `form` holds the fields of its parameters as texts.

    Raises RefusedCommandError (and writes nothing) when the command is unknown, has no reason, has parameters that do
    not fit, is not the caller's to give, or is not accepted in the task's state; Http404 when there is no such task.
    """
    if name not in set(TaskCommand):
        raise RefusedCommandError(f"There is no command {name!r}.")
    if not reason:
        raise RefusedCommandError("Say why: a command needs a reason.")
    task = Task.objects.filter(pk=task_id).first()
    if task is None:
        raise Http404(f"There is no task {task_id}.")
    command = TaskCommand(name)
    try:
        given = parameters.check(command, _typed(command, form or {}))
    except ParamErrors as exc:
        raise RefusedCommandError(" ".join(f"{e.field}: {e.message}" for e in exc.errors[:3])) from exc
    refused = rights.refusal(caller, command, task, given)
    if refused:
        raise RefusedCommandError(f"{refused[:1].upper()}{refused[1:]}")
    try:
        return moves.give_command(task_id, name, by=caller.name, reason=reason[:LONGEST_REASON], parameters=given)
    except moves.CommandRefusedError as exc:
        raise RefusedCommandError(f"{str(exc)[:1].upper()}{str(exc)[1:]}.") from exc


def _typed(command: TaskCommand, form: Mapping[str, str]) -> dict[str, Any]:
    """The fields of a form that belong to the command, by their kinds. Raises RefusedCommandError."""
    found: dict[str, Any] = {}
    for key in parameters.PARAMETERS.get(command, ()):
        text = form.get(f"{command.value}.{key.name}", "").strip()
        if not text:
            continue
        if key.kind == "flag":
            found[key.name] = text in ("on", "true", "1")
        elif key.kind == "integer":
            found[key.name] = int(text) if text.lstrip("-").isascii() and text.lstrip("-").isdigit() else text
        elif key.kind == "object":
            try:
                found[key.name] = json.loads(text)
            except ValueError as exc:
                raise RefusedCommandError(f"{key.name} is not valid JSON: {exc}.") from exc
        else:
            found[key.name] = text
    return found
