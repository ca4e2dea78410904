"""Decisions of the brokers, stored so that every wait can be explained, and repeated with changes."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from jedisite.vocabulary.words import plural


class GridSnapshot(models.Model):
    """The grid as a pass of an agent saw it, packed (`brokerage_app.vocabulary.stored`). One a minute at most is kept."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=Now())
    sites = models.IntegerField()
    body = models.BinaryField()

    class Meta:
        db_table = "grid_snapshots"
        indexes = [models.Index(fields=["at"], name="grid_snapshots_at")]

    def __str__(self) -> str:
        return f"{plural(self.sites, 'site')} at {self.at:%Y-%m-%d %H:%M:%S}"


class VerdictRecord(models.Model):
    """One outcome of brokerage for a task. The same outcome again only raises `repeats`.

    The latest three of each kind have every site with its numbers; of older ones `skipped` is empty, and `reasons` says
    which sites were skipped by which code.
    """

    id = models.BigAutoField(primary_key=True)
    task_id = models.BigIntegerField(db_column="jeditaskid")
    first_at = models.DateTimeField(db_default=Now())
    at = models.DateTimeField(db_default=Now(), help_text="when it was decided last")
    repeats = models.IntegerField(default=1)
    counted = models.IntegerField(default=0, help_text="repeats that are in the counts of the day already")
    kind = models.CharField(max_length=20, default="job", help_text="job or task brokerage")
    broker = models.CharField(max_length=20, default="generic")
    share = models.CharField(max_length=32, blank=True, default="")
    code = models.CharField(
        max_length=60, blank=True, default="", help_text="what blocks; empty when a site was chosen"
    )
    chosen = models.JSONField(help_text="[[site, weight, {factor: value}], ...], best first")
    skipped = models.JSONField(help_text="[[site, code, sentence, [numbers]], ...]; empty for older verdicts")
    reasons = models.JSONField(default=dict, help_text="{code: [site, ...]}")
    stopped = models.JSONField(null=True, blank=True, help_text="[code, sentence] of what stopped it before any site")
    sentence = models.TextField(blank=True, default="")
    needs = models.JSONField(null=True, blank=True, help_text="the requirements")
    facts = models.JSONField(null=True, blank=True, help_text="other inputs of the broker")
    snapshot = models.ForeignKey(
        GridSnapshot, models.SET_NULL, null=True, blank=True, db_index=False, help_text="the grid at about that time"
    )

    class Meta:
        db_table = "verdicts"
        indexes = [
            models.Index(fields=["task_id", "-id"], name="verdicts_task"),
            models.Index(fields=["at"], name="verdicts_at"),
            models.Index(fields=["id"], condition=models.Q(repeats__gt=models.F("counted")), name="verdicts_uncounted"),
        ]

    def __str__(self) -> str:
        return self.sentence


class VerdictCount(models.Model):
    """How often a site was chosen (code "") or skipped by a code, on one day, for the tasks of one share.

    Decisions that no site was asked in stand under site "".
    """

    id = models.BigAutoField(primary_key=True)
    day = models.DateField()
    kind = models.CharField(max_length=20)
    share = models.CharField(max_length=32)
    site = models.CharField(max_length=128)
    code = models.CharField(max_length=60)
    decisions = models.BigIntegerField()

    class Meta:
        db_table = "verdict_counts"
        constraints = [
            models.UniqueConstraint(fields=["site", "day", "kind", "share", "code"], name="verdict_counts_key")
        ]
        indexes = [
            models.Index(fields=["share", "day"], name="verdict_counts_share"),
            models.Index(fields=["code", "day"], name="verdict_counts_code"),
            models.Index(fields=["day"], name="verdict_counts_day"),
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.site} {self.code or 'chosen'}: {self.decisions}"


class VerdictHour(models.Model):
    """The same as `VerdictCount` by the hour, for the last days only."""

    id = models.BigAutoField(primary_key=True)
    hour = models.DateTimeField()
    kind = models.CharField(max_length=20)
    share = models.CharField(max_length=32)
    site = models.CharField(max_length=128)
    code = models.CharField(max_length=60)
    decisions = models.BigIntegerField()

    class Meta:
        db_table = "verdict_hours"
        constraints = [
            models.UniqueConstraint(fields=["hour", "site", "kind", "share", "code"], name="verdict_hours_key")
        ]

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H}h {self.site} {self.code or 'chosen'}: {self.decisions}"


class VerdictMinute(models.Model):
    """How many decisions of one minute chose a site (code ""), or were blocked by a code, for the tasks of one share."""

    id = models.BigAutoField(primary_key=True)
    minute = models.DateTimeField()
    kind = models.CharField(max_length=20)
    share = models.CharField(max_length=32)
    code = models.CharField(max_length=60)
    decisions = models.BigIntegerField()

    class Meta:
        db_table = "verdict_minutes"
        constraints = [models.UniqueConstraint(fields=["minute", "kind", "share", "code"], name="verdict_minutes_key")]

    def __str__(self) -> str:
        return f"{self.minute:%Y-%m-%d %H:%M} {self.code or 'chosen'}: {self.decisions}"
