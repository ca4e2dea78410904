"""What people can do to a task: commands, and changes in place. One table for buttons, previews and acts on many. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from jedisite.vocabulary.words import sentence
from tasks_app.domain.states import (
    COMMANDS,
    JOB_OPEN,
    JOB_QUEUED,
    TASK_FINAL,
    CommandRule,
    Giver,
    JobStatus,
    TaskCommand,
    TaskStatus,
)
from tasks_app.params import command_parameters
from tasks_app.params.faults import Faults
from tasks_app.params.keys import KEYS
from tasks_app.params.kinds import Key, check_value

HIGHEST_PRIORITY: Final = 100_000
NEEDS: Final = ("ramCount", "walltime", "cpuTime", "coreCount", "workDiskCount", "outDiskCount", "ioIntensity")
"""Of what may be changed on a task, that for which the form has fields."""


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


_NO_WAY_BACK = "This cannot be taken back"
_ENDED_STAY = "Jobs that it ends stay ended"
_TRIED = "tried again"


@dataclass(frozen=True, slots=True)
class _Effect:
    undo: str
    jobs: frozenset[JobStatus] = frozenset()
    touch: str = ""
    files: str = ""


_EFFECTS: Mapping[TaskCommand, _Effect] = {
    TaskCommand.PAUSE: _Effect(
        "Resume takes it back.", frozenset({JobStatus.ACTIVATED}), "held back; jobs that run go on"
    ),
    TaskCommand.RESUME: _Effect("Pause takes it back.", frozenset({JobStatus.THROTTLED}), "queued again"),
    TaskCommand.AVALANCHE: _Effect(f"{_NO_WAY_BACK}: all jobs are made at once."),
    TaskCommand.RETRY: _Effect(f"{_NO_WAY_BACK}; finish ends the new attempt.", files=_TRIED),
    TaskCommand.INCEXEC: _Effect(f"{_NO_WAY_BACK}; finish ends the new attempt.", files=_TRIED),
    TaskCommand.INCREASE_ATTEMPTS: _Effect(f"{_NO_WAY_BACK}.", files="tried again where no attempt is left"),
    TaskCommand.RELEASE: _Effect(f"{_NO_WAY_BACK}: jobs read the files from where they are."),
    TaskCommand.REASSIGN: _Effect(
        f"{_ENDED_STAY}; the task can be reassigned again.",
        JOB_OPEN,
        "ended: all, queued ones or none, as the form says",
    ),
    TaskCommand.FINISH: _Effect(
        f"{_ENDED_STAY}; the task can be retried when it has finished.",
        JOB_OPEN,
        "ended, queued ones at once, the others through their pilots",
    ),
    TaskCommand.KILL: _Effect(
        f"{_ENDED_STAY}; the task can be retried or run again when it is aborted.",
        JOB_OPEN,
        "ended, queued ones at once, the others through their pilots",
    ),
}


def _of_command(command: TaskCommand, rule: CommandRule) -> Act:
    effect = _EFFECTS[command]
    return Act(
        command.value,
        rule.title,
        rule.help,
        effect.undo,
        rule.accepted,
        rule.giver,
        command_parameters.PARAMETERS.get(command, ()),
        effect.jobs,
        effect.touch,
        effect.files,
        ends_work=rule.ends_work,
    )


_AT_WORK = frozenset(TaskStatus) - TASK_FINAL
_AGAIN = "The old value can be given again."

_CHANGES: tuple[Act, ...] = (
    Act(
        Change.PRIORITY.value,
        "Change priority",
        "give it, and its queued jobs, another priority",
        _AGAIN,
        _AT_WORK,
        Giver.PRODUCTION,
        (Key("priority", "integer", "a higher one comes first", required=True, low=0, high=HIGHEST_PRIORITY),),
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
        (Key("share", "text", "name of a share at the end of the tree", required=True, longest=32),),
        JOB_QUEUED,
        "in the new share",
    ),
    Act(
        Change.AVOID_SITE.value,
        "Avoid a site",
        "make no more of its jobs at a site; jobs that are there go on",
        "This page cannot take it back; the owner can with changed parameters.",
        _AT_WORK,
        keys=(Key("site", "text", "the queue that gets no more of its jobs", required=True, longest=60),),
    ),
    Act(
        Change.NEEDS.value,
        "Change needs",
        "change what its next jobs ask for; what is left empty stays as it is, and jobs that exist keep what they have",
        "The old values can be given again.",
        _AT_WORK,
        keys=tuple(KEYS[name] for name in NEEDS),
        for_many=False,
    ),
    Act(
        Change.SPLIT_RULE.value,
        "Change split rule",
        "change how the input that is left is cut into jobs",
        _AGAIN,
        _AT_WORK,
        keys=(Key("changes", "object", "rules to change, such as nFilesPerJob; null takes one away", required=True),),
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
                "End the job: at once while it is queued, else its pilot is told when it next calls.",
                "This cannot be taken back; its files go into another job while they have attempts left.",
                ends_work=True,
            ),
            JobAct(
                "debug",
                "Debug",
                "Let its pilot report each minute, with the end of what the payload prints.",
                "It can be switched off again.",
            ),
            JobAct(
                "no-debug", "End debug", "Its pilot reports at its usual pace again.", "It can be switched on again."
            ),
        )
    }
)


def check(act: Act, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """The parameters of an act as its door takes them; None when there are none. Raises ParamErrors."""
    if act.is_command:
        return command_parameters.check(TaskCommand(act.name), given)
    faults = Faults()
    keys = {key.name: key for key in act.keys}
    for name, value in given.items():
        if name not in keys:
            faults.add(name, "known parameter", f"{act.name} does not take it; it takes {', '.join(keys)}.")
        elif value is not None:
            check_value(keys[name], value, name, faults)
    for key in act.keys:
        if key.required and given.get(key.name) in (None, "", {}):
            faults.add(key.name, "required", "This is needed.")
    if not any(value not in (None, "") for value in given.values()) and not faults:
        faults.add("", "required", "Nothing to change is given.")
    faults.raise_if_any()
    return {name: value for name, value in given.items() if value is not None}
