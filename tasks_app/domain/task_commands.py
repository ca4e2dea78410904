"""Commands on tasks: what people read of each, where it is accepted, who may give it, what it does to jobs and files. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tasks_app.domain.states import JOB_OPEN, TASK_FINAL, JobStatus, TaskStatus

T = TaskStatus


class TaskCommand(StrEnum):
    KILL = "kill"
    FINISH = "finish"
    RETRY = "retry"
    INCEXEC = "incexec"
    PAUSE = "pause"
    RESUME = "resume"
    AVALANCHE = "avalanche"
    INCREASE_ATTEMPTS = "increase_attempts"
    REMOVE_FILES = "remove_files"
    RELEASE = "release"
    REASSIGN = "reassign"


class Giver(StrEnum):
    """Who may give a command: the task's owner (and production managers), or only those with the right to steer, which
    production managers have."""

    OWNER = "owner"
    PRODUCTION = "production"


@dataclass(frozen=True, slots=True)
class CommandRule:
    """One command.

    accepted    states of the task in which it is accepted
    undo        whether it can be taken back, as a sentence
    jobs        states of the jobs that it touches, and `touch` what becomes of them
    files       what becomes of input files that failed, "" when nothing does
    ends_work   jobs are ended, or what was measured is put aside; people are asked twice
    asks        heading of its page; the braces stand for what it is done to
    """

    title: str
    help: str
    accepted: frozenset[TaskStatus]
    undo: str
    giver: Giver = Giver.OWNER
    jobs: frozenset[JobStatus] = frozenset()
    touch: str = ""
    files: str = ""
    ends_work: bool = False
    asks: str = ""


_REJECTED = TASK_FINAL | {T.PREPARED, T.TOBROKEN, T.TOABORT, T.ABORTING, T.PASSED}
_NO_WAY_BACK = "This cannot be undone"
_ENDED_STAY = "Ended jobs stay ended"
_ENDED = "ended, queued ones at once, the others through their pilots"

MORE_ATTEMPTS_IN = frozenset({T.RUNNING, T.SCOUTING, T.PENDING})
"""A retry of a user's task in these states gives more attempts to files that have none left."""

COMMANDS: Mapping[TaskCommand, CommandRule] = {
    TaskCommand.PAUSE: CommandRule(
        "Pause",
        "make no new jobs and hold queued ones back until it is resumed",
        frozenset(TaskStatus) - _REJECTED - {T.PAUSED, T.FINISHING},
        "Resume takes it back.",
        jobs=frozenset({JobStatus.ACTIVATED}),
        touch="held back; running jobs continue",
    ),
    TaskCommand.RESUME: CommandRule(
        "Resume",
        "go on where it stopped",
        frozenset({T.PAUSED, T.THROTTLED, T.STAGING}),
        "Pause takes it back.",
        jobs=frozenset({JobStatus.THROTTLED}),
        touch="queued again",
    ),
    TaskCommand.AVALANCHE: CommandRule(
        "Skip scouts",
        "make all jobs now, without waiting for the results of scouts",
        frozenset({T.SCOUTING}),
        f"{_NO_WAY_BACK}: all jobs are made at once.",
        asks="Skip the scouts of {}?",
    ),
    TaskCommand.RETRY: CommandRule(
        "Retry",
        "try the unprocessed files again; each file without attempts left gets as many as a new file",
        frozenset({T.FINISHED, T.FAILED, T.ABORTED, T.EXHAUSTED}) | MORE_ATTEMPTS_IN,
        f"{_NO_WAY_BACK}; finish ends the new attempt.",
        files="tried again",
    ),
    TaskCommand.INCEXEC: CommandRule(
        "Run again",
        "look up its input again, with changed parameters if given, and process new and unprocessed files",
        frozenset({T.FINISHED, T.FAILED, T.ABORTED, T.DONE, T.EXHAUSTED}),
        f"{_NO_WAY_BACK}; finish ends the new attempt.",
        files="tried again",
        asks="Run {} again?",
    ),
    TaskCommand.INCREASE_ATTEMPTS: CommandRule(
        "More attempts",
        "give more attempts to files that have none left",
        frozenset({T.READY, T.RUNNING, T.SCOUTING, T.PENDING, T.PAUSED, T.THROTTLED}),
        f"{_NO_WAY_BACK}.",
        files="tried again where no attempt is left",
        asks="Give files of {} more attempts?",
    ),
    TaskCommand.REMOVE_FILES: CommandRule(
        "Remove files",
        "take files out of its input, such as those that always fail; files that jobs have stay",
        frozenset(
            {T.STAGING, T.ASSIGNING, T.READY, T.RUNNING, T.SCOUTING, T.PENDING, T.PAUSED, T.THROTTLED, T.EXHAUSTED}
        ),
        f"{_NO_WAY_BACK}: submit another task for these files.",
        asks="Remove files from the input of {}?",
    ),
    TaskCommand.RELEASE: CommandRule(
        "Release",
        "use files that are still being staged as if they were on disk, and end the hold of a workflow: the input is complete",
        frozenset({T.SCOUTING, T.PENDING, T.RUNNING, T.READY, T.ASSIGNING, T.DEFINED, T.STAGING}),
        f"{_NO_WAY_BACK}: jobs read the files from their current storage, and the task ends with the input that it has.",
        asks="Release {}, whether or not its input is complete?",
    ),
    TaskCommand.REASSIGN: CommandRule(
        "Reassign",
        "end its jobs and run them at another site, nucleus or cloud",
        frozenset({T.DEFINED, T.READY, T.RUNNING, T.SCOUTING, T.SCOUTED, T.PENDING, T.ASSIGNING, T.EXHAUSTED}),
        f"{_ENDED_STAY}; the task can be reassigned again.",
        Giver.PRODUCTION,
        JOB_OPEN,
        "ended: all, queued ones or none, as the form says",
        ends_work=True,
    ),
    TaskCommand.FINISH: CommandRule(
        "Finish",
        "make no more jobs, end the open ones (those whose outputs are being gathered, too), and keep the outputs of the others",
        frozenset(TaskStatus) - _REJECTED - {T.FINISHING},
        f"{_ENDED_STAY}; the task can be retried when it has finished.",
        jobs=JOB_OPEN,
        touch=_ENDED,
        ends_work=True,
        asks="Finish {} early?",
    ),
    TaskCommand.KILL: CommandRule(
        "Kill",
        "kill its jobs and end",
        frozenset(TaskStatus) - _REJECTED,
        f"{_ENDED_STAY}; the task can be retried or run again when it is aborted.",
        jobs=JOB_OPEN,
        touch=_ENDED,
        ends_work=True,
    ),
}
"""In the order in which people see them. Broken tasks are hopeless: they take neither a retry nor to run again.
Parameters: `tasks_app/params/command_parameters.py`; what is done: `tasks_app/commands/handlers.py`."""

COMMAND_ACCEPTED_IN: Mapping[TaskCommand, frozenset[TaskStatus]] = {
    command: rule.accepted for command, rule in COMMANDS.items()
}

TASK_DOING: Mapping[TaskStatus, TaskCommand] = {
    T.ABORTING: TaskCommand.KILL,
    T.FINISHING: TaskCommand.FINISH,
    T.TORETRY: TaskCommand.RETRY,
    T.TOINCEXEC: TaskCommand.INCEXEC,
    T.TOREASSIGN: TaskCommand.REASSIGN,
    T.REASSIGNING: TaskCommand.REASSIGN,
}
"""States in which a command is being obeyed. A task that stays long in one gets the command again."""
