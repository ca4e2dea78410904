"""Admin of the installation: agents and their passes, tokens, the audit trail, django-q2 and accounts."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django_q import models as q2

from jedisite.admin.base import AuditedAdmin, LargeTableAdmin, ReadOnlyAdmin, caller_behind
from jedisite.admin.list_filters import exact, months
from jedisite.agents.agent_orders import LONGEST_PERIOD_S, SHORTEST_PERIOD_S
from jedisite.agents.registry import REGISTRY
from jedisite.identity.callers import Right
from jedisite.models import Agent, AgentPass, AuditEntry, Trouble


class AgentForm(forms.ModelForm):
    class Meta:
        model = Agent
        fields = ["period_s", "paused"]

    def clean_period_s(self) -> float:
        period: float = self.cleaned_data["period_s"]
        if not SHORTEST_PERIOD_S <= period <= LONGEST_PERIOD_S:
            raise forms.ValidationError(
                f"The period must be between {SHORTEST_PERIOD_S} and {LONGEST_PERIOD_S:.0f} seconds; this is {period}."
            )
        return period


@admin.register(Agent)
class AgentAdmin(AuditedAdmin):
    """Rows come from the registry of agents; people set the period and pause them."""

    form = AgentForm
    list_display = ["name", "title", "period_s", "paused", "due_at", "last_ended_at", "last_items", "errors_in_a_row"]
    list_filter = ["paused"]
    search_fields = ["name", "title"]
    ordering = ["name"]
    readonly_fields = [f.name for f in Agent._meta.concrete_fields if f.name not in ("period_s", "paused")]
    fields = ["name", "title", "period_s", "paused", *(n for n in readonly_fields if n not in ("name", "title"))]
    actions = ["run_now"]
    help_texts = {"paused": "no passes until this is unticked"}

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        allowed: bool = super().has_change_permission(request, obj)
        return allowed and caller_behind(request).may(Right.OPERATE)

    @admin.action(description="Run now", permissions=["change"])
    def run_now(self, request: HttpRequest, queryset: QuerySet[Agent]) -> None:
        """Make the agents due, in the order of their names. Paused ones stay as they are."""
        for agent in queryset.order_by("name"):
            if agent.paused:
                messages.warning(request, f"{agent.name} is paused: resume it first.")
            elif agent.name not in REGISTRY:
                messages.warning(request, f"{agent.name} is no longer part of this installation.")
            else:
                Agent.objects.filter(pk=agent.pk).update(due_at=Now(), queued_at=None)
                self.record(request, "agent.run", agent)
                messages.success(request, f"{agent.name} is due now.")


@admin.register(Trouble)
class TroubleAdmin(ReadOnlyAdmin):
    """What agents have left aside after an unexpected error. Rows come and go with their turns."""

    list_display = ["agent", "kind", "subject", "task_id", "failures", "since", "next_try", "error"]
    list_filter = ["agent", "kind"]
    search_fields = ["=subject", "=task_id"]
    ordering = ["-id"]


@admin.register(AgentPass)
class AgentPassAdmin(LargeTableAdmin):
    list_display = ["id", "agent", "started_at", "duration_s", "items", "note", "host"]
    list_filter = [exact("agent", "agent"), months("started_at")]
    search_fields = ["agent__exact", "id__exact"]
    search_help_text = "Agent name, or pass number."
    ordering = ["-id"]


@admin.register(AuditEntry)
class AuditEntryAdmin(LargeTableAdmin):
    list_display = ["id", "at", "actor", "action", "object_type", "object_id", "reason"]
    list_filter = [exact("object_type", "kind of object"), exact("object_id", "id of object", ("object_type",))]
    search_fields = ["id__exact"]
    search_help_text = "Entry number."
    ordering = ["-id"]

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        if request.GET.get("object_type"):
            return ("-object_type", "-id") if request.GET.get("object_id") else ("object_type", "object_id", "-id")
        return super().get_ordering(request)


# django-q2 registers its own classes in the plain theme.
for _model in (q2.Schedule, q2.Success, q2.Failure, q2.OrmQ):
    admin.site.unregister(_model)


@admin.register(q2.Schedule)
class ScheduleAdmin(AuditedAdmin):
    """The floor under the agents. What a schedule runs is fixed: a text there would be run as code."""

    list_display = ["name", "func", "args", "schedule_type", "minutes", "next_run", "repeats"]
    list_filter = ["schedule_type"]
    search_fields = ["name", "func"]
    ordering = ["name", "id"]
    fields = ["name", "func", "args", "schedule_type", "minutes", "cron", "next_run", "repeats"]
    readonly_fields = ["name", "func", "args"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class EndedAdmin(ReadOnlyAdmin):
    """What django-q2 has run. Arguments and results are pickled: lists leave them alone."""

    long_columns = ("args", "kwargs", "result")
    list_display = ["name", "group", "func", "cluster", "started", "stopped"]
    search_fields = ["name", "func", "group"]
    ordering = ["-stopped", "id"]
    fields = ["id", "name", "func", "group", "cluster", "started", "stopped", "success", "attempt_count", "outcome"]

    @admin.display(description="result")
    def outcome(self, task: Any) -> str:
        return str(task.result)[:8000]


admin.site.register(q2.Success, EndedAdmin)
admin.site.register(q2.Failure, EndedAdmin)


@admin.register(q2.OrmQ)
class QueuedAdmin(ReadOnlyAdmin):
    """What waits for a worker of django-q2."""

    list_display = ["id", "key", "name", "func", "lock"]
    search_fields = ["key"]
    ordering = ["id"]
    fields = ["key", "lock", "task_id", "name", "group", "func"]
