"""What shifters write: notes, and hand-overs. Rows are added and acknowledged, never changed otherwise."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

LONGEST_NOTE, LONGEST_SUMMARY = 2_000, 30_000


class ShiftNote(models.Model):
    """A remark of a shifter, plain text in lines."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=Now())
    by = models.CharField(max_length=128)
    text = models.CharField(max_length=LONGEST_NOTE)

    class Meta:
        db_table = "shift_notes"
        indexes = [models.Index(fields=["at"], name="shift_notes_at")]

    def __str__(self) -> str:
        return f"{self.by} {self.at:%Y-%m-%d %H:%M}"


class Handover(models.Model):
    """The summary with which a shifter hands over, from `since` to `until`, and who has acknowledged it."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=Now())
    by = models.CharField(max_length=128)
    since = models.DateTimeField(help_text="start of the shift")
    until = models.DateTimeField(help_text="end of the shift")
    summary = models.CharField(max_length=LONGEST_SUMMARY)
    acknowledged_by = models.CharField(max_length=128, blank=True, default="")
    acknowledged_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "shift_handovers"
        verbose_name = "hand-over"
        constraints = [
            models.CheckConstraint(condition=Q(since__lt=F("until")), name="shift_handovers_window"),
            models.CheckConstraint(
                condition=Q(acknowledged_at__isnull=True, acknowledged_by="")
                | Q(acknowledged_at__isnull=False) & ~Q(acknowledged_by=""),
                name="shift_handovers_acknowledged",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.by} {self.at:%Y-%m-%d %H:%M}"
