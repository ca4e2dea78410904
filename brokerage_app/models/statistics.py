"""Numbers that brokers read: jobs, users, pilots, workers, worker nodes. Agents write them, by sets."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from jedisite.vocabulary.words import plural


class JobCount(models.Model):
    """Open jobs of a queue that agree in share, work queue, resource type, label and state. "" and 0 stand for none."""

    id = models.BigAutoField(primary_key=True)
    site = models.CharField(max_length=128, db_column="computingsite")
    share = models.CharField(max_length=32, db_column="gshare")
    work_queue_id = models.IntegerField(db_column="workqueue_id")
    resource_type = models.CharField(max_length=56)
    label = models.CharField(max_length=20, db_column="prodsourcelabel")
    status = models.CharField(max_length=15, db_column="jobstatus")
    jobs = models.IntegerField(db_column="njobs")
    cores = models.IntegerField(db_column="ncores")

    class Meta:
        db_table = "job_counts"
        constraints = [
            models.UniqueConstraint(
                fields=["site", "share", "work_queue_id", "resource_type", "label", "status"], name="job_counts_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.jobs} {self.status} at {self.site}"


class UserCount(models.Model):
    """Jobs of a user at a queue, of one share; merge jobs are not counted."""

    id = models.BigAutoField(primary_key=True)
    site = models.CharField(max_length=128, db_column="computingsite")
    share = models.CharField(max_length=32, db_column="gshare")
    user = models.CharField(max_length=128, db_column="produsername")
    queued = models.IntegerField(db_column="nqueue")
    running = models.IntegerField(db_column="nrunning")

    class Meta:
        db_table = "user_counts"
        constraints = [models.UniqueConstraint(fields=["site", "share", "user"], name="user_counts_once")]

    def __str__(self) -> str:
        return f"{self.user} at {self.site}"


class QueueActivity(models.Model):
    """What a queue has done lately."""

    site = models.CharField(max_length=128, primary_key=True, db_column="computingsite")
    last_start = models.DateTimeField(null=True, blank=True, db_column="laststart")
    started_per_h = models.FloatField(
        default=0, help_text="jobs per hour that got a slot, over the 6 hours until 5 minutes ago"
    )
    disk_io_kbps = models.FloatField(null=True, blank=True, help_text="kB/s per core, mean over running jobs")
    transferring_to = models.JSONField(default=dict, help_text="transferring jobs by nucleus")
    pilots_3h = models.IntegerField(
        null=True, blank=True, help_text="calls of pilots; empty: not counted for 3 hours yet"
    )
    batch_jobs = models.IntegerField(default=0, help_text="workers running or queued in the batch system")
    silent_since = models.DateTimeField(
        null=True,
        blank=True,
        help_text="since when jobs wait and no pilot asks for one, while none runs and no batch job is on its way",
    )
    quiet_since = models.DateTimeField(
        null=True,
        blank=True,
        help_text="since when no pilot asks for a job, waiting or not, while none runs and no harvester reports on the queue",
    )
    updated = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "queue_activity"
        verbose_name_plural = "queue activity"

    def __str__(self) -> str:
        return self.site


class PilotCalls(models.Model):
    """Calls of pilots of a queue in one hour."""

    id = models.BigAutoField(primary_key=True)
    site = models.CharField(max_length=128)
    hour = models.DateTimeField()
    get_job = models.IntegerField(db_column="getjob", default=0)
    update_job = models.IntegerField(db_column="updatejob", default=0)
    last_get_job = models.DateTimeField(
        null=True, blank=True, db_column="lastgetjob", help_text="when a pilot asked for a job last in this hour"
    )

    class Meta:
        db_table = "sitedata"
        verbose_name_plural = "pilot calls"
        constraints = [models.UniqueConstraint(fields=["hour", "site"], name="sitedata_once")]
        indexes = [models.Index(fields=["site", "-hour"], name="sitedata_of_site")]

    def __str__(self) -> str:
        return f"{self.site} {self.hour:%Y-%m-%d %H}"


class HarvesterSlots(models.Model):
    """How many slots a queue is said to have. Rows that are expired or negative do not count."""

    id = models.BigAutoField(primary_key=True)
    queue = models.CharField(max_length=128, db_column="pandaqueuename")
    share = models.CharField(max_length=32, null=True, blank=True, db_column="gshare", help_text="empty is any")
    resource_type = models.CharField(
        max_length=56, null=True, blank=True, db_column="resourcetype", help_text="empty is any"
    )
    slots = models.IntegerField(db_column="numslots", help_text="below zero: the row does not count")
    modified = models.DateTimeField(auto_now=True, db_column="modificationtime")
    expires = models.DateTimeField(null=True, blank=True, db_column="expirationtime", help_text="empty is never")

    class Meta:
        db_table = "harvester_slots"
        verbose_name_plural = "harvester slots"
        constraints = [
            models.UniqueConstraint(
                fields=["queue", "share", "resource_type"], name="harvester_slots_once", nulls_distinct=False
            ),
        ]

    def __str__(self) -> str:
        return f"{plural(self.slots, 'slot')} of {self.queue}"


class WorkerStats(models.Model):
    """Workers of a harvester instance by queue, resource type and state."""

    id = models.BigAutoField(primary_key=True)
    harvester = models.CharField(max_length=50, db_column="harvester_id")
    queue = models.CharField(max_length=128, db_column="computingsite")
    resource_type = models.CharField(max_length=56, db_column="resourcetype")
    job_type = models.CharField(max_length=20, db_column="jobtype", default="")
    status = models.CharField(max_length=80)
    workers = models.IntegerField(db_column="n_workers")
    at = models.DateTimeField(db_column="lastupdate", db_default=Now())

    class Meta:
        db_table = "harvester_worker_stats"
        verbose_name_plural = "worker stats"
        constraints = [
            models.UniqueConstraint(
                fields=["harvester", "queue", "resource_type", "job_type", "status"], name="harvester_worker_stats_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.workers} {self.status} at {self.queue}"


class WorkerNodeGpus(models.Model):
    """GPUs of one kind that worker nodes of a queue have been seen with."""

    id = models.BigAutoField(primary_key=True)
    queue = models.CharField(max_length=128, db_column="panda_queue")
    vendor = models.CharField(max_length=64)
    model = models.CharField(max_length=128)
    memory_mb = models.IntegerField(null=True, blank=True, db_column="vram")
    architecture = models.CharField(max_length=64, blank=True, default="")
    framework_version = models.CharField(max_length=64, blank=True, default="", help_text="version of CUDA")
    driver_version = models.CharField(max_length=64, blank=True, default="")
    per_host = models.IntegerField(null=True, blank=True, db_column="gpus_per_host")

    class Meta:
        db_table = "worker_node_gpu_summary"
        verbose_name_plural = "worker node GPUs"
        indexes = [models.Index(fields=["queue"], name="worker_node_gpus_queue")]

    def __str__(self) -> str:
        return f"{self.vendor} {self.model} at {self.queue}"


class WorkerNodeCpus(models.Model):
    """Part of a queue's cores that has a level of CPU architecture, such as x86_64-v3."""

    id = models.BigAutoField(primary_key=True)
    queue = models.CharField(max_length=128, db_column="panda_queue")
    level = models.CharField(max_length=32, db_column="cpu_architecture_level")
    logical_cpus = models.IntegerField(default=0)
    percentage = models.FloatField()

    class Meta:
        db_table = "worker_node_cpu_summary"
        verbose_name_plural = "worker node CPUs"
        constraints = [
            models.UniqueConstraint(fields=["queue", "level"], name="worker_node_cpus_once"),
            models.CheckConstraint(condition=Q(percentage__gte=0, percentage__lte=100), name="worker_node_cpus_part"),
        ]

    def __str__(self) -> str:
        return f"{self.percentage} % {self.level} at {self.queue}"


class GridVersion(models.Model):
    """A token for each part of the grid's description. Triggers of its tables write a new one with each change."""

    STATIC, LINKS, ACTIVITY, CONFIGURATION, PILOTS = "static", "links", "activity", "configuration", "pilots"
    SHARES = "shares"
    AWAITED = (STATIC, CONFIGURATION, PILOTS)
    """What may end a wait: what people set and storages report, and pilots of a queue that had none for three hours."""

    part = models.CharField(max_length=16, primary_key=True)
    token = models.UUIDField()
    at = models.DateTimeField(help_text="when the change was complete, just before others saw it")

    class Meta:
        db_table = "grid_versions"

    def __str__(self) -> str:
        return self.part


class RefreshedManager(models.Manager["Refreshed"]):
    """Without numbers that were never counted: their time is -infinity, which Python cannot read."""

    def get_queryset(self) -> models.QuerySet[Refreshed]:
        return super().get_queryset().filter(at__gt=datetime.min.replace(tzinfo=UTC))


class Refreshed(models.Model):
    """When a set of numbers was last counted: who wants them not older than that need not count again."""

    name = models.CharField(max_length=32, primary_key=True)
    at = models.DateTimeField(help_text="moment up to which the count is complete")
    took_ms = models.FloatField(default=0)
    rows = models.IntegerField(default=0)

    objects = RefreshedManager()

    class Meta:
        db_table = "statistics_refreshed"
        verbose_name = "refreshed statistic"

    def __str__(self) -> str:
        return self.name
