"""What people can do to a task: commands, and changes in place. One table for buttons, previews and acts on many. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from jedisite.vocabulary.words import sentence
from tasks_app.domain.states import JOB_QUEUED, TASK_FINAL, JobStatus, TaskStatus
from tasks_app.domain.task_commands import COMMANDS, CommandRule, Giver, TaskCommand
from tasks_app.params import command_parameters
from tasks_app.params.faults import Faults
from tasks_app.params.keys import KEYS
from tasks_app.params.kinds import Key

HIGHEST_PRIORITY: Final = 100_000
NEEDS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "ramCount": ("Memory", ""),
        "walltime": ("Walltime", "Seconds; a negative number also switches off the check for looping jobs."),
        "cpuTime": ("CPU time of an event", ""),
        "coreCount": ("Cores", "For each job; 0: any number."),
        "workDiskCount": ("Scratch space", ""),
        "outDiskCount": ("Output", ""),
        "ioIntensity": ("Input and output", "In kB per second."),
    }
)
"""Of what may be changed on a task, that for which the form has fields: title and hint."""


class Change(StrEnum):
    PRIORITY = "priority"
    SHARE = "share"
    AVOID_SITE = "avoid_site"
    NEEDS = "needs"
    SPLIT_RULE = "split_rule"


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that can be done to a task.

    `undo` says whether it can be taken back. `jobs` are the states of jobs that it touches and `touch` what becomes of
    them; `files` says what becomes of input files that failed, "" when nothing does. `for_many`: it makes sense for a
    selection of tasks. `ends_work`: people are asked twice.
    """

    name: str
    title: str
    help: str
    undo: str
    accepted: frozenset[TaskStatus]
    giver: Giver = Giver.OWNER
    keys: tuple[Key, ...] = ()
    jobs: frozenset[JobStatus] = frozenset()
    touch: str = ""
    files: str = ""
    for_many: bool = True
    ends_work: bool = False

    @property
    def is_command(self) -> bool:
        return self.name in COMMANDS

    @property
    def sentence(self) -> str:
        return sentence(self.help)


def _of_command(command: TaskCommand, rule: CommandRule) -> Act:
    return Act(
        command.value,
        rule.title,
        rule.help,
        rule.undo,
        rule.accepted,
        rule.giver,
        command_parameters.PARAMETERS.get(command, ()),
        rule.jobs,
        rule.touch,
        rule.files,
        ends_work=rule.ends_work,
    )


_AT_WORK = frozenset(TaskStatus) - TASK_FINAL
_AGAIN = "The old value can be set again."

_CHANGES: tuple[Act, ...] = (
    Act(
        Change.PRIORITY.value,
        "Change priority",
        "give it, and its queued jobs, another priority",
        _AGAIN,
        _AT_WORK,
        Giver.PRODUCTION,
        (
            Key(
                "priority",
                "integer",
                "a higher priority comes first",
                required=True,
                low=0,
                high=HIGHEST_PRIORITY,
                title="Priority",
                hint="A higher one comes first.",
            ),
        ),
        JOB_QUEUED,
        "with the new priority",
    ),
    Act(
        Change.SHARE.value,
        "Change share",
        "put it, and its queued jobs, into another global share",
        _AGAIN,
        _AT_WORK,
        Giver.PRODUCTION,
        (
            Key(
                "share",
                "text",
                "name of a share without shares below it",
                required=True,
                longest=32,
                title="Share",
                hint="Name of a share without shares below it, as on the page Shares.",
            ),
        ),
        JOB_QUEUED,
        "in the new share",
    ),
    Act(
        Change.AVOID_SITE.value,
        "Avoid a site",
        "send no more of its jobs to a site; jobs already there continue",
        "It cannot be undone on this page; the owner can run the task again with changed parameters.",
        _AT_WORK,
        keys=(
            Key(
                "site",
                "text",
                "the queue to avoid",
                required=True,
                longest=60,
                title="Site to avoid",
                hint="The task sends no more jobs to this queue.",
            ),
        ),
    ),
    Act(
        Change.NEEDS.value,
        "Change needs",
        "change the needs of its next jobs; empty fields stay as they are, and existing jobs keep their values",
        "The old values can be set again.",
        _AT_WORK,
        keys=tuple(replace(KEYS[name], title=title, hint=hint) for name, (title, hint) in NEEDS.items()),
        for_many=False,
    ),
    Act(
        Change.SPLIT_RULE.value,
        "Change split rule",
        "change how the remaining input is split into jobs",
        _AGAIN,
        _AT_WORK,
        keys=(
            Key(
                "changes",
                "object",
                "rules to change, such as nFilesPerJob; null removes one",
                required=True,
                title="Rules to change",
                hint="As JSON, such as nFilesPerJob; null removes a rule.",
            ),
        ),
        for_many=False,
    ),
)

ACTS: Final[Mapping[str, Act]] = MappingProxyType(
    {command.value: _of_command(command, rule) for command, rule in COMMANDS.items()}
    | {act.name: act for act in _CHANGES}
)
"""In the order in which people see them."""


@dataclass(frozen=True, slots=True)
class JobAct:
    """One thing that can be done to a job."""

    name: str
    title: str
    help: str
    undo: str
    ends_work: bool = False


JOB_ACTS: Final[Mapping[str, JobAct]] = MappingProxyType(
    {
        act.name: act
        for act in (
            JobAct(
                "kill",
                "Kill",
                "End the job: at once if it is queued, otherwise at the next heartbeat of its pilot.",
                "This cannot be undone; its files go into another job while they have attempts left.",
                ends_work=True,
            ),
            JobAct(
                "debug",
                "Debug",
                "Make the pilot report every minute, with the last lines of the payload's output.",
                "It can be switched off again.",
            ),
            JobAct(
                "no-debug",
                "End debug",
                "Its pilot reports at its usual interval again.",
                "It can be switched on again.",
            ),
        )
    }
)


def check(act: Act, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """The parameters of an act as its door takes them; None when there are none. Raises ParamErrors."""
    if act.is_command:
        return command_parameters.check(TaskCommand(act.name), given)
    faults, names = Faults(), [key.name for key in act.keys]
    for name in given.keys() - set(names):
        faults.add(name, "known parameter", f"{act.name} does not take it; it takes {', '.join(names)}.")
    checked = command_parameters.check_keys(act.keys, given, faults)
    if not any(value not in (None, "") for value in given.values()) and not faults:
        faults.add("", "required", "No change is given.")
    faults.raise_if_any()
    return checked
