"""What forms, answers and the audit trail call acts, their parameters, and what they are done to: plain words in place of
the names that the API has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from django.apps import apps

from tasks_app.domain.states import COMMANDS
from tasks_app.params.acts import ACTS, JOB_ACTS
from tasks_app.params.command_parameters import HARD, NO_KILL, SOFT
from tasks_app.params.kinds import Key


@dataclass(frozen=True, slots=True)
class Words:
    """The title of a parameter, and a short help text."""

    title: str
    help: str = ""


WORDS: Final[Mapping[str, Words]] = {
    "sole": Words("Leave child tasks alone", "Tasks that read what this one makes do not run again after it."),
    "staged": Words("Use files that are still being staged", "Jobs read them from where they are."),
    "keep": Words("Keep share and priority", "They are not worked out anew."),
    "transcend": Words(
        "Ignore the limits on retries", "The site's limits on how often a task is retried do not count."
    ),
    "soft": Words("Let running jobs end first", "Only queued jobs are ended at once."),
    "attempts": Words("More attempts for each file", "Empty: as many as a retry gives."),
    "changes": Words("Parameters to change", "As JSON; null takes a parameter away."),
    "site": Words(
        "Site", "Queue that is to take the jobs, as the page Sites names it. Fill in one of site, nucleus and cloud."
    ),
    "nucleus": Words("Nucleus", "Site that is to gather the outputs."),
    "cloud": Words("Cloud", "Region that is to take the task."),
    "back": Words("Go back to the state before", "The task goes on in the state that it has now."),
    "mode": Words("Jobs to end"),
    "priority": Words("Priority", "A higher one comes first."),
    "share": Words("Share", "Name of a share that has none below it, as on the page Shares."),
    "ramCount": Words("Memory"),
    "walltime": Words("Walltime", "Seconds; a negative number also switches off the check for jobs that loop."),
    "cpuTime": Words("CPU time of an event"),
    "coreCount": Words("Cores", "For each job; 0 is any number."),
    "workDiskCount": Words("Scratch space"),
    "outDiskCount": Words("Output"),
    "ioIntensity": Words("Input and output", "In kB a second."),
}
OF_ACT: Final[Mapping[tuple[str, str], Words]] = {
    ("avoid_site", "site"): Words("Site to avoid", "This queue gets no more jobs of the task."),
    ("split_rule", "changes"): Words("Rules to change", "As JSON, such as nFilesPerJob; null takes a rule away."),
}
"""What a parameter is called in one act only."""
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
    "remove": "Remove",
    "try again": "Try again",
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
WITHOUT_EFFECT: Final = frozenset({"discard"})
"""Parameters that are taken from PanDA's clients and change nothing here: forms do not offer them."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a form: `key` names and checks it, `choices` are (value, words)."""

    key: Key
    title: str
    help: str
    choices: tuple[tuple[str, str], ...] = ()


def words_of(act: str, name: str) -> Words:
    """What a parameter of an act is called; its own name where there is nothing better."""
    return OF_ACT.get((act, name)) or WORDS.get(name) or Words(name)


def field_of(act: str, key: Key) -> Field:
    words = words_of(act, key.name)
    return Field(
        key, words.title, words.help, tuple((choice, CHOICES.get(choice, choice)) for choice in key.choices or ())
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


def said(act: str, details: Any) -> Any:
    """Details of an act in the audit trail with words in place of the names of parameters; those of other acts as they are."""
    if act not in ACTS or not isinstance(details, Mapping):
        return details
    return {
        words_of(act, name).title: CHOICES.get(value, value) if name == "mode" else "yes" if value is True else value
        for name, value in details.items()
    }
