"""What forms, answers and the audit trail call acts and what they are done to: plain words in place of the names that the API
has. The words for a parameter stand with it, in `tasks_app/params/command_parameters.py` and `tasks_app/params/acts.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from django.apps import apps

from tasks_app.domain.task_commands import COMMANDS
from tasks_app.params.acts import ACTS, JOB_ACTS
from tasks_app.params.command_parameters import HARD, NO_KILL, SOFT
from tasks_app.params.kinds import Key

QUESTIONS: Final[Mapping[str, str]] = {
    **{str(command): rule.asks or f"{rule.title} {{}}?" for command, rule in COMMANDS.items()},
    "priority": "Change the priority of {}",
    "share": "Change the share of {}",
    "avoid_site": "Let {} avoid a site",
    "needs": "Change what jobs of {} need",
    "split_rule": "Change how input of {} is split",
    "debug": "Debug {}?",
    "no-debug": "End debugging {}?",
}
"""Headings of the pages of acts; the braces stand for what it is done to, such as "task 7"."""
OTHER_ACTS: Final[Mapping[str, str]] = {
    "submit": "Submit",
    "submit for": "Submit for another user",
    "recover": "Recover lost files",
    "change priority": "Change priority",
    "change share": "Change share",
    "change attributes": "Change needs",
    "change split rule": "Change split rule",
    "avoid site": "Avoid a site",
    "set secret": "Set a secret",
    "delete secrets": "Delete secrets",
    "delete files": "Delete the deletable files of a workflow",
    "remove": "Remove",
    "try again": "Try again",
    "drop": "Drop a line of a workflow",
    "hold": "Put a workflow on hold",
    "kill subjobs": "Kill subjobs",
    "error.classify": "Classify an error",
    "agent.run": "Run an agent",
    "agent.pause": "Pause an agent",
    "agent.resume": "Resume an agent",
    "agent.period": "Change the period of an agent",
    "queue.status": "Set the status of a queue",
    "queue.note": "Note on a queue",
    "share.value": "Change a share",
    "config.set": "Set a configuration value",
    "config.unset": "Remove a configuration value",
    "grid.import": "Import queues and sites",
    "admin.add": "Add in the admin",
    "admin.change": "Change in the admin",
    "admin.delete": "Delete in the admin",
    "alert.test": "Send a test alert",
    "attention.acknowledge": "Acknowledge an item",
    "attention.snooze": "Snooze an item",
    "attention.ticket": "Link a ticket to an item",
    "attention.reopen": "Reopen an item",
    "token.make": "Make a token",
    "token.issue": "Make a token for somebody",
    "token.revoke": "Revoke a token",
    "account.make": "Make an account for a program",
    "user.make": "Make an account",
    "user.password": "Change a password",
    "device.allowed": "Allow a login from a terminal",
    "device.refused": "Refuse a login from a terminal",
}
"""What is done to others than tasks and jobs, or to these beside their commands."""
HAPPENED: Final[Mapping[str, str]] = {
    "admin.add": "added",
    "admin.change": "changed",
    "admin.delete": "deleted",
    "agent.run": "run at once",
    "agent.pause": "paused",
    "agent.resume": "resumed",
    "agent.period": "period changed",
    "config.set": "set",
    "config.unset": "removed",
    "grid.import": "imported",
    "queue.note": "note",
    "queue.status": "status set",
    "share.value": "changed",
}
"""What became of the thing behind whose name it stands."""
KINDS: Final[Mapping[str, str]] = {
    "alertrule": "alert rule",
    "apitoken": "token",
    "attention": "attention item",
    "device": "login from a terminal",
    "fingerprint": "error",
    "gdpconfig": "configuration",
    "globalshare": "share",
    "grid": "descriptions of the grid",
    "storageendpoint": "storage",
    "task": "task",
}
"""Kinds of things that people call otherwise than their tables."""
BULK: Final = "bulk "
"""What stands before the name of an act that was done to many at once."""
CHOICES: Final[Mapping[str, str]] = {HARD: "all open jobs", SOFT: "queued jobs only", NO_KILL: "none"}


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a form: `key` names and checks it, `choices` are (value, words)."""

    key: Key
    title: str
    help: str
    choices: tuple[tuple[str, str], ...] = ()


def title_of_parameter(act: str, name: str) -> str:
    """What a parameter of an act is called; its own name where there is nothing better."""
    return next((key.title for key in ACTS[act].keys if key.name == name and key.title), name)


def field_of(key: Key) -> Field:
    """The field of a form for a parameter, in the words that stand with the parameter."""
    return Field(
        key, key.title or key.name, key.hint, tuple((choice, CHOICES.get(choice, choice)) for choice in key.choices)
    )


def question(act: str, subject: str) -> str:
    """The heading of the page of an act, on a task, a job or many of them."""
    return QUESTIONS[act].format(subject)


def title_of(act: str) -> str:
    """What an act is called; one of a former version as it is."""
    if act.startswith(BULK):
        return f"{title_of(act.removeprefix(BULK))}, many at once"
    known = ACTS.get(act) or JOB_ACTS.get(act)
    return known.title if known else OTHER_ACTS.get(act, act)


def happened(act: str) -> str:
    """What became of a thing by an act, to stand behind its name; the act's title where there is nothing shorter."""
    return HAPPENED.get(act) or title_of(act).lower()


def kind_of(object_type: str) -> str:
    """What people call a kind of thing in the audit trail: what its table is called, where nothing else is said."""
    return KINDS.get(object_type) or _tables().get(object_type, object_type)


@cache
def _tables() -> dict[str, str]:
    return {str(model._meta.model_name): str(model._meta.verbose_name) for model in apps.get_models()}


def details_in_words(act: str, details: Any) -> Any:
    """Details of an act in the audit trail with words in place of the names of parameters; those of other acts as they are."""
    if act not in ACTS or not isinstance(details, Mapping):
        return details
    return {
        title_of_parameter(act, name): CHOICES.get(value, value)
        if name == "mode"
        else "yes"
        if value is True
        else value
        for name, value in details.items()
    }
