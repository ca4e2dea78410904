"""What needs somebody: found by the agents of attention, gone when its cause is."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now


class AttentionItem(models.Model):
    """One thing that somebody should look at. What agents find is theirs; what people did about it is below."""

    TONES = ("warn", "bad")

    id = models.BigAutoField(primary_key=True)
    key = models.CharField(max_length=200, unique=True, help_text="kind and subject: the same cause has the same key")
    kind = models.CharField(max_length=32)
    tone = models.CharField(max_length=8, choices=[(t, t) for t in TONES])
    sentence = models.CharField(max_length=500)
    since = models.DateTimeField()
    size = models.BigIntegerField(default=0, help_text="how much is concerned, in `unit`")
    unit = models.CharField(max_length=32, blank=True, default="")
    owner = models.CharField(max_length=128, blank=True, default="", help_text="a user, a site or a share")
    path = models.CharField(max_length=500, help_text="the page that says more")
    rank = models.FloatField(default=0, help_text="higher is more urgent")
    first_seen = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(db_default=Now())
    gone_at = models.DateTimeField(null=True, blank=True, help_text="when its cause ended; empty: still open")
    acknowledged_by = models.CharField(max_length=128, blank=True, default="")
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    snoozed_until = models.DateTimeField(null=True, blank=True)
    ticket = models.CharField(max_length=200, blank=True, default="")
    note = models.CharField(max_length=1000, blank=True, default="", help_text="reason of the last action")

    class Meta:
        db_table = "attention_items"
        constraints = [models.CheckConstraint(condition=Q(tone__in=("warn", "bad")), name="attention_items_tone")]
        indexes = [
            models.Index(F("rank").desc(), "id", condition=Q(gone_at__isnull=True), name="attention_items_open"),
            models.Index(fields=["gone_at"], condition=Q(gone_at__isnull=False), name="attention_items_gone"),
        ]

    def __str__(self) -> str:
        return self.key

    @property
    def unit_said(self) -> str:
        """The unit as it stands behind the size: one job, two jobs."""
        return self.unit.removesuffix("s") if self.size == 1 else self.unit
