"""Who starts pilots: harvester instances, their workers (batch jobs with a pilot in them), and what is told between us.

Tables and columns are PanDA's. An instance numbers its workers itself; a number is never used twice.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tasks_app.models.fields import big, moment, number, text

INSTANCE_LENGTH = 50
COMMAND_STATES = ("new", "retrieved", "acknowledged")
WORKER_ENDED = ("finished", "failed", "cancelled", "missed")
WORKER_OPEN = ("pending", "submitted", "ready", "idle", "running")


class Harvester(models.Model):
    """An instance that starts pilots. Only its owner, who was the first to report for it, speaks for it."""

    id = models.CharField(max_length=INSTANCE_LENGTH, primary_key=True, db_column="harvester_id")
    owner = models.CharField(max_length=150)
    host = text("hostname", 100)
    started = moment("starttime")
    last_update = models.DateTimeField(db_column="lastupdate", db_default=Now())
    version = text("sw_version", 50)
    commit = text("commit_stamp", 100)
    highest_worker = models.BigIntegerField(
        db_column="max_workerid", db_default=0, help_text="highest number that a worker of it has had"
    )

    class Meta:
        db_table = "harvester_instances"

    def __str__(self) -> str:
        return self.id


class Worker(models.Model):
    """A batch job that an instance submitted; in it runs a pilot."""

    id = models.BigAutoField(primary_key=True)
    harvester = models.CharField(max_length=INSTANCE_LENGTH, db_column="harvesterid")
    worker_id = models.BigIntegerField(db_column="workerid")
    batch_id = text("batchid", 80)
    queue_name = text("queuename", 128, help_text="queue of the batch system")
    status = models.CharField(max_length=80)
    site = models.CharField(max_length=128, db_column="computingsite")
    cores = number("ncore")
    node = text("nodeid", 200)
    submitted = moment("submittime")
    started = moment("starttime")
    ended = moment("endtime")
    job_type = text("jobtype", 20)
    resource_type = text("resourcetype", 56)
    native_exit_code = number("nativeexitcode")
    native_status = text("nativestatus", 80)
    message = text("diagmessage", 500)
    jobs = number("njobs", help_text="jobs that it may run, as reported by the instance")
    computing_element = text("computingelement", 128)
    submission_host = text("submissionhost", 128)
    harvester_host = text("harvesterhost", 128)
    error_code = number("errorcode")
    min_ram_mb = big("minramcount")
    pilot_status = text("pilotstatus", 80)
    pilot_started = moment("pilotstarttime")
    pilot_ended = moment("pilotendtime")
    last_update = models.DateTimeField(db_column="lastupdate", db_default=Now())

    class Meta:
        db_table = "harvester_workers"
        constraints = [
            models.UniqueConstraint(fields=["harvester", "worker_id"], name="harvester_workers_once"),
        ]
        indexes = [
            models.Index(fields=["site", "id"], name="harvester_workers_site"),
            models.Index(fields=["harvester", "id"], name="harvester_workers_harvester"),
            models.Index(
                fields=["site", "status", "id"], condition=Q(status__in=WORKER_OPEN), name="harvester_workers_open"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.harvester} {self.worker_id}"


class WorkerJob(models.Model):
    """A job that was handed to a worker."""

    id = models.BigAutoField(primary_key=True)
    harvester = models.CharField(max_length=INSTANCE_LENGTH, db_column="harvesterid")
    worker_id = models.BigIntegerField(db_column="workerid")
    job_id = models.BigIntegerField(db_column="pandaid")
    at = models.DateTimeField(db_column="lastupdate", db_default=Now())

    class Meta:
        db_table = "harvester_rel_jobs_workers"
        verbose_name = "job of worker"
        verbose_name_plural = "jobs of workers"
        constraints = [
            models.UniqueConstraint(
                fields=["harvester", "worker_id", "job_id"], name="harvester_rel_jobs_workers_once"
            ),
        ]
        indexes = [models.Index(fields=["job_id"], name="harvester_rel_jobs_workers_job")]

    def __str__(self) -> str:
        return f"{self.harvester} {self.worker_id}: {self.job_id}"


class HarvesterCommand(models.Model):
    """What an instance is to do. It fetches its commands, and acknowledges those that want it."""

    id = models.BigAutoField(primary_key=True, db_column="command_id")
    harvester = models.CharField(max_length=INSTANCE_LENGTH, db_column="harvester_id")
    command = models.CharField(max_length=200)
    params = models.JSONField(default=dict)
    ack_requested = models.BooleanField(default=True)
    status = models.CharField(max_length=20, default="new", choices=[(s, s) for s in COMMAND_STATES])
    by = models.CharField(max_length=150, db_column="actor", default="")
    created = models.DateTimeField(db_column="creation_date", db_default=Now())
    changed = models.DateTimeField(db_column="status_date", db_default=Now())

    class Meta:
        db_table = "harvester_commands"
        constraints = [
            models.CheckConstraint(condition=Q(status__in=COMMAND_STATES), name="harvester_commands_status_known"),
        ]
        indexes = [
            models.Index(fields=["harvester", "id"], condition=Q(status="new"), name="harvester_commands_new"),
        ]

    def __str__(self) -> str:
        return f"{self.command} for {self.harvester}"


class HarvesterDialog(models.Model):
    """A line of an instance's log that people should see."""

    id = models.BigAutoField(primary_key=True)
    harvester = models.CharField(max_length=INSTANCE_LENGTH, db_column="harvester_id")
    number = models.BigIntegerField(db_column="diagid", help_text="number that the instance has given")
    module = text("modulename", 100)
    subject = text("identifier", 100)
    at = models.DateTimeField(db_column="creationtime", db_default=Now())
    level = text("messagelevel", 10)
    message = text("diagmessage", 500)

    class Meta:
        db_table = "harvester_dialogs"
        constraints = [models.UniqueConstraint(fields=["harvester", "number"], name="harvester_dialogs_once")]

    def __str__(self) -> str:
        return f"{self.harvester} {self.number}"


class HarvesterMetrics(models.Model):
    """Load of a host of an instance at one moment."""

    id = models.BigAutoField(primary_key=True)
    harvester = models.CharField(max_length=INSTANCE_LENGTH, db_column="harvester_id")
    host = models.CharField(max_length=100, db_column="harvester_host")
    at = models.DateTimeField(db_column="creation_time")
    metrics = models.JSONField()

    class Meta:
        db_table = "harvester_metrics"
        verbose_name_plural = "harvester metrics"
        constraints = [models.UniqueConstraint(fields=["harvester", "host", "at"], name="harvester_metrics_once")]

    def __str__(self) -> str:
        return f"{self.harvester} {self.host}"
