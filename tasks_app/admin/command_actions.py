"""Commands to tasks as actions of the admin: a page asks for the reason and the command's parameters, then each task gets its
command through its door."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from jedisite.admin.base import caller_behind
from jedisite.vocabulary.words import plural, sentence
from jedisite.web.reasons import ReasonFormField
from tasks_app.commands.act_words import Field, field_of
from tasks_app.domain.task_commands import COMMANDS, TaskCommand
from tasks_app.lifecycle import rights
from tasks_app.models import Task
from tasks_app.params.acts import ACTS, Act
from tasks_app.params.faults import ParamErrors
from tasks_app.submission.command_queue import CommandRefusedError, give_command
from tasks_app.web.commands.command_buttons import LONGEST_REASON, faults_of, read

MOST_TASKS = 200
Action = Callable[[Any, HttpRequest, QuerySet[Task]], HttpResponse | None]


class ReasonForm(forms.Form):
    reason = ReasonFormField(
        max_length=LONGEST_REASON,
        widget=UnfoldAdminTextInputWidget,
        help_text="the reason, for the owners of the tasks and the log",
    )


def _form_of(act: Act) -> type[ReasonForm]:
    """The form that asks for the reason and for what the command takes. What is filled in is read by `read`."""
    fields = {key.name: _field_of(field_of(key)) for key in act.keys}
    return type("CommandForm", (ReasonForm,), fields)


def _field_of(field: Field) -> forms.Field:
    about: dict[str, Any] = {"required": False, "label": field.title, "help_text": field.help}
    if field.key.kind == "flag":
        return forms.BooleanField(widget=UnfoldBooleanSwitchWidget, **about)
    if field.choices:
        return forms.ChoiceField(choices=field.choices, widget=UnfoldAdminSelectWidget, **about)
    widget = UnfoldAdminTextareaWidget if field.key.kind == "object" else UnfoldAdminTextInputWidget
    return forms.CharField(widget=widget, **about)


def command_action(command: TaskCommand) -> Action:
    """The action that gives one command to the selected tasks."""

    @admin.action(description=f"{COMMANDS[command].title} …", permissions=["command"])
    def act(model_admin: Any, request: HttpRequest, queryset: QuerySet[Task]) -> HttpResponse | None:
        return _ask_or_give(model_admin, request, queryset, command)

    act.__name__ = f"{command.value}_tasks"
    return act


def _ask_or_give(
    model_admin: Any, request: HttpRequest, queryset: QuerySet[Task], command: TaskCommand
) -> HttpResponse | None:
    tasks = list(queryset.select_related(None).only("id", "name", "status", "user", "working_group")[: MOST_TASKS + 1])
    if len(tasks) > MOST_TASKS:
        messages.error(request, f"Select at most {MOST_TASKS} tasks at a time.")
        return None
    act = ACTS[command]
    form = _form_of(act)(request.POST if "reason" in request.POST else None)
    if form.is_valid():
        try:
            reason, parameters = read(act, request.POST, tasks)
        except ParamErrors as exc:
            form.add_error(None, faults_of(exc))
        else:
            _give(request, sorted(tasks, key=lambda t: t.id), command, reason, parameters)
            return None
    rule, number = COMMANDS[command], plural(len(tasks), "task")
    context = {
        **model_admin.admin_site.each_context(request),
        "opts": model_admin.opts,
        "title": rule.title,
        "explained": f"{rule.title} {number}: {rule.help}.",
        "action": f"{command.value}_tasks",
        "checkbox": ACTION_CHECKBOX_NAME,
        "tasks": tasks,
        "form": form,
    }
    return render(request, "admin_parts/command.html", context)


def _give(
    request: HttpRequest, tasks: list[Task], command: TaskCommand, reason: str, parameters: dict[str, Any] | None
) -> None:
    """Give the command to those tasks that are the caller's to command and accept it; say of the others why not."""
    caller = caller_behind(request)
    given = 0
    for task in tasks:
        refused = rights.refusal(caller, command, task, parameters)
        if refused:
            messages.error(request, sentence(refused))
            continue
        try:
            with transaction.atomic():
                give_command(task.id, command.value, by=caller.name, reason=reason, parameters=parameters)
            given += 1
        except CommandRefusedError as exc:
            messages.error(request, sentence(exc))
    if given:
        messages.success(
            request, f"{command.value.capitalize()} was sent to {given} {'task' if given == 1 else 'tasks'}."
        )


ACTIONS: list[Action] = [command_action(command) for command in COMMANDS]
