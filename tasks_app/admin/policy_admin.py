"""Admin of work queues and global shares with what only this room knows: tasks to try criteria with, and what runs."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Case, Count, F, QuerySet, Value, When
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.views import ChangeList

from brokerage_app.admin.grid_overview_admin import GlobalShareAdmin, WorkQueueAdmin
from brokerage_app.grid import installed_policy
from brokerage_app.models import GlobalShare, WorkQueue
from brokerage_app.policy.share_change import ShareEffect, effects, levels_of
from brokerage_app.policy.shares import Share, ShareTree
from brokerage_app.policy.trying import DescriptionError, asked, described, line_by_line, parts
from jedisite.admin.tools import TRY, ToolAdmin
from jedisite.vocabulary.patterns import fault_of
from jedisite.web.paging import LARGEST_ID
from tasks_app.models import Task
from tasks_app.submission.assignment import asked_of
from tasks_app.usage import share_use

SEEN = "_seen"
"""The value of a share whose effect was looked at."""
WHOLE = 100
EXAMPLE = '{"vo": "atlas", "prodSourceLabel": "managed", "processingType": "simul", "coreCount": 8}'


class TaskToTry(forms.Form):
    """A task by its number, or described. With neither only the division of CPUs is worked out."""

    task = forms.IntegerField(required=False, min_value=1, max_value=LARGEST_ID, label="Number of a task")
    described = forms.CharField(
        required=False,
        max_length=4000,
        label="or attributes of a task, as JSON",
        widget=forms.Textarea(attrs={"rows": 3, "placeholder": EXAMPLE, "spellcheck": "false"}),
    )

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
        edited, stored = installed_policy.queue_row(form.instance), installed_policy.queue_rows()
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


def outlook(rows: list[Share], values: dict[str, int]) -> tuple[tuple[ShareEffect, ...], float]:
    """What other values would do within an hour, and the part of the slots that come free in it. Two queries."""
    loads, turned_over = share_use.loads(), share_use.turned_over()
    executing = {name: load.executing for name, load in loads.items()}
    queued = {name: load.queued for name, load in loads.items()}
    return effects(rows, values, executing, queued, turned_over=turned_over), turned_over


class ShareTreeList(ChangeList):
    """The rows know their place in the tree, the list knows what is odd about it."""

    def get_ordering(self, request: HttpRequest, queryset: Any) -> list[str]:
        return ["place", "name"]

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        rows = installed_policy.share_rows()
        tree = ShareTree(rows)
        levels = levels_of(tree)
        found, self.turned_over = outlook(rows, {})
        now = {one.name: one for one in found}
        total = sum(one.executing for one in found if one.level == 1)
        sums = level_sums(rows)
        for row in self.result_list:
            row.level, row.leaf = levels.get(row.name, 1), tree.is_leaf(row.name)
            row.percent = tree.percents.get(row.name)
            row.siblings = sums[row.parent_id or None]
            row.actual = 100 * now[row.name].executing / total if total and row.name in now else None
        self.oddities = oddities(rows)


admin.site.unregister(GlobalShare)


@admin.register(GlobalShare)
class GlobalShareTree(ToolAdmin, GlobalShareAdmin):
    """The list is the tree. A new value is stored once its effect was looked at."""

    tool_template = "admin_parts/global_share.html"
    list_before_template = "admin_parts/share_tree.html"
    list_display = ["in_tree", "of_siblings", "of_whole", "runs_now", "vo", "patterns", "throttled"]
    list_display_links = ["in_tree"]
    list_per_page = 500
    sortable_by = ()

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> Any:
        return ShareTreeList

    def get_queryset(self, request: HttpRequest) -> QuerySet[GlobalShare]:
        """Parents before their children; rows that hang on nothing come last."""
        names = list(installed_policy.share_tree().shares)
        places = [When(pk=name, then=Value(i)) for i, name in enumerate(names)]
        # Without shares there is nothing to order by, and PostgreSQL takes a plain number for a column.
        place: Any = Case(*places, default=Value(len(names))) if places else F("value")
        return super().get_queryset(request).annotate(place=place)

    @admin.display(description="share")
    def in_tree(self, row: Any) -> SafeString:
        return format_html('<span class="tree-name tree-{}">{}</span>', min(row.level - 1, 4), row.name)

    @admin.display(description="value among siblings")
    def of_siblings(self, row: Any) -> str:
        return f"{row.value} of {row.siblings}"

    @admin.display(description="target")
    def of_whole(self, row: Any) -> str:
        return "no parent" if row.percent is None else f"{row.percent:.1f} %"

    @admin.display(description="running now")
    def runs_now(self, row: Any) -> str:
        return "–" if row.actual is None else f"{row.actual:.1f} %"

    @admin.display(description="takes tasks with")
    def patterns(self, row: Any) -> str:
        asked = []
        for name in row.PATTERNS:
            if value := getattr(row, name):
                fault = fault_of(value)
                asked.append(f"{name.replace('_', ' ')} {f'that matches nothing: {fault}' if fault else repr(value)}")
        return ", ".join(asked) or ("any" if row.leaf else "–")

    def must_look(self, request: HttpRequest, form: Any) -> bool:
        value = form.cleaned_data.get("value")
        if form.instance._state.adding or "value" not in form.changed_data:
            return False
        return request.POST.get(SEEN) != str(value)

    def tried(self, request: HttpRequest, form: Any, tool: Any) -> dict[str, Any]:
        value, rows, name = form.cleaned_data.get("value"), installed_policy.share_rows(), form.instance.pk
        if value is None or form.errors:
            return {"fault": True}
        if all(row.name != name for row in rows):
            rows.append(Share(name, 0, form.instance.parent_id))
        found, turned_over = outlook(rows, {name: value})
        return {"effects": found, "name": name, "value": value, "seen": SEEN, "turned_over": round(100 * turned_over)}


def level_sums(rows: list[Share]) -> dict[str | None, int]:
    """Values of the children of each share added up; under None those at the top."""
    found: dict[str | None, int] = {}
    for row in rows:
        found[row.parent or None] = found.get(row.parent or None, 0) + max(row.value, 0)
    return found


def oddities(rows: list[Share]) -> list[tuple[bool, str]]:
    """(whether it is wrong, sentence) of each level whose values do not add up to 100, and of patterns that nobody asks."""
    found = []
    for parent, total in level_sums(rows).items():
        where = f"Below {parent}" if parent else "At the top"
        if total == 0:
            found.append((True, f"{where} all values are 0: no share there has a target."))
        elif total != WHOLE:
            found.append(
                (False, f"{where} the values add up to {total}, not {WHOLE}: a share gets its value / {total}.")
            )
    parents = {row.parent for row in rows if row.parent}
    for row in rows:
        if row.name in parents and any(getattr(row, name) for name in GlobalShare.PATTERNS):
            found.append(
                (True, f"{row.name} has patterns that are never used: only shares without children have tasks.")
            )
    return found
