"""The kinds of messages that may come in, and the fields of each. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tasks_app.domain.task_commands import TaskCommand

LARGEST_ID: Final = 2**63 - 1
MOST_NAMES: Final = 100_000
LONGEST_TEXT: Final = 1000
AGENTS: Final[Mapping[str, str]] = {
    "jedi_contents_feeder": "feeder",
    "jedi_job_generator": "job_generator",
    "feeder": "feeder",
    "job_generator": "job_generator",
    "post_processor": "post_processor",
}
"""Whom a kick may name: the topics of PanDA's message-driven tasks, and our own names."""


class BadMessageError(ValueError):
    """A message that can never be processed; `field` names what is wrong with it."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(f"{field}: {sentence}")
        self.field, self.sentence = field, sentence


@dataclass(frozen=True, slots=True)
class Field:
    """One field: `type` is id, text, names (a list of texts), object, or choice of `choices`."""

    name: str
    type: str
    required: bool = True
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MessageKind:
    """What a message says, in one sentence, and its fields. `commands` needs the right to command anybody's tasks."""

    meaning: str
    fields: tuple[Field, ...]
    commands: bool = False


_TASK = Field("task_id", "id")
_REASON = Field("reason", "text", required=False)

KINDS: Final[Mapping[str, MessageKind]] = {
    "files_staged": MessageKind(
        "Inputs that a task waits for are on disk; without names, all of them.",
        (_TASK, Field("dataset", "text", required=False), Field("files", "names", required=False)),
    ),
    "dataset_changed": MessageKind(
        "A dataset got or lost files, or was closed: tasks that read it while it grows look it up again.",
        (Field("dataset", "text"),),
    ),
    "task_command": MessageKind(
        "A command to a task.",
        (
            _TASK,
            Field("command", "choice", choices=tuple(c.value for c in TaskCommand)),
            _REASON,
            Field("parameters", "object", required=False),
        ),
        commands=True,
    ),
    "job_command": MessageKind(
        "A command to a job.",
        (Field("job_id", "id"), Field("command", "choice", choices=("kill",)), _REASON),
        commands=True,
    ),
    "kick": MessageKind("Make an agent handle a task now.", (Field("agent", "choice", choices=tuple(AGENTS)), _TASK)),
}


def checked(kind: str, payload: object) -> dict[str, Any]:
    """The payload with its known fields. Raises BadMessageError, naming the field."""
    if kind not in KINDS:
        raise BadMessageError("kind", f"expected one of {', '.join(KINDS)}")
    if not isinstance(payload, Mapping):
        raise BadMessageError("payload", "expected an object")
    fields = {field.name: field for field in KINDS[kind].fields}
    unknown = sorted(str(name) for name in payload if name not in fields)
    if unknown:
        raise BadMessageError(f"payload.{unknown[0][:100]}", f"unknown key; {kind} has {', '.join(fields)}")
    return {field.name: _value(field, payload.get(field.name)) for field in fields.values()}


def _value(field: Field, value: object) -> Any:
    where = f"payload.{field.name}"
    if value is None:
        if field.required:
            raise BadMessageError(where, "required")
        return None
    if field.type == "id":
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= LARGEST_ID:
            raise BadMessageError(where, "expected a positive whole number")
    elif field.type == "text":
        if not isinstance(value, str) or not 0 < len(value) <= LONGEST_TEXT:
            raise BadMessageError(where, f"expected a text of 1 to {LONGEST_TEXT} characters")
    elif field.type == "names":
        if not isinstance(value, list) or len(value) > MOST_NAMES or not all(isinstance(n, str) for n in value):
            raise BadMessageError(where, f"expected a list of at most {MOST_NAMES} names")
    elif field.type == "object":
        if not isinstance(value, Mapping):
            raise BadMessageError(where, "expected an object")
    elif value not in field.choices:
        raise BadMessageError(where, f"expected one of {', '.join(field.choices)}")
    return value
