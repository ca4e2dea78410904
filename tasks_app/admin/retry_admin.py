"""Admin of retry rules and classes of errors, with a tester: which rules an error meets, and what they would do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.utils import timezone

from jedisite.admin.base import AuditedAdmin
from jedisite.admin.list_filters import days
from jedisite.admin.tools import TRY, ToolAdmin
from jedisite.web.paging import LARGEST_ID
from tasks_app import models
from tasks_app.domain.job_errors import JobError, reported
from tasks_app.domain.retry_rules import (
    LONGEST_DIAGNOSIS,
    Action,
    Circumstances,
    RetryParameters,
    RetryRule,
    is_system_error,
    objection,
    select,
)
from tasks_app.models.retry import SOURCES
from tasks_app.retries.apply_rules import find, load_rules

EFFECTS = {
    Action.INCREASE_MEMORY: "the job's inputs get the next step of memory",
    Action.MEMORY_XTIMES: "the job's inputs get more memory, in steps of the task's own",
    Action.INCREASE_CPUTIME: "the task's CPU time is raised from the job's walltime, or measured again",
    Action.REDUCE_INPUT: "from attempt {0.parameters.steps[0]} on jobs read half of their input, then a quarter, then one unit",
    Action.LIMIT_RETRY: "the inputs get at most {0.parameters.max_attempt} attempts",
    Action.NO_RETRY: "the inputs are not retried",
}
"""What each action does, of its rule."""


class ErrorToTry(forms.Form):
    """An error as a job reports it, or a job that failed."""

    job = forms.IntegerField(required=False, min_value=1, max_value=LARGEST_ID, label="Number of a failed job")
    source = forms.ChoiceField(
        required=False, choices=[("", "or a component")] + [(s, s) for s in SOURCES], label="Component"
    )
    code = forms.IntegerField(required=False, min_value=-(2**31), max_value=2**31 - 1, label="Code")
    diag = forms.CharField(
        required=False,
        max_length=4000,
        label="Text of the error",
        strip=False,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
        help_text=f"patterns are matched with the first {LONGEST_DIAGNOSIS} characters",
    )
    architecture = forms.CharField(required=False, max_length=256, label="Platform")
    release = forms.CharField(required=False, max_length=64, label="Release")

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        if self.errors:
            return values
        if values["job"]:
            with connection.cursor() as cursor:
                found = find(cursor.cursor, [values["job"]], every=True).by_task
            values["row"] = next((row for rows in found.values() for row in rows), None)
            if values["row"] is None:
                self.add_error("job", f"Job {values['job']} is archived or unknown, or it has no error.")
        elif not values["source"] or values["code"] is None:
            self.add_error("source", "Enter a job, or a component and a code.")
        elif values["code"] == 0:
            self.add_error("code", "The code 0 is no error.")
        return values


@dataclass(frozen=True, slots=True)
class Judged:
    """A rule that is about an error: `why` it does not fit; empty when it does. `edited`: as in the form, not as stored."""

    rule: RetryRule
    why: str
    edited: bool

    @property
    def effect(self) -> str:
        return EFFECTS[self.rule.action].format(self.rule)


def trial(given: dict[str, Any], edited: models.RetryRule | None, now: datetime) -> dict[str, Any]:
    """What the rules say of an error, with the edited one in the place of its stored self."""
    with connection.cursor() as cursor:
        book = load_rules(cursor.cursor)
    rules, own = list(book.rules), None
    if edited is not None:
        own = RetryRule(
            edited.pk or 0,
            edited.error_source,
            edited.error_code,
            Action(edited.action),
            edited.pattern,
            edited.architecture,
            edited.release,
            edited.work_queue_id,
            RetryParameters.parse(edited.parameters),
            edited.active,
            expires=edited.expires,
        )
        rules = sorted([rule for rule in rules if rule.id != own.id] + [own], key=lambda rule: rule.id or LARGEST_ID)
    row = given.get("row")
    if row is not None:
        errors = [JobError(*error) for error in row.errors]
        where = Circumstances(row.architecture, row.release, row.work_queue_id)
    else:
        errors = reported(given["source"], given["code"], given["diag"])
        where = Circumstances(given["architecture"] or None, given["release"] or None)
    chosen = select(errors, rules, where, now)
    same = [
        (error, [Judged(r, objection(r, error, where, now), r is own) for r in rules if _about(r, error)])
        for error in errors
    ]
    return {
        "job": given["job"],
        "errors": same,
        "error": chosen.error,
        "system": is_system_error(errors, book.classes),
        "applied": [Judged(rule, "", rule is own) for rule in chosen.rules],
        "left_out": edited is None,
    }


def _about(rule: RetryRule, error: JobError) -> bool:
    return (rule.error_source, rule.error_code) == (error.component, error.number)


ERROR_FIELDS = ["error_source", "error_code", "pattern"]


@admin.display(description="Not applied because")
def not_applied(row: models.RetryRule | models.ErrorClass) -> str:
    """Why a row does nothing though it is active."""
    return " ".join(row.faults.values())


@admin.register(models.RetryRule)
class RetryRuleAdmin(ToolAdmin):
    tool_template = "admin_parts/retry_rule.html"
    list_before_template = "admin_parts/retry_rules_above.html"
    list_display = [*ERROR_FIELDS, "action", "parameters", "active", "expires", not_applied, "description"]
    list_filter = ["error_source", "action", "active", days("expires")]
    list_select_related = ["work_queue"]
    search_fields = ["error_code", "description", "pattern"]
    ordering = ["error_source", "error_code", "id"]
    fieldsets = [
        ("The error", {"fields": ERROR_FIELDS}),
        ("Only for", {"fields": ["architecture", "release", "work_queue"]}),
        ("Action", {"fields": ["action", "parameters", "active", "expires", "description"]}),
    ]
    help_texts = {
        "action": "increase_memory: the next step of memory; memory_xtimes: multiplied by the task's own factor; "
        "increase_cputime: from the job's walltime; reduce_input: smaller jobs; limit_retry: a maximum of attempts; "
        "no_retry: none",
        "work_queue": "only tasks of this work queue",
    }

    def tool_form(self, data: Any) -> forms.Form:
        return ErrorToTry(data, prefix=TRY)

    def tried(self, request: HttpRequest, form: Any, tool: Any) -> dict[str, Any]:
        return trial(tool.cleaned_data, form.instance if not form.errors else None, timezone.now())

    def get_urls(self) -> list[Any]:
        own = path("try/", self.admin_site.admin_view(self.try_view), name="tasks_app_retryrule_try")
        return [own, *super().get_urls()]

    def try_view(self, request: HttpRequest) -> HttpResponse:
        """The tester with the stored rules alone. Only looks."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        used = TRY in request.GET
        tool = ErrorToTry(request.GET if used else None, prefix=TRY)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Try the retry rules",
            "tool": tool,
            "try": TRY,
            "tried": trial(tool.cleaned_data, None, timezone.now()) if used and tool.is_valid() else None,
        }
        return render(request, "admin_parts/retry_try.html", context)


@admin.register(models.ErrorClass)
class ErrorClassAdmin(AuditedAdmin):
    list_display = [*ERROR_FIELDS, "name", "active", not_applied, "description"]
    list_filter = ["error_source", "name", "active"]
    search_fields = ["error_code", "description", "pattern"]
    ordering = ["error_source", "error_code", "id"]
    help_texts = {"name": "system: failures with this error do not count towards the limit on failures"}
