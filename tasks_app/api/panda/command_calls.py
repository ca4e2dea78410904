"""PanDA's v1 calls with which users command their tasks: the answers are those that its clients read.

Codes in `data`: 0 taken, 1 error, 2 no such task, 3 a retry that runs it again with changes, 4 not in this state; a task that is
not the caller's is refused without one. A retry of a task at work is 0, too: PanDA's own 5 for it is a failure to the clients
that print it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes

from jedisite.identity.callers import Caller, Right
from tasks_app.api.panda.call_params import Flag, Id, JsonObject, Params
from tasks_app.api.panda.calls import Ask, PandaView, call
from tasks_app.api.panda.wire import BadCallError, envelope, refused
from tasks_app.domain.accepting import RUN_AGAIN
from tasks_app.domain.task_commands import COMMANDS, MORE_ATTEMPTS_IN, TaskCommand
from tasks_app.lifecycle import rights
from tasks_app.models import Task
from tasks_app.params import command_parameters
from tasks_app.params.faults import ParamErrors
from tasks_app.submission import command_queue, known_names

DONE, NO_TASK, RUNS_AGAIN, NOT_NOW = 0, 2, 3, 4
AGAIN_BY_PRUN = "run it again with prun and the same --outDS"

NAMES = {
    "kill": TaskCommand.KILL,
    "finish": TaskCommand.FINISH,
    "retry": TaskCommand.RETRY,
    "reload_input": TaskCommand.INCEXEC,
    "pause": TaskCommand.PAUSE,
    "resume": TaskCommand.RESUME,
    "avalanche": TaskCommand.AVALANCHE,
    "release": TaskCommand.RELEASE,
    "increase_attempts": TaskCommand.INCREASE_ATTEMPTS,
}
"""Commands by the last word of their address."""


class CommandParams(Params):
    task_id = Id()


class FinishParams(CommandParams):
    soft = Flag(required=False, allow_null=True, help_text="let running jobs finish")


class RetryParams(CommandParams):
    new_parameters = JsonObject(
        required=False, allow_null=True, help_text="parameters to change before the task runs again"
    )
    no_child_retry = Flag(required=False, allow_null=True, help_text="leave child tasks alone")
    disable_staging_mode = Flag(required=False, allow_null=True, help_text="use files that are still being staged")
    keep_gshare_priority = Flag(required=False, allow_null=True, help_text="keep share and priority")
    discard_events = Flag(required=False, allow_null=True, help_text="events are processed again")


QUALIFIERS = {
    "no_child_retry": "sole",
    "disable_staging_mode": "staged",
    "keep_gshare_priority": "keep",
    "discard_events": "discard",
}
"""What our commands call the flags of a retry."""


class IncreaseParams(CommandParams):
    increase = Id(required=False, allow_null=True)


def _view_of(address: str, params: type[Params] = CommandParams) -> type[PandaView]:
    """The view of one command. Its address is given whole, so that a search for it leads here."""
    name = address.removeprefix("task/")

    def command(ask: Ask) -> HttpResponse:
        return _answer(name, ask.caller, ask.given)

    command.__doc__ = f"Command a task: {name.replace('_', ' ')}."
    return call(address, "POST", Right.SUBMIT, params, data=OpenApiTypes.INT)(command)


class ReactivateParams(CommandParams):
    keep_attempt_nr = Flag(required=False, allow_null=True, help_text="has no effect: files always get new attempts")
    trigger_job_generation = Flag(
        required=False, allow_null=True, help_text="has no effect: jobs are always made at once"
    )


@call("task/reactivate", "POST", Right.SUBMIT, ReactivateParams, data=OpenApiTypes.INT)
def reactivate(ask: Ask) -> HttpResponse:
    """Retry a task regardless of the limits on retries; for production managers and administrators.

    One that failed, or has done all, runs again with its inputs looked up anew.
    """
    return _answer("reactivate", ask.caller, ask.given)


def _command_of(name: str, given: Mapping[str, Any], status: str) -> TaskCommand:
    if name == "reactivate":
        fits = status in COMMANDS[TaskCommand.RETRY].accepted
        return TaskCommand.RETRY if fits else TaskCommand.INCEXEC
    return TaskCommand.INCEXEC if name == "retry" and given.get("changes") else NAMES[name]


def _answer(name: str, caller: Caller, body: Mapping[str, Any]) -> HttpResponse:
    task_id = body["task_id"]
    task = Task.objects.filter(pk=task_id).first()
    if task is None:
        return _said(name, NO_TASK, f"there is no task {task_id}")
    given = _parameters(name, body)
    command = _command_of(name, given, task.status)
    if name == "reactivate" and command is TaskCommand.RETRY:
        given = {"transcend": True}
    try:
        checked = command_parameters.check(command, given)
        known_names.check_parameters(checked, [task])
    except ParamErrors as exc:
        raise BadCallError(str(exc)) from exc
    no = rights.refusal(caller, command, task, checked)
    if no:
        return refused(no)
    at_work = name == "retry" and command is TaskCommand.RETRY and task.status in MORE_ATTEMPTS_IN
    try:
        command_queue.give_command(task_id, command, by=caller.name, reason="", parameters=checked)
    except command_queue.CommandRefusedError as exc:
        if name == "reload_input" and isinstance(exc, command_queue.NothingNewError):
            return _said(name, DONE, str(exc))  # that is what was to be found out
        return _said(name, NOT_NOW, str(exc).replace(RUN_AGAIN, AGAIN_BY_PRUN))
    if at_work:
        return _said(name, DONE, f"the failed files of task {task_id}, which is {task.status}, are tried again")
    code = RUNS_AGAIN if name == "retry" and command is TaskCommand.INCEXEC else DONE
    return _said(name, code, f"{command} was registered for task {task_id}")


def _parameters(name: str, body: Mapping[str, Any]) -> dict[str, Any]:
    if name == "finish":
        return {"soft": True} if body.get("soft") else {}
    if name == "increase_attempts":
        return {"attempts": body.get("increase")}
    if name != "retry":
        return {}
    flags = {ours: True for theirs, ours in QUALIFIERS.items() if body.get(theirs)}
    changes = body.get("new_parameters")
    return {"changes": changes, **flags} if changes else flags


def _said(name: str, code: int, message: str) -> HttpResponse:
    """A retry is a success whatever its code: its callers read that."""
    return envelope(code, message=message, success=name == "retry" or code == DONE)


kill = _view_of("task/kill")
finish = _view_of("task/finish", FinishParams)
retry = _view_of("task/retry", RetryParams)
reload_input = _view_of("task/reload_input")
pause = _view_of("task/pause")
resume = _view_of("task/resume")
avalanche = _view_of("task/avalanche")
release = _view_of("task/release")
increase_attempts = _view_of("task/increase_attempts", IncreaseParams)
