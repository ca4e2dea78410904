"""What people may do to a task now, as buttons; and the fields of forms as parameters of an act."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jedisite.identity.callers import Caller
from jedisite.vocabulary.words import on_one_line, sentence
from jedisite.web.problems import NotPlainJSONError, strict_json
from tasks_app.commands import bulk
from tasks_app.commands.act_words import Field, field_of, title_of_parameter
from tasks_app.domain.accepting import RUN_AGAIN
from tasks_app.domain.task_commands import COMMANDS, TaskCommand
from tasks_app.lifecycle import rights
from tasks_app.models import Command, Task
from tasks_app.params import acts
from tasks_app.params.acts import ACTS, Act
from tasks_app.params.faults import Faults, ParamErrors
from tasks_app.params.kinds import Key
from tasks_app.submission import known_names
from tasks_app.web.commands.act_values import now_of

LONGEST_REASON = 1000
_RENAMED = "|".join(name for name, rule in COMMANDS.items() if rule.title.lower() != name)
"""Commands whose buttons have other names."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
"""As people write numbers: Python's own reading takes NaN, digits of other scripts and underscores, too."""
_OF_API = re.compile(rf"\b({_RENAMED})\b")


@dataclass(frozen=True, slots=True)
class Buttons:
    """Acts on a task in the order of their table: those that can be done now, and by the reason those that cannot."""

    possible: Sequence[Act]
    refused: Sequence[tuple[str, Sequence[Act]]]

    @property
    def refused_count(self) -> int:
        return sum(len(some) for _, some in self.refused)


def buttons(task: Task, caller: Caller, waiting: Sequence[str] | None = None) -> Buttons:
    """What this caller can do to a task now. `waiting` are the commands that wait for it, which else are read."""
    possible: list[Act] = []
    refused: dict[str, list[Act]] = {}
    if waiting is None:
        waiting = Command.objects.waiting_of([task.id]).get(task.id, ())
    for act in ACTS.values():
        why = why_not(act, task, caller, waiting)
        (refused.setdefault(why.sentence, []) if why else possible).append(act)
    return Buttons(possible, list(refused.items()))


def why_not(act: Act, task: Task, caller: Caller, waiting: Sequence[str]) -> bulk.WhyNot | None:
    """Why this caller cannot do this to one task now, in the words of the pages."""
    why = bulk.why_not(act, task, caller, waiting=waiting)
    return why and why._replace(sentence=on_page(act, why.sentence))


def on_page(act: Act, text: str) -> str:
    """A refusal of an act with the titles of the buttons in place of the names that the API has."""
    if text.lower().startswith(f"{act.name} "):
        text = act.title + text[len(act.name) :]
    text = text.replace(RUN_AGAIN, f"choose {ACTS[TaskCommand.INCEXEC].title}")
    return _OF_API.sub(lambda found: ACTS[found[0]].title.lower(), text)


def refused_on_page(act: Act, groups: Sequence[bulk.Refused]) -> tuple[bulk.Refused, ...]:
    """Tasks that are refused the same, with the reasons in the words of the pages."""
    return tuple(replace(group, words=on_page(act, group.words)) for group in groups)


def fields_of(act: Act, caller: Caller, task: Task | None = None) -> list[Field]:
    """The parameters of an act as fields of a form: for a task, those that this caller may give for it, with what it has."""
    return [
        _with_now(act, field_of(key), task)
        for key in act.keys
        if (task is None or key.kind != "flag" or rights.refusal(caller, act.name, task, {key.name: True}) is None)
    ]


def _with_now(act: Act, field: Field, task: Task | None) -> Field:
    now = now_of(act.name, field.key.name, task) if task is not None else ""
    return replace(field, help=f"{field.help} {now}".strip()) if now else field


def read(act: Act, form: Mapping[str, str], asked: Iterable[Task]) -> tuple[str, dict[str, Any] | None]:
    """The reason and the parameters in a form whose fields are called after the keys, for these tasks.

    Raises ParamErrors with all that is wrong, of the reason and of the parameters.
    """
    faults = Faults()
    reason = faults.take(lambda: reason_in(form))
    checked = faults.take(lambda: _parameters_in(act, form, asked))
    if faults:
        raise ParamErrors(tuple(replace(error, field=_called(act, error.field)) for error in faults))
    return reason or "", checked


def _parameters_in(act: Act, form: Mapping[str, str], asked: Iterable[Task]) -> dict[str, Any] | None:
    faults = Faults()
    given = _typed(act.keys, form, faults)
    faults.raise_if_any()
    checked = acts.check(act, given)
    known_names.check_parameters(checked, asked)
    return checked


def _called(act: Act, field: str) -> str:
    """A field of a form by its title; what lies inside it by its own name."""
    name, dot, inside = field.partition(".")
    return inside if dot else title_of_parameter(act.name, name)


def reason_in(form: Mapping[str, str]) -> str:
    """The reason that somebody gives for an act. Raises ParamErrors when it is empty, too long or cannot be stored."""
    reason, faults = on_one_line(form.get("reason", "")), Faults()
    if not reason:
        faults.add("reason", "required", "Please give a reason.")
    elif len(reason) > LONGEST_REASON or "\x00" in reason:
        faults.add("reason", "length", f"A reason has at most {LONGEST_REASON} plain characters.")
    faults.raise_if_any()
    return reason


def _typed(keys: tuple[Key, ...], form: Mapping[str, str], faults: Faults) -> dict[str, Any]:
    """Fields that are filled, as values of the kinds of their keys."""
    found: dict[str, Any] = {}
    for key in keys:
        text = form.get(key.name, "").strip()
        if "\x00" in text:
            faults.add(key.name, "characters", "Text must not contain U+0000.")
        elif not text:
            continue
        elif key.kind == "flag":
            found[key.name] = text in ("on", "true", "1")
        elif key.kind in ("integer", "number"):
            found[key.name] = _number(text, key.kind == "integer")
        elif key.kind == "object":
            try:
                found[key.name] = strict_json(text.encode())
            except NotPlainJSONError as exc:
                if exc.rule == "syntax":
                    faults.add(key.name, "JSON", 'This is not valid JSON, such as {"nFilesPerJob": 5}.')
                else:
                    faults.add(key.name, exc.rule, sentence(exc))
        else:
            found[key.name] = text
    return found


def _number(text: str, whole: bool) -> int | float | str:
    """The number that a text says; the text itself when it says none, for the check to refuse."""
    if not _NUMBER.fullmatch(text):
        return text
    return int(text) if whole and len(text) < 20 and text.lstrip("+-").isdecimal() else float(text)


def faults_of(exc: ParamErrors) -> list[str]:
    """What is wrong, in a few sentences."""
    return [f"{error.field}: {error.message}" if error.field else error.message for error in exc.errors[:5]]
