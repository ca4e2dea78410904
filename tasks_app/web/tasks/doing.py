"""Pages that say what an act on one task or on many would do, ask for the reason, and do it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.datastructures import MultiValueDict
from django.views.decorators.http import require_http_methods

from jedisite.identity.callers import Right, caller_of, needs
from jedisite.vocabulary.words import sentence
from tasks_app.commands import bulk
from tasks_app.commands.act_words import question
from tasks_app.domain import words
from tasks_app.models import Command, Task
from tasks_app.params.acts import ACTS, Act, Change
from tasks_app.params.faults import ParamErrors
from tasks_app.submission.assignment import check_share
from tasks_app.submission.command_queue import CommandRefusedError
from tasks_app.submission.parameter_changes import CannotChangeError
from tasks_app.web.commands import chosen_rows, command_buttons
from tasks_app.web.lists.misspelt import takes

SHOWN = 100
REFUSED_SHOWN = 20


@needs(Right.SUBMIT)
@require_http_methods(["GET", "HEAD", "POST"])
@takes()
def task_do(request: HttpRequest, task_id: int, name: str) -> HttpResponse:
    """One act on one task: what it would do, and with POST the doing."""
    act = ACTS.get(name)
    if act is None:
        raise Http404(f"There is no action {name!r}.")
    task = get_object_or_404(Task.objects.all(), pk=task_id)
    caller = caller_of(request)
    waiting = Command.objects.waiting_of([task_id]).get(task_id, ())
    refused = command_buttons.why_not(act, task, caller, waiting)
    code, faults = 200, list[str]()
    if request.method == "POST":
        code, faults = _refused(refused) if refused else _do_to_one(act, task_id, request)
        if not faults:
            effect = "It takes effect within seconds." if act.is_command else "It takes effect at once."
            messages.success(request, f"{act.title}: accepted for task {task_id}. {effect}")
            return redirect("dashboard:task", task_id=task_id)
    context = {
        "section": "tasks",
        "act": act,
        "task": task,
        "refused": refused,
        "fields": command_buttons.fields_of(act, caller, task),
        "plan": bulk.preview(act, bulk.Selection((task,)), caller),
        "question": question(name, f"task {task_id}"),
        "given": request.POST,
        "faults": faults,
    }
    return render(request, "tasks_app/task_do.html", context, status=code)


def _refused(why: bulk.WhyNot) -> tuple[int, list[str]]:
    return 403 if why.kind == "right" else 409, [why.sentence]


def _do_to_one(act: Act, task_id: int, request: HttpRequest) -> tuple[int, list[str]]:
    """Do it; returns the status, and why it failed, in sentences: then nothing was done."""
    caller = caller_of(request)
    try:
        reason, parameters = command_buttons.read(act, request.POST, Task.objects.filter(pk=task_id))
        with transaction.atomic():
            task = Task.objects.select_for_update().get(pk=task_id)
            waiting = Command.objects.waiting_of([task_id]).get(task_id, ())
            refused = bulk.why_not(act, task, caller, parameters, waiting=waiting)
            if refused:
                return _refused(refused._replace(sentence=command_buttons.on_page(act, refused.sentence)))
            bulk.through_door(act, [task], by=caller.name[:128], reason=reason, parameters=parameters)
    except ParamErrors as exc:
        return 409, command_buttons.faults_of(exc)
    except (CannotChangeError, CommandRefusedError) as exc:
        return 409, [command_buttons.on_page(act, sentence(exc))]
    return 200, []


@needs(Right.SUBMIT)
@require_http_methods(["GET", "HEAD", "POST"])
@takes("command", "ids", "query")
def tasks_bulk(request: HttpRequest) -> HttpResponse:
    """One act on many tasks: `command`, and `ids` or `query` (the filters of the address of the list of tasks).

    Shows what would be hit; with POST and `confirm`, does it to the tasks that were shown.
    """
    given = request.POST if request.method == "POST" else request.GET
    act, query = ACTS.get(given.get("command", "")), given.get("query", "").lstrip("?")
    if act is not None and not act.for_many:
        act = None
    context: dict[str, Any] = {
        "section": "tasks",
        "act": act,
        "acts": [other for other in ACTS.values() if other.for_many],
        "query": query,
        "back": chosen_rows.list_address("dashboard:tasks", query),
        "given": given,
        "faults": [],
    }
    try:
        chosen = _chosen(given, query)
    except bulk.SelectionError as exc:
        context["faults"] = [str(exc)]
        return render(request, "tasks_app/tasks_bulk.html", context, status=400)
    caller = caller_of(request)
    if act is None:
        context |= {"chosen": chosen, "ids": _joined(task.id for task in chosen.tasks)}
        return render(request, "tasks_app/tasks_bulk.html", context)
    if request.method == "POST" and "confirm" in given:
        try:
            reason, parameters = command_buttons.read(act, given, chosen.tasks)
            if act.name == Change.SHARE and parameters:
                check_share(parameters["share"])
        except ParamErrors as exc:
            context["faults"] = command_buttons.faults_of(exc)
        else:
            ids = [*(task.id for task in chosen.tasks), *chosen.missing]
            done = bulk.give(act, ids, caller=caller, reason=reason, parameters=parameters, query=query)
            _tell(request, act, done)
            return redirect(chosen_rows.list_address("dashboard:tasks", query))
    plan = bulk.preview(act, chosen, caller)
    plan = replace(plan, refused=command_buttons.refused_on_page(act, plan.refused))
    context |= {
        "plan": plan,
        "ids": _joined(plan.ids),
        "fields": command_buttons.fields_of(act, caller),
        "tasks": plan.tasks[:SHOWN],
        "question": question(act.name, words.plural(len(plan.tasks), "task")),
        "more_tasks": max(len(plan.tasks) - SHOWN, 0),
        "refused_shown": REFUSED_SHOWN,
    }
    return render(request, "tasks_app/tasks_bulk.html", context, status=400 if context["faults"] else 200)


def _chosen(given: MultiValueDict[str, str], query: str) -> bulk.Selection:
    """The tasks that the query finds or, in the end and without a query, those that are named. Raises SelectionError."""
    ids = chosen_rows.chosen_ids(given)
    if ids is not None:
        return bulk.by_ids(ids)
    found = bulk.by_filter(chosen_rows.filters_of(query))
    if not found.tasks:
        raise bulk.SelectionError("query", "No task matches.")
    return found


def _joined(ids: Iterable[int]) -> str:
    """Ids as one field of a form: a form may not have a thousand of them."""
    return ",".join(map(str, ids))


def _tell(request: HttpRequest, act: Act, done: bulk.Done) -> None:
    if done.ids:
        messages.success(request, f"{act.title}: sent to {words.plural(len(done.ids), 'task')}.")
    for group in command_buttons.refused_on_page(act, done.refused):
        few = ", ".join(map(str, group.ids[:5])) + (" …" if len(group.ids) > 5 else "")
        messages.warning(
            request, f"{act.title} was refused by {words.plural(len(group.ids), 'task')} ({few}): {group.words}."
        )
