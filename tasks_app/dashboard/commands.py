"""Commands that people give to tasks on the pages."""

from __future__ import annotations

from django.http import Http404

from jedisite.identity import Caller
from tasks_app import moves
from tasks_app.models import Command, Task
from tasks_app.states import COMMAND_ACCEPTED_IN, TaskCommand, TaskStatus

TITLES = {
    TaskCommand.PAUSE: "Pause",
    TaskCommand.RESUME: "Resume",
    TaskCommand.FINISH: "Finish",
    TaskCommand.KILL: "Kill",
    TaskCommand.RETRY: "Retry",
}
EXPLAINED = {
    TaskCommand.PAUSE: "make no new jobs until it is resumed",
    TaskCommand.RESUME: "go on where it stopped",
    TaskCommand.FINISH: "make no more jobs, let the open ones end, and keep what is done",
    TaskCommand.KILL: "kill its jobs and end",
    TaskCommand.RETRY: "try the failed files again",
}
LONGEST_REASON = 1000


class RefusedCommandError(ValueError):
    """A command that cannot be given; the sentence says why."""


def allowed_in(status: str) -> list[tuple[str, str, str]]:
    """(command, title, explanation) of the commands that a task in this state accepts."""
    state = TaskStatus(status)
    return [(c.value, TITLES[c], EXPLAINED[c]) for c in TITLES if state in COMMAND_ACCEPTED_IN[c]]


def give(task_id: int, name: str, *, caller: Caller, reason: str) -> Command:
    """Queue a command of a person for a task.

    Raises RefusedCommandError (and writes nothing) when the command is unknown, has no reason, is not the caller's
    to give, or is not accepted in the task's state; Http404 when there is no such task.
    """
    if name not in set(TaskCommand):
        raise RefusedCommandError(f"There is no command {name!r}.")
    if not reason:
        raise RefusedCommandError("Say why: a command needs a reason.")
    owner = Task.objects.filter(pk=task_id).values_list("user", flat=True).first()
    if owner is None:
        raise Http404(f"There is no task {task_id}.")
    if not caller.may_command(owner):
        raise RefusedCommandError(f"Task {task_id} belongs to {owner}; your account may not command it.")
    try:
        return moves.give_command(task_id, name, by=caller.name, reason=reason[:LONGEST_REASON])
    except moves.CommandRefusedError as exc:
        raise RefusedCommandError(f"{str(exc)[:1].upper()}{str(exc)[1:]}.") from exc
