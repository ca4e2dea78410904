"""Retry rules as people edit them, the errors that are the system's own, and what the rules did to each failed job."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from jedisite.vocabulary.patterns import fault_of
from jedisite.vocabulary.words import sentence
from tasks_app.domain.retry_rules import Action, RetryParameters, RetryRuleError
from tasks_app.models.fields import text

SOURCES = ("pilot", "exe", "trans", "ddm", "brokerage", "jobdispatcher", "taskbuffer", "sup")
CLASSES = ("system", "user", "site", "unknown")


class ErrorMatch(models.Model):
    """The error that a row is about: who reported it, its code, and how its text begins."""

    error_source = models.CharField(
        max_length=16,
        db_column="errorsource",
        choices=[(s, s) for s in SOURCES],
        help_text="the component that reported the error; trans is the exit code of the transform",
    )
    error_code = models.IntegerField(db_column="errorcode")
    pattern = text(
        "errordiag",
        512,
        help_text="regular expression for the beginning of the error's text; empty: any text",
    )
    active = models.BooleanField(db_column="active", default=True, help_text="if not ticked, the effect is only logged")
    description = models.TextField(blank=True, default="", db_column="description")

    class Meta:
        abstract = True

    @property
    def faults(self) -> dict[str, str]:
        """By field, why the row cannot be applied, as a sentence. Rows from before a rule changed may have some."""
        found = {}
        if fault := fault_of(self.pattern or ""):
            found["pattern"] = sentence(fault)
        if self.error_code == 0:
            found["error_code"] = "The code 0 is no error, so no job has it."
        elif self.error_source == "pilot" and self.error_code is not None and self.error_code < 0:
            found["error_code"] = "Codes of pilots are compared without their sign: give it without one."
        return found

    def clean(self) -> None:
        """Raise ValidationError, under the name of the field, for what could not be applied."""
        self.pattern = self.pattern or None
        if faults := self.faults:
            raise ValidationError(faults)


class RetryRule(ErrorMatch):
    """What happens to the inputs and the task of a job that failed with an error. Empty conditions are none."""

    action = models.CharField(max_length=32, db_column="action", choices=[(a.value, a.value) for a in Action])
    parameters = text(
        "parameters",
        256,
        help_text="limit_retry: maxAttempt=2; reduce_input: steps=2/4/7&excluded_rules=NE,NF; else empty",
    )
    architecture = text("architecture", 256, help_text="only jobs with this platform")
    release = text("release", 64, help_text="only jobs with this release of the software")
    work_queue = models.ForeignKey(
        "brokerage_app.WorkQueue", models.CASCADE, null=True, blank=True, db_column="workqueue_id"
    )
    expires = models.DateTimeField(
        null=True, blank=True, db_column="expiration_date", help_text="the rule has no effect from then on"
    )

    class Meta:
        db_table = "retry_rules"
        constraints = [
            models.CheckConstraint(condition=Q(action__in=[a.value for a in Action]), name="retry_rules_action_known"),
            models.CheckConstraint(condition=Q(error_source__in=SOURCES), name="retry_rules_source_known"),
        ]
        indexes = [models.Index(fields=["error_source", "error_code"], name="retry_rules_error")]

    def __str__(self) -> str:
        return f"{self.error_source} {self.error_code}: {self.action}"

    @property
    def faults(self) -> dict[str, str]:
        found = super().faults
        try:
            read = RetryParameters.parse(self.parameters)
        except RetryRuleError as exc:
            return {**found, "parameters": str(exc)}
        if self.action == Action.LIMIT_RETRY and read.max_attempt is None:
            found["parameters"] = "limit_retry needs the number of attempts, as in maxAttempt=2."
        return found

    def clean(self) -> None:
        for name in ("parameters", "architecture", "release"):
            setattr(self, name, getattr(self, name) or None)
        super().clean()


class ErrorClass(ErrorMatch):
    """Whose fault an error is. A failure by a `system` error does not count against a limit on failures."""

    name = models.CharField(max_length=16, db_column="errorclass", choices=[(c, c) for c in CLASSES], default="system")

    class Meta:
        db_table = "error_classes"
        verbose_name_plural = "error classes"
        constraints = [
            models.CheckConstraint(condition=Q(error_source__in=SOURCES), name="error_classes_source_known"),
        ]
        indexes = [models.Index(fields=["error_source", "error_code"], name="error_classes_error")]

    def __str__(self) -> str:
        return f"{self.error_source} {self.error_code}: {self.name}"


class RetryNote(models.Model):
    """What a rule did, or would have done, after a job had failed, with the reason for people to read."""

    id = models.BigAutoField(primary_key=True)
    job_id = models.BigIntegerField(db_column="pandaid")
    task_id = models.BigIntegerField(db_column="jeditaskid")
    at = models.DateTimeField(db_column="at", db_default=Now())
    code = models.CharField(max_length=40, db_column="code")
    detail = models.TextField(db_column="detail")
    applied = models.BooleanField(
        db_column="applied", default=True, help_text="false: the rule was inactive and its effect only logged"
    )

    class Meta:
        db_table = "job_retry_notes"
        indexes = [
            models.Index(fields=["job_id"], name="job_retry_notes_job"),
            models.Index(fields=["task_id", "id"], name="job_retry_notes_task"),
        ]

    def __str__(self) -> str:
        return self.detail


class TaskChangeDue(models.Model):
    """A change of a task's numbers that a failed job asked for.

    Written with the booking of the job, which holds locks on jobs and must not wait for the task's row; the adder
    carries it out right after.
    """

    id = models.BigAutoField(primary_key=True)
    task_id = models.BigIntegerField(db_column="jeditaskid")
    change: Any = models.JSONField(db_column="change", help_text="ramcount, cputime, cputimeunit, measure_again, rule")
    reason = models.TextField(db_column="reason")
    at = models.DateTimeField(db_column="at", db_default=Now())

    class Meta:
        db_table = "task_changes_due"
        verbose_name_plural = "task changes due"

    def __str__(self) -> str:
        return self.reason
