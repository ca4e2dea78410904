"""Admin of work queues with what only this room knows: tasks to try criteria with, and how many of them each queue has."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Count
from django.http import HttpRequest

from brokerage_app import policy
from brokerage_app.admin import WorkQueueAdmin
from brokerage_app.models import WorkQueue
from brokerage_app.trying import DescriptionError, asked, described, line_by_line, parts
from jedisite.admin_tools import TRY, ToolAdmin
from jedisite.paging import LARGEST_ID
from tasks_app.models import Task
from tasks_app.placing import asked_of

EXAMPLE = '{"vo": "atlas", "prodSourceLabel": "managed", "processingType": "simul", "coreCount": 8}'


class TaskToTry(forms.Form):
    """A task by its number, or described. With neither only the division of CPUs is worked out."""

    task = forms.IntegerField(required=False, min_value=1, max_value=LARGEST_ID, label="Number of a task")
    described = forms.CharField(
        required=False, max_length=4000, label="or attributes of a task, as JSON",
        widget=forms.Textarea(attrs={"rows": 3, "placeholder": EXAMPLE, "spellcheck": "false"}),
    )  # fmt: skip

    def clean_task(self) -> Task | None:
        number = self.cleaned_data["task"]
        found = Task.objects.filter(pk=number).first() if number else None
        if number and found is None:
            raise forms.ValidationError(f"There is no task {number}.")
        return found

    def clean_described(self) -> Any:
        text = self.cleaned_data["described"].strip()
        try:
            return described(text) if text else None
        except DescriptionError as exc:
            raise forms.ValidationError(str(exc)) from exc

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        if values.get("task") and values.get("described"):
            self.add_error("described", "Give a number or attributes, not both.")
        return values


admin.site.unregister(WorkQueue)


@admin.register(WorkQueue)
class WorkQueueTester(ToolAdmin, WorkQueueAdmin):
    tool_template = "admin_parts/work_queue.html"

    def tool_form(self, data: Any) -> forms.Form:
        return TaskToTry(data, prefix=TRY)

    def tried(self, request: HttpRequest, form: Any, tool: Any) -> dict[str, Any]:
        edited, stored = policy.queue_row(form.instance), policy.queue_rows()
        rows = [row for row in stored if row.id != edited.id] + [edited]
        level = (edited.vo, edited.type)
        before, after = ([row for row in some if (row.vo, row.type) == level] for some in (stored, rows))
        ids = [row.id for row in after]
        counted = Task.objects.open().filter(work_queue__in=ids).values_list("work_queue").annotate(Count("id"))
        found: dict[str, Any] = {"row": edited, "parts": parts(before, after, dict(counted.order_by()))}
        given = tool.cleaned_data
        about = asked_of(given["task"]) if given["task"] else given["described"]
        if about:
            task, wish = about
            # Criteria that cannot be read are told at their field.
            sane = not {"criteria", "variables"} & set(form.errors)
            found |= {
                "task": given["task"],
                "attributes": {k: v for k, v in {"vo": task.vo, **task.values()}.items() if v is not None},
                "stored": asked(task, wish, stored),
                "edited": asked(task, wish, rows) if sane else None,
                "clauses": line_by_line(task, edited.criteria, edited.variables) if sane else (),
            }
        return found
