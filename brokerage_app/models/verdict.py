"""What the brokers decided, kept so that every wait can be explained."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class VerdictRecord(models.Model):
    """The latest decisions for a task: the chosen sites with their weights, and of every other site why not."""

    id = models.BigAutoField(primary_key=True)
    task_id = models.BigIntegerField(db_column="jeditaskid")
    at = models.DateTimeField(db_default=Now())
    kind = models.CharField(max_length=20, default="job", help_text="job or task brokerage")
    chosen = models.JSONField(help_text="[[site, weight], ...], best first")
    skipped = models.JSONField(help_text="[[site, code, sentence], ...]")
    sentence = models.TextField(blank=True, default="")

    class Meta:
        db_table = "verdicts"
        indexes = [models.Index(fields=["task_id", "-id"], name="verdicts_task")]

    def __str__(self) -> str:
        return self.sentence
