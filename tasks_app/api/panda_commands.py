"""PanDA's v1 calls with which users command their tasks: the answers are those that its clients read.

Codes in `data`: 0 taken, 1 error, 2 no such task, 3 not yours (of a retry: it runs again with changes), 4 not in this
state, 5 files of a running task get more attempts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from jedisite.identity import Caller, Right, bearer, caller_of_token
from tasks_app import moves
from tasks_app.api.panda_v1 import BadCallError, body_of, envelope, number, refused
from tasks_app.commands import parameters, rights
from tasks_app.models import Task
from tasks_app.params.faults import ParamErrors
from tasks_app.states import MORE_ATTEMPTS_IN, TaskCommand

DONE, NO_TASK, NOT_YOURS, NOT_NOW, MORE_ATTEMPTS = 0, 2, 3, 4, 5
AGAIN = 3

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


def view_of(name: str) -> Callable[[HttpRequest], JsonResponse]:
    """The view of one command."""

    @csrf_exempt
    def view(request: HttpRequest) -> JsonResponse:
        token = bearer(request)
        caller = caller_of_token(token) if token else None
        if caller is None:
            return refused("a valid bearer token is needed", 401)
        if not caller.may(Right.SUBMIT):
            return refused("only users may call this", 403)
        if request.method != "POST":
            return refused("only POST is answered here", 405)
        try:
            return _answer(name, caller, body_of(request))
        except BadCallError as exc:
            return refused(str(exc), 400)

    view.right = Right.SUBMIT  # type: ignore[attr-defined]
    return view


def _answer(name: str, caller: Caller, body: dict[str, Any]) -> JsonResponse:
    task_id = number(body, "task_id", 1)
    if task_id is None:
        raise BadCallError("task_id is missing")
    command, given = NAMES[name], _parameters(name, body)
    if name == "retry" and given.get("changes"):
        command = TaskCommand.INCEXEC
    task = Task.objects.filter(pk=task_id).first()
    if task is None:
        return _said(name, NO_TASK, f"there is no task {task_id}")
    try:
        checked = parameters.check(command, given)
    except ParamErrors as exc:
        raise BadCallError(str(exc)) from exc
    no = rights.refusal(caller, command, task, checked)
    if no:
        return refused(no)
    at_work = command is TaskCommand.RETRY and task.status in MORE_ATTEMPTS_IN
    try:
        moves.give_command(task_id, command, by=caller.name, reason="", parameters=checked)
    except moves.CommandRefusedError as exc:
        return _said(name, NOT_NOW, str(exc))
    if at_work:
        return _said(name, MORE_ATTEMPTS, f"the failed jobs of task {task_id}, which is {task.status}, are tried again")
    code = AGAIN if name == "retry" and command is TaskCommand.INCEXEC else DONE
    return _said(name, code, f"{command} was registered for task {task_id}")


def _parameters(name: str, body: dict[str, Any]) -> dict[str, Any]:
    if name == "finish":
        soft = body.get("soft")
        if not isinstance(soft, bool | None):
            raise BadCallError("soft must be true or false")
        return {"soft": True} if soft else {}
    if name == "increase_attempts":
        return {"attempts": number(body, "increase", 1)}
    changes = body.get("new_parameters") if name == "retry" else None
    if not isinstance(changes, dict | None):
        raise BadCallError("new_parameters must be a JSON object")
    return {"changes": changes} if changes else {}


def _said(name: str, code: int, message: str) -> JsonResponse:
    """A retry is a success whatever its code: its callers read that."""
    return envelope(code, message=message, success=name == "retry" or code == DONE)
