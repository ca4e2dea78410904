"""Lost outputs are made again when their owner says so: v1."""

from __future__ import annotations

from django.http import HttpResponse
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes

from jedisite.identity.callers import Right
from tasks_app.api.panda.call_params import Flag, Id, Params
from tasks_app.api.panda.calls import Ask, call
from tasks_app.api.panda.wire import envelope, refused
from tasks_app.api.v2.lost_files import MOST_FILES
from tasks_app.models import Task
from tasks_app.outcomes.missing import missing_outputs
from tasks_app.outcomes.recovery import recover
from tasks_app.outcomes.recovery_plans import CannotRecoverError


class RecoveryParams(Params):
    task_id = Id()
    dry_run = Flag(required=False, allow_null=True, help_text="dry run: report what would be done")


@call("file_server/upload_file_recovery_request", "POST", Right.SUBMIT, RecoveryParams, data=OpenApiTypes.OBJECT)
def upload_file_recovery_request(ask: Ask) -> HttpResponse:
    """Make those outputs of a task again that data management, or this site's own storage, no longer has.

    They are looked for now, and their inputs are processed again; `logFileURL` is the page that shows it.
    """
    task_id, dry_run = ask.given["task_id"], bool(ask.given.get("dry_run"))
    task = Task.objects.filter(pk=task_id).first()
    if task is None:
        return refused(f"there is no task {task_id}")
    if not ask.caller.may_command(task.user, task.working_group):
        return refused(f"task {task_id} belongs to {task.user}; you may not command it")
    page = {"logFileURL": ask.request.build_absolute_uri(reverse("dashboard:task", args=[task_id]))}
    lost = missing_outputs(task_id, MOST_FILES)
    if not lost:
        return envelope(page, message=f"no output of task {task_id} is lost")
    try:
        found = recover(
            task_id,
            lost,
            by=ask.caller.name,
            reason="reported lost",
            dry_run=dry_run,
            may=lambda task: ask.caller.may_command(task.user, task.working_group),
        )
    except CannotRecoverError as exc:
        return refused(str(exc))
    says = "; ".join(found.sentences())
    return envelope(page, message=f"dry run, nothing was changed: {says}" if dry_run else says)
