"""How PanDA's clients submit tasks and list them: v1. Anybody who may look sees every task."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes

from jedisite.identity.callers import Right
from tasks_app.api.panda.call_params import JsonObject, Moment, Number, Params
from tasks_app.api.panda.calls import Ask, call
from tasks_app.api.panda.task_list import MOST_TASKS, filtered, told_tasks
from tasks_app.api.panda.wire import envelope, refused
from tasks_app.models import Task
from tasks_app.params.clientwords import in_options
from tasks_app.params.faults import ParamErrors
from tasks_app.params.resubmission import Code
from tasks_app.submission import command_queue, submitting
from tasks_app.submission.submitting import SubmissionRefusedError


class SubmitParams(Params):
    task_parameters = JsonObject(help_text="the task-parameter dictionary")
    parent_tid = Number(required=False, allow_null=True, help_text="the task whose outputs this one reads")


@call("task/submit", "POST", Right.SUBMIT, SubmitParams, data=OpenApiTypes.INT64)
def submit(ask: Ask) -> HttpResponse:
    """Submit a task.

    Its id stands in `data`, and in `message` as `jediTaskID=<n>`. When the name is to be unique and a task of that name
    has ended, that one runs again. A refusal has a code in `data`: 1 such a task waits already, 2 such a task is active,
    4 the parameters are wrong, 10 you have too many active tasks, 11 there is no such parent.
    """
    given = ask.given
    raw: Any = given["task_parameters"]
    if given.get("parent_tid"):
        raw = {**raw, "parent_tid": given["parent_tid"]}
    try:
        submission = submitting.check(raw, ask.caller)
        done = submitting.submit(submission, by=ask.caller.name, most_active=settings.JEDI_MOST_ACTIVE_TASKS)
    except ParamErrors as exc:
        orphan = all(error.field == "parent_tid" and error.rule == "known task" for error in exc.errors)
        return refused(str(in_options(exc, raw)), Code.NO_PARENT if orphan else Code.FAILED)
    except SubmissionRefusedError as exc:
        return refused(str(exc), exc.decision.code)
    except command_queue.CommandRefusedError as exc:
        return refused(str(exc), Code.IS_ACTIVE)
    says = f"succeeded. new jediTaskID={done.task_id}" if done.is_new else done.decision.sentence
    return envelope(done.task_id, message=" ".join((says, *(f"Warning: {text}" for text in done.warnings))))


class ListParams(Params):
    since = Moment(required=False, allow_null=True, help_text="tasks that changed since then; any age when absent")
    filters = JsonObject(
        required=False, allow_null=True, help_text="attribute: value, or several values separated by |"
    )
    n_tasks = Number(required=False, allow_null=True, min_value=1, help_text=f"the newest, at most {MOST_TASKS}")


@call("task/get_tasks_detailed_info_since", "GET", Right.READ, ListParams, data=OpenApiTypes.OBJECT)
def get_tasks_detailed_info_since(ask: Ask) -> HttpResponse:
    """List tasks, newest first: one's own, unless the filters name a user."""
    given = ask.given
    filters = {"userName": ask.caller.name, **(given.get("filters") or {})}
    found = Task.objects.filter(filtered(filters)).order_by("-id")
    if given.get("since"):
        found = found.filter(modification_time__gte=given["since"])
    return envelope(told_tasks(found[: min(given.get("n_tasks") or MOST_TASKS, MOST_TASKS)]))
