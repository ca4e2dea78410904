"""Admin of users' sandboxes: for looking, and to remove what must not be kept."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from jedisite import audit
from jedisite.admin.base import LargeTableAdmin, actor_of, caller_behind
from jedisite.admin.list_filters import exact
from jedisite.identity.callers import Right
from jedisite.vocabulary.words import plural
from tasks_app import models
from tasks_app.submission import sandboxes


@admin.register(models.Sandbox)
class SandboxAdmin(LargeTableAdmin):
    list_display = ["name", "owner", "size", "created", "last_used"]
    list_filter = [exact("owner", "owner")]
    search_fields = ["name__exact", "stored__exact"]
    search_help_text = "Full name of a sandbox or of its file."
    ordering = ["-id"]
    ordering_within = {"owner": ("-owner", "-crc")}
    actions = ["remove"]

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return caller_behind(request).may(Right.OPERATE)

    @admin.action(description="Remove, even if a task needs it", permissions=["operate"])
    def remove(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        rows = {row.pk: row.name for row in queryset}
        with transaction.atomic():
            removed = sandboxes.remove(rows)
            names = ",".join(map(str, sorted(rows)))[:100]
            audit.record(actor_of(request), "remove", "sandbox", names, details={"names": sorted(rows.values())})
        messages.success(request, f"{removed} of {plural(len(rows), 'sandbox was', 'sandboxes were')} removed.")
