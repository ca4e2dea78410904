"""Keys under which tasks were submitted, so that a client may send the same submission again without making a second task."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class SubmissionKey(models.Model):
    """One `Idempotency-Key` of one caller, with the answer that its first use got. Kept for 24 hours."""

    id = models.BigAutoField(primary_key=True)
    caller = models.CharField(max_length=150)
    key = models.CharField(max_length=255)
    fingerprint = models.BinaryField(help_text="SHA-256 of the submitted dictionary")
    task_id = models.BigIntegerField(null=True, blank=True, db_column="jeditaskid")
    reply = models.JSONField(null=True, blank=True)
    created = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "submission_keys"
        constraints = [models.UniqueConstraint(fields=["caller", "key"], name="submission_keys_once")]
        indexes = [models.Index(fields=["created"], name="submission_keys_created")]

    def __str__(self) -> str:
        return f"{self.caller} {self.key}"
