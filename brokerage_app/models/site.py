"""Where work can run and where files lie."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Queue(models.Model):
    """A computing queue (PanDA queue): one kind of slot at one site. Sizes in MB, times in seconds."""

    STATUSES = ("online", "standby", "offline", "test", "brokeroff", "paused")

    name = models.CharField(max_length=128, primary_key=True)
    site_name = models.CharField(max_length=60, help_text="the site that the queue belongs to")
    status = models.CharField(max_length=20, default="online", choices=[(s, s) for s in STATUSES])
    status_reason = models.TextField(blank=True, default="")
    cloud = models.CharField(max_length=10, blank=True, default="")
    core_count = models.IntegerField(default=1, help_text="cores of one slot; 0 takes any number up to max cores")
    max_memory_mb = models.IntegerField(null=True, blank=True, help_text="memory of one slot; empty is no limit")
    min_memory_mb = models.IntegerField(default=0)
    max_walltime_s = models.IntegerField(null=True, blank=True)
    min_walltime_s = models.IntegerField(default=0)
    work_dir_mb = models.IntegerField(null=True, blank=True, help_text="scratch disk of one slot; empty is no limit")
    core_power = models.FloatField(default=10.0, help_text="HS23 a core")
    capability = models.CharField(max_length=16, default="ucore")
    catchall = models.TextField(blank=True, default="")
    storage = models.ForeignKey("StorageEndpoint", models.SET_NULL, null=True, blank=True, help_text="where outputs go")
    data = models.JSONField(
        default=dict, blank=True, help_text="the whole description, as the information system gave it"
    )
    last_update = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "queues"
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=("online", "standby", "offline", "test", "brokeroff", "paused")),
                name="queues_status_known",
            ),
            models.CheckConstraint(condition=Q(core_count__gte=0, min_memory_mb__gte=0), name="queues_sizes"),
        ]

    def __str__(self) -> str:
        return self.name


class StorageEndpoint(models.Model):
    """A storage element, with the folder under which its files lie when it is a local one."""

    name = models.CharField(max_length=60, primary_key=True)
    site_name = models.CharField(max_length=60)
    type = models.CharField(max_length=32, default="DATADISK")
    is_tape = models.BooleanField(default=False)
    path = models.TextField(blank=True, default="", help_text="root folder of a local storage element")
    space_free_gb = models.FloatField(null=True, blank=True)
    space_total_gb = models.FloatField(null=True, blank=True)
    blacklisted_read = models.BooleanField(default=False)
    blacklisted_write = models.BooleanField(default=False)
    updated = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "storage_endpoints"

    def __str__(self) -> str:
        return self.name


class ResourceType(models.Model):
    """A class of jobs by cores and memory a core; the first row that fits counts."""

    name = models.CharField(max_length=56, primary_key=True, db_column="resource_name")
    position = models.IntegerField(default=0)
    min_cores = models.IntegerField(null=True, blank=True, db_column="mincore")
    max_cores = models.IntegerField(null=True, blank=True, db_column="maxcore")
    min_ram_per_core_mb = models.IntegerField(null=True, blank=True, db_column="minrampercore")
    max_ram_per_core_mb = models.IntegerField(null=True, blank=True, db_column="maxrampercore")

    class Meta:
        db_table = "resource_types"
        ordering = ["position", "name"]

    def __str__(self) -> str:
        return self.name
