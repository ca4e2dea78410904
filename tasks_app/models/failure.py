"""Failed jobs in a form that can be counted: what failed, where, whose, and what it cost.

A trigger of the table of jobs notes each job that finishes or fails in `job_ends_due`, whatever made it do so; the agent
`failures` books what is noted: one narrow row a failed job, and how many jobs ended in each hour.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from tasks_app.domain.fingerprints import (
    CATEGORIES,
    CAUSES,
    LONGEST_COMPONENT,
    LONGEST_EXAMPLE,
    LONGEST_KEY,
    LONGEST_TEXT,
)
from tasks_app.domain.job_errors import LONGEST_CODE

DIMENSIONS = ("all", "site", "node", "task", "user", "activity", "version")
"""By what ended jobs are counted; `all` has one row an hour, with an empty key."""


class ErrorFingerprint(models.Model):
    """Failures that are the same once numbers, names and paths are taken out of what was said; what people know of them."""

    id = models.AutoField(primary_key=True)
    component = models.CharField(
        max_length=LONGEST_COMPONENT, help_text="the component that reported the error; empty: none"
    )
    code = models.CharField(max_length=LONGEST_CODE)
    text = models.CharField(
        max_length=LONGEST_TEXT, help_text="the message, with parts that differ from job to job masked"
    )
    example = models.CharField(max_length=LONGEST_EXAMPLE, help_text="the first message, word for word")
    category = models.CharField(max_length=16, choices=[(c, c) for c in CATEGORIES])
    first_seen = models.DateTimeField()
    last_seen = models.DateTimeField()
    ticket = models.CharField(
        max_length=200, blank=True, default="", help_text="address or number of the ticket about it"
    )
    known_until = models.DateTimeField(null=True, blank=True, help_text="until when the error is known and expected")
    advice = models.CharField(max_length=1000, blank=True, default="", help_text="what to do about it")
    cause = models.CharField(
        max_length=8,
        choices=list(CAUSES.items()),
        blank=True,
        db_default="",
        help_text="the cause that somebody has named; empty: what the evidence says",
    )
    classified_by = models.CharField(max_length=128, blank=True, default="")
    classified_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "error_fingerprints"
        constraints = [
            models.UniqueConstraint(fields=["component", "code", "text"], name="error_fingerprints_once"),
            models.CheckConstraint(condition=Q(category__in=CATEGORIES), name="error_fingerprints_category_known"),
            models.CheckConstraint(condition=Q(cause__in=["", *CAUSES]), name="error_fingerprints_cause_known"),
        ]

    def __str__(self) -> str:
        return f"{self.key} {self.text}".strip()

    @property
    def key(self) -> str:
        return f"{self.component}:{self.code}" if self.component else "no error"


class JobFailure(models.Model):
    """One failed job. Texts are empty where nothing is known."""

    id = models.BigIntegerField(primary_key=True, db_column="pandaid")
    ended = models.DateTimeField(help_text="when the failure was recorded")
    fingerprint = models.ForeignKey(ErrorFingerprint, models.PROTECT, db_index=False)
    task_id = models.BigIntegerField(null=True, blank=True, db_column="jeditaskid")
    attempt = models.SmallIntegerField(db_column="attemptnr")
    site = models.CharField(max_length=LONGEST_KEY, db_column="computingsite")
    node = models.CharField(max_length=LONGEST_KEY, help_text="the host, without the slot on it")
    user = models.CharField(max_length=LONGEST_KEY, db_column="produsername")
    activity = models.CharField(max_length=32, db_column="gshare")
    pilot_version = models.CharField(max_length=32)
    walltime_s = models.IntegerField()
    wasted_core_s = models.BigIntegerField(help_text="walltime times cores, in core seconds")

    class Meta:
        db_table = "job_failures"
        indexes = [
            models.Index(fields=["ended"], name="job_failures_ended"),
            models.Index(fields=["fingerprint", "ended"], name="job_failures_fingerprint"),
            models.Index(fields=["task_id", "ended"], name="job_failures_task"),
            models.Index(fields=["site", "ended"], name="job_failures_site"),
        ]

    def __str__(self) -> str:
        return str(self.id)


class JobEndDue(models.Model):
    """A job that has finished or failed and is not counted yet. Written by a trigger."""

    id = models.BigIntegerField(primary_key=True, db_column="pandaid")

    class Meta:
        db_table = "job_ends_due"
        verbose_name = "job end due"
        verbose_name_plural = "job ends due"

    def __str__(self) -> str:
        return str(self.id)


class JobEnds(models.Model):
    """How many jobs finished and failed in one hour, of one site, node, task, user, activity or pilot version."""

    id = models.BigAutoField(primary_key=True)
    hour = models.DateTimeField(help_text="start of the hour")
    dimension = models.CharField(max_length=8, choices=[(d, d) for d in DIMENSIONS])
    key = models.CharField(max_length=LONGEST_KEY, blank=True)
    finished = models.IntegerField(default=0)
    failed = models.IntegerField(default=0)

    class Meta:
        db_table = "job_ends"
        verbose_name_plural = "job ends"
        constraints = [
            models.UniqueConstraint(fields=["dimension", "hour", "key"], name="job_ends_once"),
            models.CheckConstraint(condition=Q(dimension__in=DIMENSIONS), name="job_ends_dimension_known"),
        ]

    def __str__(self) -> str:
        return f"{self.dimension} {self.key} {self.hour:%Y-%m-%d %H}"


class JobNode(models.Model):
    """A host on which jobs of a site have ended, for those who search for it by name."""

    id = models.BigAutoField(primary_key=True)
    node = models.CharField(max_length=LONGEST_KEY, help_text="the host, without the slot on it")
    site = models.CharField(max_length=LONGEST_KEY, db_column="computingsite")
    last_seen = models.DateTimeField(help_text="hour in which a job ended there last")

    class Meta:
        db_table = "job_nodes"
        constraints = [models.UniqueConstraint(fields=["node", "site"], name="job_nodes_once")]

    def __str__(self) -> str:
        return f"{self.node} at {self.site}"
