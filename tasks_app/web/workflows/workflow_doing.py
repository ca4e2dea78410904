"""Pages that say what an act on a workflow, a stage or lines of it would do, ask for the reason, and do it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages
from django.core.validators import RegexValidator
from django.forms import CharField, IntegerField
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from jedisite.identity.callers import Caller, Right, caller_of, needs
from jedisite.vocabulary.words import plural, sentence, some
from tasks_app.commands import bulk
from tasks_app.domain.states import TASK_FINAL
from tasks_app.models import Task, Workflow, WorkflowPackage
from tasks_app.params.acts import ACTS as TASK_ACTS
from tasks_app.params.acts import HIGHEST_PRIORITY
from tasks_app.params.faults import Faults, ParamErrors
from tasks_app.submission.submitting import SubmissionRefusedError
from tasks_app.web.commands import chosen_rows, command_buttons
from tasks_app.web.lists.misspelt import takes
from tasks_app.web.workflows.large_workflows import in_its_place
from tasks_app.web.workflows.workflow_buttons import ACTS, DROP, STEERED, WorkflowAct
from tasks_app.web.workflows.workflow_pages import line_address, workflow_of
from tasks_app.workflows.dropping import CannotDropError, Dropped, drop_lines
from tasks_app.workflows.package_acts import act_on_packages
from tasks_app.workflows.package_columns import LINE, PackageFilter, with_places
from tasks_app.workflows.rules.document_fields import MOST_STAGES
from tasks_app.workflows.workflow_acts import (
    COMMANDS,
    MORE,
    Acted,
    CannotActError,
    act_on_workflow,
    packages_of_line,
)

SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class Chosen:
    """Lines, and packages of these by path; none stand for all packages of the lines."""

    lines: Sequence[str]
    paths: Sequence[str]


_REFUSED = (CannotActError, CannotDropError, SubmissionRefusedError)


@needs(Right.SUBMIT)
@require_http_methods(["GET", "HEAD", "POST"])
@takes(
    stage=IntegerField(required=False, min_value=1, max_value=MOST_STAGES),
    line=CharField(required=False, validators=[RegexValidator(LINE, "Write a line such as 001/002.")]),
)
@in_its_place
def workflow_do(request: HttpRequest, workflow_id: int, name: str) -> HttpResponse:
    """One act on a workflow, on a `stage`, or on a `line`: what it would do, and with POST the doing."""
    act = ACTS.get(name)
    if act is None:
        raise Http404(f"There is no action {name!r} on workflows.")
    workflow, caller = workflow_of(workflow_id), caller_of(request)
    given = request.POST if request.method == "POST" else request.GET
    faults: list[str] = []
    stage, line = _stage(given.get("stage", ""), faults), given.get("line", "")[:20]
    lines = [line] if line else []
    chosen = Chosen(lines, ()) if lines else None
    if lines and not act.for_lines:
        faults.append(f"line: {act.title} is for a whole workflow or a stage of it on this page.")
    elif act.name == DROP and not lines:
        faults.append("line: Say which line is dropped, such as 001/002.")
    code = 409 if faults else 200
    if request.method == "POST" and not faults:
        code, faults = _do(request, act, workflow, caller, stage, chosen)
        if not faults:
            what = f"line {line} of workflow {workflow_id}" if line else f"workflow {workflow_id}"
            messages.success(request, f"{act.title}: accepted for {what}. It takes effect within seconds.")
            return redirect(
                line_address(workflow_id, line) if line else reverse("dashboard:workflow", args=[workflow_id])
            )
    what = (
        f"line {line} of {workflow.name}" if line else f"stage {stage} of {workflow.name}" if stage else workflow.name
    )
    context = {
        **_preview(act, workflow, caller, stage, chosen),
        "section": "workflows",
        "act": act,
        "workflow": workflow,
        "stage": stage,
        "stages": () if lines or act.name == DROP else _stages(workflow),
        "line": line,
        "question": act.question(what),
        "given": request.POST,
        "faults": faults,
        "highest_priority": HIGHEST_PRIORITY,
        "back": line_address(workflow_id, line) if line else reverse("dashboard:workflow", args=[workflow_id]),
    }
    return render(request, "tasks_app/workflow_do.html", context, status=code)


def _stage(text: str, faults: list[str]) -> int | None:
    if not text:
        return None
    if text.isascii() and text.isdecimal() and len(text) <= 3 and 1 <= int(text) <= MOST_STAGES:
        return int(text)
    faults.append(f"stage: Enter a number from 1 to {MOST_STAGES}.")
    return None


def _stages(workflow: Workflow) -> Sequence[int]:
    """The numbers of its stages, when it has several."""
    last = (
        with_places(WorkflowPackage.objects.filter(workflow=workflow)).order_by("-pk").values_list("stage", flat=True)
    )
    number = last.first() or 0
    return range(1, number + 1) if number > 1 else ()


def _preview(
    act: WorkflowAct, workflow: Workflow, caller: Caller, stage: int | None, chosen: Chosen | None
) -> dict[str, Any]:
    """What it would do, for the template; `refused` says why it cannot be done at all."""
    asked: dict[str, Any] = {"caller": caller, "reason": "", "preview": True}
    try:
        if act.name == DROP:
            return (
                _of_drop(drop_lines(workflow.pk, chosen.lines, **asked))
                if chosen
                else {"refused": "No line is chosen."}
            )
        if chosen is not None:
            acted = act_on_packages(workflow.pk, act.name, paths=_paths(workflow, chosen), **asked)
        else:
            acted = act_on_workflow(workflow.pk, act.name, stage=stage, **asked)
    except _REFUSED as error:
        return {"refused": sentence(error)}
    except ParamErrors as error:
        return {"refused": " ".join(command_buttons.faults_of(error))}
    return _of_acted(act, acted, caller, of_packages=chosen is not None)


def _paths(workflow: Workflow, chosen: Chosen) -> Sequence[str]:
    return chosen.paths or [path for line in chosen.lines for path in packages_of_line(workflow.pk, line)]


def _of_drop(dropped: Dropped) -> dict[str, Any]:
    return {
        "canceled": dropped.canceled[:SHOWN],
        "canceled_number": len(dropped.canceled),
        "removed": [(path, some(names)) for path, names in list(dropped.removed.items())[:SHOWN]],
        "removed_number": len(dropped.removed),
        "jobs": dropped.jobs[:SHOWN],
        "jobs_number": len(dropped.jobs),
    }


def _of_acted(act: WorkflowAct, acted: Acted, caller: Caller, *, of_packages: bool) -> dict[str, Any]:
    tasks = list(Task.objects.filter(pk__in=acted.tasks[:SHOWN]).only("id", "name", "status").order_by("pk"))
    refused = [_of_group(act, group) for group in acted.refused]
    steered: dict[str, Any] = {}
    if acted.packages and act.name in STEERED:
        steered = {
            "acted": acted,
            "steered": acted.packages[:SHOWN],
            "steered_number": len(acted.packages),
            "jobs": acted.jobs[:SHOWN],
            "jobs_number": len(acted.jobs),
        }
        if of_packages or not acted.tasks:
            return steered
    found: dict[str, Any] = {
        **steered,
        "acted": acted,
        "tasks": tasks,
        "tasks_number": len(acted.tasks),
        "others": refused,
    }
    if acted.tasks:
        open_ones = act.name == "retry" and any(task.status not in TASK_FINAL for task in tasks)
        command = TASK_ACTS[MORE if open_ones else COMMANDS[act.name]]
        found["plan"] = bulk.preview(command, bulk.by_ids(acted.tasks), caller)
    elif not acted.begins and acted.refused:
        found["refused"] = " ".join(["None of its tasks accepts this now.", *refused])
    return found


def _do(
    request: HttpRequest, act: WorkflowAct, workflow: Workflow, caller: Caller, stage: int | None, chosen: Chosen | None
) -> tuple[int, list[str]]:
    """Do it; returns the status, and why it failed, in sentences: then nothing was done."""
    if not caller.may_command(workflow.owner):
        return 403, [f"Workflow {workflow.pk} belongs to {workflow.owner}; you may not command it."]
    try:
        faults = Faults()
        reason = faults.take(lambda: command_buttons.reason_in(request.POST)) or ""
        priority = _priority(request.POST.get("priority", ""), faults) if act.name == "priority" else None
        faults.raise_if_any()
        if act.name == DROP:
            drop_lines(workflow.pk, chosen.lines if chosen else (), caller=caller, reason=reason)
            return 200, []
        if chosen is not None:
            paths = _paths(workflow, chosen)
            acted = act_on_packages(workflow.pk, act.name, paths=paths, priority=priority, caller=caller, reason=reason)
        else:
            more: dict[str, Any] = {"stage": stage, "priority": priority}
            acted = act_on_workflow(workflow.pk, act.name, caller=caller, reason=reason, **more)
    except ParamErrors as errors:
        return 409, command_buttons.faults_of(errors)
    except _REFUSED as error:
        return 409, [sentence(error)]
    if acted.refused and not acted.tasks and not acted.packages:
        return 409, [_of_group(act, group) for group in acted.refused]
    for group in acted.refused if acted.tasks else ():
        messages.warning(request, _of_group(act, group))
    return 200, []


def _of_group(act: WorkflowAct, group: bulk.Refused) -> str:
    number, words = len(group.ids), command_buttons.on_page(TASK_ACTS[COMMANDS[act.name]], group.words)
    return f"{plural(number, 'task')} {'refuses' if number == 1 else 'refuse'} it: {words}."


def _priority(text: str, faults: Faults) -> int:
    if text.isascii() and text.isdecimal() and len(text) < 10 and int(text) <= HIGHEST_PRIORITY:
        return int(text)
    faults.add("Priority", "number", f"Enter a whole number from 0 to {HIGHEST_PRIORITY}.")
    return 0


@needs(Right.SUBMIT)
@require_http_methods(["GET", "HEAD", "POST"])
@takes("command", "ids", "query")
def workflow_packages_bulk(request: HttpRequest) -> HttpResponse:
    """One act on packages of one workflow: `command`, and `ids` or `query` (the filters of the list of packages)."""
    given = request.POST if request.method == "POST" else request.GET
    act, query = ACTS.get(given.get("command", "")), given.get("query", "").lstrip("?")
    try:
        if act is None or not act.for_lines:
            raise bulk.SelectionError("command", "command: choose what to do with the packages.")
        workflow, chosen, ids = _chosen(chosen_rows.chosen_ids(given), query)
    except bulk.SelectionError as exc:
        context: dict[str, Any] = {"section": "workflows", "faults": [str(exc)], "act": act}
        return render(request, "tasks_app/workflow_do.html", context, status=400)
    return _with_packages(request, workflow.pk, act, workflow, chosen, ids, query)


@in_its_place
def _with_packages(
    request: HttpRequest,
    workflow_id: int,
    act: WorkflowAct,
    workflow: Workflow,
    chosen: Chosen,
    ids: Sequence[int],
    query: str,
) -> HttpResponse:
    given = request.POST if request.method == "POST" else request.GET
    caller, code = caller_of(request), 200
    faults: list[str] = []
    back = reverse("dashboard:workflow-packages", args=[workflow_id])
    of = plural(len(chosen.lines), "line") if act.name == DROP else plural(len(chosen.paths), "package")
    if request.method == "POST" and "confirm" in given:
        code, faults = _do(request, act, workflow, caller, None, chosen)
        if not faults:
            messages.success(request, f"{act.title}: accepted for {of}.")
            return redirect(back)
    context = {
        **_preview(act, workflow, caller, None, chosen),
        "section": "workflows",
        "act": act,
        "workflow": workflow,
        "question": act.question(f"{of} of {workflow.name}"),
        "ids": ",".join(map(str, ids)),
        "query": query,
        "given": request.POST,
        "faults": faults,
        "back": back,
    }
    return render(request, "tasks_app/workflow_do.html", context, status=code)


def _chosen(ids: Sequence[int] | None, query: str) -> tuple[Workflow, Chosen, list[int]]:
    """The workflow, the chosen packages with their lines, and the numbers of these. Raises SelectionError."""
    rows = with_places(WorkflowPackage.objects.all())
    if ids is not None:
        rows = rows.filter(pk__in=bulk.checked_ids(ids, "package"))
    else:
        filters = chosen_rows.filters_of(query)
        number = filters.pop("workflow", "")
        if not (number.isascii() and number.isdecimal() and len(number) < 19):
            raise bulk.SelectionError("query", "query: name the workflow whose packages are meant.")
        chosen = PackageFilter(filters, queryset=rows.filter(workflow_id=int(number)))
        unknown = sorted(set(filters) - set(PackageFilter.base_filters))
        if unknown or not chosen.is_valid():
            raise bulk.SelectionError(
                "query", f"query: {(unknown or list(chosen.form.errors))[0][:60]} cannot be read."
            )
        rows = chosen.qs
    found = list(rows.order_by("pk").values_list("pk", "workflow_id", "line", "path"))
    ids = bulk.checked_ids((pk for pk, *_ in found), "package")
    if len(numbers := {number for _, number, *_ in found}) > 1:
        raise bulk.SelectionError("ids", "Choose packages of one workflow.")
    lines = list(dict.fromkeys(line for *_, line, _ in found))
    return workflow_of(numbers.pop()), Chosen(lines, [path for *_, path in found]), ids
