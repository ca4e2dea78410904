"""Admin of what needs somebody: for looking. People act on it on the page of attention, which says who and why."""

from __future__ import annotations

from django.contrib import admin

from jedisite.admin.base import ReadOnlyAdmin
from tasks_app import models


@admin.register(models.AttentionItem)
class AttentionItemAdmin(ReadOnlyAdmin):
    list_display = ["key", "kind", "sentence", "since", "rank", "acknowledged_by", "snoozed_until", "ticket", "gone_at"]
    list_filter = ["kind", "tone"]
    search_fields = ["key", "owner"]
    ordering = ["-rank", "id"]
