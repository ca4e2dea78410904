"""What happened: states of tasks and jobs with who and why, and which job retried which. Logs are partitioned by month."""

from __future__ import annotations

from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models.functions import Now

from tasks_app.models.fields import big, small, text


class TaskStatusLog(models.Model):
    id = models.BigAutoField(primary_key=True)
    task_id = models.BigIntegerField(db_column="jeditaskid")
    old_status = text("oldstatus", 64)
    status = models.CharField(max_length=64, db_column="status")
    at = models.DateTimeField(db_column="modificationtime", db_default=Now())
    attempt = small("attemptnr")
    by = models.CharField(max_length=128, db_column="actor", help_text="an agent's or a user's name")
    reason = models.TextField(blank=True, db_column="reason", db_default="")
    host = text("modificationhost", 128)

    class Meta:
        db_table = "tasks_statuslog"
        indexes = [
            models.Index(fields=["task_id", "id"], name="tasks_statuslog_task"),
            # For the pages of a shift, as below.
            BrinIndex(fields=["at"], name="tasks_statuslog_time", pages_per_range=32, autosummarize=True),
        ]


class JobStatusLog(models.Model):
    id = models.BigAutoField(primary_key=True)
    job_id = models.BigIntegerField(db_column="pandaid")
    status = models.CharField(max_length=15, db_column="jobstatus")
    at = models.DateTimeField(db_column="modificationtime", db_default=Now())
    site = text("computingsite", 128)
    by = models.CharField(max_length=128, db_column="actor")
    reason = models.TextField(blank=True, db_column="reason", db_default="")

    class Meta:
        db_table = "jobs_statuslog"
        indexes = [
            models.Index(fields=["job_id"], name="jobs_statuslog_job"),
            # Rows are only added, in the order of time: an index of a few pages finds those of the last hours.
            BrinIndex(fields=["at"], name="jobs_statuslog_time", pages_per_range=32, autosummarize=True),
        ]


class JobRetryHistory(models.Model):
    id = models.BigAutoField(primary_key=True)
    task_id = models.BigIntegerField(db_column="jeditaskid")
    old_job_id = models.BigIntegerField(db_column="oldpandaid")
    new_job_id = models.BigIntegerField(db_column="newpandaid")
    at = models.DateTimeField(db_column="ins_utc_tstamp", db_default=Now())
    relation_type = text("relationtype", 32)
    origin_job_id = big("originpandaid")

    class Meta:
        db_table = "jedi_job_retry_history"
        verbose_name_plural = "job retry history"
        indexes = [
            models.Index(fields=["old_job_id"], name="job_retry_history_old"),
            models.Index(fields=["new_job_id"], name="job_retry_history_new"),
            models.Index(fields=["task_id"], name="job_retry_history_task"),
        ]


class UsualDuration(models.Model):
    """How long tasks of one kind usually stay in a state: from the stays of the last 30 days that have ended.

    An agent fills it; pages only read it. Empty texts stand for what a task has not.
    """

    id = models.BigAutoField(primary_key=True)
    task_type = models.CharField(max_length=64, blank=True)
    label = models.CharField(max_length=20, blank=True)
    processing_type = models.CharField(max_length=64, blank=True)
    status = models.CharField(max_length=64)
    stays = models.IntegerField(help_text="stays in the state that were measured")
    median_s = models.FloatField()
    low_s = models.FloatField(help_text="seconds; a tenth of the stays were shorter")
    high_s = models.FloatField(help_text="seconds; a tenth of the stays were longer")
    updated = models.DateTimeField()

    class Meta:
        db_table = "usual_durations"
        constraints = [
            models.UniqueConstraint(
                fields=["task_type", "label", "processing_type", "status"], name="usual_durations_kind"
            )
        ]

    def __str__(self) -> str:
        return f"{self.status} of {'/'.join(filter(None, (self.task_type, self.label, self.processing_type)))}"
