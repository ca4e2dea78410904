"""What production systems and this site say to each other in T_TASK and PRODSYS_COMM, in JEDI's words. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.domain.task_commands import TaskCommand
from tasks_app.params import command_parameters

MIRRORED: Final[Mapping[str, str]] = MappingProxyType(
    {
        status.value: status.value
        for status in (
            TaskStatus.REGISTERED,
            TaskStatus.STAGING,
            TaskStatus.ASSIGNING,
            TaskStatus.READY,
            TaskStatus.RUNNING,
            TaskStatus.EXHAUSTED,
            TaskStatus.ABORTING,
            *sorted(TASK_FINAL),
        )
    }
    | {TaskStatus.SCOUTING.value: "submitting"}
)
"""The states that a production system is told, with their words in T_TASK; the others are this site's own steps."""
STARTED: Final = ("submitting", TaskStatus.RUNNING.value)
"""A task has started when T_TASK says one of these."""
ENDED: Final = sorted(status.value for status in TASK_FINAL)
TOLD_WHY: Final = [TaskStatus.EXHAUSTED.value, *ENDED]
"""With these states goes the sentence that stands on the task."""

FROM_COLUMNS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "taskname": "taskName",
        "username": "userName",
        "vo": "vo",
        "prodsourcelabel": "prodSourceLabel",
        "priority": "taskPriority",
        "parent_tid": "parent_tid",
    }
)
"""Columns of T_TASK that say what a task parameter says."""
_QUALIFIERS: Final = frozenset({"sole", "staged", "keep", "transcend"})
_OF_RETRY: Final = frozenset({"discard"})
_MODES: Final = {"soft reassign": command_parameters.SOFT, "nokill reassign": command_parameters.NO_KILL}


class BadRowError(ValueError):
    """A row that can never be served; the sentence says why."""


def with_columns(params: Any, columns: Mapping[str, object]) -> Any:
    """Task parameters with what only the columns of the row say. Raises BadRowError where the two differ."""
    if not isinstance(params, dict):
        return params
    given = dict(params)
    for column, name in FROM_COLUMNS.items():
        value = columns.get(column)
        if value is None:
            continue
        if given.get(name) is None:
            given[name] = value
        elif str(given[name]) != str(value):
            raise BadRowError(
                f"The column {column} says {value!r}, and {name} of the parameters {given[name]!r}."[:1000]
            )
    return given


def command_named(word: str) -> TaskCommand:
    """Raises BadRowError for a word that is none."""
    try:
        return TaskCommand(word.strip().lower())
    except ValueError:
        known = ", ".join(command.value for command in TaskCommand)
        raise BadRowError(f"There is no command {word[:50]!r}. Commands are {known}.") from None


def parameters(command: TaskCommand, comment: str, given: Any) -> dict[str, Any]:
    """The parameters of a command from its comment, in JEDI's words, and from COMM_PARAMETERS.

    These are the changes of `incexec`, and of other commands parameters under their names. Raises BadRowError.
    """
    if given is not None and not isinstance(given, dict):
        raise BadRowError("COMM_PARAMETERS is to be a JSON object.")
    found: dict[str, Any] = {}
    if command in (TaskCommand.RETRY, TaskCommand.INCEXEC):
        words = set(comment.replace(",", " ").split())
        if command is TaskCommand.INCEXEC and "discard" in words:
            raise BadRowError("discard goes with retry, not with incexec. Leave it out.")
        known = _QUALIFIERS | _OF_RETRY if command is TaskCommand.RETRY else _QUALIFIERS
        found = dict.fromkeys(sorted(known & words), True)
    elif command is TaskCommand.FINISH and "soft finish" in comment:
        found = {"soft": True}
    elif command is TaskCommand.REASSIGN and not given:
        found = _reassignment(comment)
    if command is TaskCommand.INCEXEC:
        return found | ({"changes": given} if given else {})
    return found | (given or {})


def _reassignment(comment: str) -> dict[str, Any]:
    """`site:NAME:y`, with `:soft reassign` or `:nokill reassign` behind it."""
    kind, _, rest = comment.partition(":")
    name, _, rest = rest.partition(":")
    back, _, mode = rest.partition(":")
    if kind not in command_parameters.TARGETS or not name or back not in ("", "y", "n") or mode not in ("", *_MODES):
        raise BadRowError(
            "The comment of reassign is site, nucleus or cloud, its name, and y or n for whether the task returns to its "
            "earlier state, with colons between them: site:CERN:n. :soft reassign or :nokill reassign may follow."
        )
    found: dict[str, Any] = {kind: name, "back": back == "y"}
    return found | ({"mode": _MODES[mode]} if mode else {})
