"""Admin of what shifters write: for looking. They write on the page of a shift."""

from __future__ import annotations

from django.contrib import admin

from jedisite.admin.base import ReadOnlyAdmin
from tasks_app import models


@admin.register(models.ShiftNote)
class ShiftNoteAdmin(ReadOnlyAdmin):
    list_display = ["at", "by", "text"]
    search_fields = ["by"]
    ordering = ["-id"]


@admin.register(models.Handover)
class HandoverAdmin(ReadOnlyAdmin):
    list_display = ["at", "by", "since", "until", "acknowledged_by", "acknowledged_at"]
    search_fields = ["by"]
    ordering = ["-id"]
