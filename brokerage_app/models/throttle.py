"""The last decision of the throttle, stored so that every wait can be explained."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class ThrottleRecord(models.Model):
    """The latest decision for one work queue or share, label and resource type."""

    id = models.BigAutoField(primary_key=True)
    vo = models.CharField(max_length=32, blank=True, default="")
    label = models.CharField(max_length=20, blank=True, default="", help_text="prodSourceLabel of the tasks")
    queue = models.CharField(max_length=64, help_text="share:NAME or queue:ID of the work queue")
    resource_type = models.CharField(max_length=56, blank=True, default="")
    at = models.DateTimeField(
        db_default=Now(), help_text="when it was written, at most a minute before it was true last"
    )
    since = models.DateTimeField(db_default=Now(), help_text="since when the same rule decides")
    passed = models.BooleanField(help_text="jobs may be made; merge jobs always are")
    max_jobs = models.IntegerField(null=True, blank=True, help_text="jobs that one pass may make; empty is any number")
    min_priority = models.IntegerField(null=True, blank=True, help_text="only tasks of this priority or above")
    lack_of_jobs = models.BooleanField(default=False)
    code = models.CharField(max_length=40, blank=True, default="", help_text="the rule that stops jobs, if one does")
    detail = models.TextField(blank=True, default="")
    advice = models.TextField(blank=True, default="", help_text="which setting stops jobs, and what would be enough")
    lines = models.JSONField(default=list, help_text="the decision with every rule and its numbers, as sentences")

    class Meta:
        db_table = "throttle_decisions"
        constraints = [
            models.UniqueConstraint(fields=["vo", "label", "queue", "resource_type"], name="throttle_decisions_of")
        ]

    def __str__(self) -> str:
        return f"{self.queue} {self.resource_type} {self.label}"

    def refuses(self, priority: int) -> bool:
        """Whether tasks of a priority get no jobs."""
        return not self.passed or (self.min_priority is not None and priority < self.min_priority)
