"""What finished jobs of a task said about it, and what was decided from that."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models.functions import Now


class ScoutReport(models.Model):
    """One look at the finished jobs of a task: the verdict on its scouts, or a later look while it runs."""

    OUTCOMES = ("passed", "exhausted", "failed", "measured")

    id = models.BigAutoField(primary_key=True)
    task_id = models.BigIntegerField(db_column="jeditaskid")
    at = models.DateTimeField(db_column="at", db_default=Now())
    scouts = models.BooleanField(db_column="scouts", help_text="a verdict on scouts; else a later measurement")
    outcome = models.CharField(
        max_length=16,
        db_column="outcome",
        choices=[(o, o) for o in OUTCOMES],
        help_text="measured: no verdict was asked",
    )
    code = models.CharField(max_length=40, blank=True, db_column="code", default="")
    detail = models.TextField(db_column="detail", help_text="the verdict as a sentence")
    sample = models.IntegerField(db_column="sample", help_text="finished jobs in the sample")
    finished_jobs = models.BigIntegerField(db_column="finishedjobs", help_text="finished jobs of the task by then")
    presets: Any = models.JSONField(db_column="presets", help_text="the task's numbers before, by column")
    measured: Any = models.JSONField(db_column="measured", help_text="the numbers that were written, by column")

    class Meta:
        db_table = "scout_reports"
        indexes = [models.Index(fields=["task_id", "id"], name="scout_reports_task")]

    def __str__(self) -> str:
        return self.detail
