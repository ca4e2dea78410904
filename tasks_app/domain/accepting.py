"""Whether a task accepts a command: by the state that it will be in when those before it have been obeyed. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tasks_app.domain.states import TASK_FINAL, TASK_MOVES, TaskStatus
from tasks_app.domain.task_commands import COMMAND_ACCEPTED_IN, MORE_ATTEMPTS_IN, TaskCommand

RUN_AGAIN: Final = f"run it again with {TaskCommand.INCEXEC}"
MOST_STATES: Final = 8
"""A sentence names no more states than these."""
_ENDS = (TaskCommand.KILL, TaskCommand.FINISH, TaskCommand.PAUSE)
_AGAIN = (TaskCommand.RETRY, TaskCommand.INCEXEC)
_ENDING = (TaskStatus.TOABORT, TaskStatus.ABORTING, TaskStatus.TOBROKEN, TaskStatus.PASSED)
_BEGINS = {
    TaskCommand.KILL: TaskStatus.ABORTING,
    TaskCommand.FINISH: TaskStatus.FINISHING,
    TaskCommand.PAUSE: TaskStatus.PAUSED,
    TaskCommand.INCEXEC: TaskStatus.REREFINE,
    TaskCommand.REASSIGN: TaskStatus.TOREASSIGN,
}


@dataclass(frozen=True)
class Standing:
    """What a task's answer to a command depends on. `waiting`: commands that it has been given and that wait to be
    obeyed, in their order."""

    task_id: int
    status: str
    old_status: str | None
    label: str
    waiting: tuple[str, ...] = ()

    @cached_property
    def foreseen(self) -> TaskStatus:
        """The state of the task when the commands that wait have been obeyed."""
        status, rests = TaskStatus(self.status), self.old_status
        for command in map(TaskCommand, self.waiting):
            if status in COMMAND_ACCEPTED_IN[command]:
                status, rests = _after(command, status, rests)
        return status


def rests_in(status: str, old_status: str | None) -> str:
    """The state to which a task returns: for one that waits, what it did before."""
    waits = status in (TaskStatus.PENDING, TaskStatus.THROTTLED)
    return old_status if waits and old_status else status


def _after(command: TaskCommand, status: TaskStatus, rests: str | None) -> tuple[TaskStatus, str | None]:
    """The state in which a command leaves a task, and the one to which it returns then."""
    if command == TaskCommand.PAUSE:
        return TaskStatus.PAUSED, rests_in(status, rests)
    if command == TaskCommand.RESUME:
        if status == TaskStatus.STAGING:
            return TaskStatus.STAGED, None
        return TaskStatus(rests or TaskStatus.READY), None
    if command == TaskCommand.RETRY and status not in MORE_ATTEMPTS_IN:
        return TaskStatus.READY, None
    return _BEGINS.get(command, status), rests


def refusal(task: Standing, command: str) -> str | None:
    """Why a task does not accept a command, as a sentence without its full stop; None when it does."""
    name, status = TaskCommand(command), task.foreseen
    if status == TaskStatus.BROKEN and name in _AGAIN:
        again = "submit it again, under the same name only if it never had a job"
        return f"task {task.task_id} is broken and cannot run again: {again}"
    if status not in COMMAND_ACCEPTED_IN[name]:
        return f"task {task.task_id} is {_how_it_is(task)}; {_not_taken(name, task)}"
    if name == TaskCommand.RETRY and status in MORE_ATTEMPTS_IN and task.label != "user":
        return f"task {task.task_id} is {_how_it_is(task)}; only tasks with the label user are retried in this state"
    rests = rests_in(task.status, task.old_status)
    if name == TaskCommand.REASSIGN and not task.waiting and rests not in TASK_MOVES[TaskStatus.TOREASSIGN]:
        return f"task {task.task_id} waits and will then be {rests}: it can be reassigned once it makes jobs"
    return None


def _how_it_is(task: Standing) -> str:
    return (
        task.status
        if task.foreseen == task.status
        else f"{task.status}, with {', '.join(task.waiting)} still to be carried out"
    )


def _not_taken(command: TaskCommand, task: Standing) -> str:
    """Why the state of the task does not accept the command, and what one may do instead."""
    status = task.foreseen
    if command == TaskCommand.RETRY and status == TaskStatus.DONE:
        return f"all of its files were processed; nothing to retry. If there is more input by now, {RUN_AGAIN}"
    if command in _ENDS and status in (*TASK_FINAL, *_ENDING):
        return f"it {'has ended' if status in TASK_FINAL else 'is ending already'}; nothing to {command}"
    if command in _AGAIN and status in (*_ENDING, TaskStatus.FINISHING):
        return f"wait until it has ended, then {command} is accepted"
    when = "in this state" if status == task.status else f"when it is {status}"
    accepted, taken = COMMAND_ACCEPTED_IN[command], _taken_in(status, when)
    if len(accepted) > MOST_STATES:
        return f"{command} is not accepted {when}; {taken}"
    return f"{command} is accepted in: {', '.join(sorted(accepted))}; {taken}"


def _taken_in(status: TaskStatus, when: str) -> str:
    """What one may do instead of a command that a state does not accept."""
    taken = [command for command, states in COMMAND_ACCEPTED_IN.items() if status in states]
    if taken == [TaskCommand.INCEXEC]:
        return RUN_AGAIN
    return f"{when} it accepts {', '.join(taken)}" if taken else f"{when} it accepts no command"
