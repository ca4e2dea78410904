"""Worker nodes as pilots have found them, and their GPUs."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class WorkerNode(models.Model):
    """A host of a site with one model of CPU. Counts are of one host; memory and disk are in MB and GB, as pilots say them."""

    id = models.BigAutoField(primary_key=True)
    site = models.CharField(max_length=128)
    host = models.CharField(max_length=128, db_column="host_name")
    cpu_model = models.CharField(max_length=128)
    queue = models.CharField(max_length=128, db_column="panda_queue", blank=True, default="")
    logical_cpus = models.IntegerField(null=True, blank=True, db_column="n_logical_cpus")
    sockets = models.IntegerField(null=True, blank=True, db_column="n_sockets")
    cores_per_socket = models.IntegerField(null=True, blank=True)
    threads_per_core = models.IntegerField(null=True, blank=True)
    architecture = models.CharField(max_length=32, blank=True, default="", db_column="cpu_architecture")
    level = models.CharField(max_length=32, blank=True, default="", db_column="cpu_architecture_level")
    clock_mhz = models.FloatField(null=True, blank=True, db_column="clock_speed")
    memory_mb = models.BigIntegerField(null=True, blank=True, db_column="total_memory")
    disk_gb = models.BigIntegerField(null=True, blank=True, db_column="total_local_disk")
    last_seen = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "worker_node"
        constraints = [models.UniqueConstraint(fields=["site", "host", "cpu_model"], name="worker_node_once")]

    def __str__(self) -> str:
        return f"{self.host} at {self.site}"


class NodeGpus(models.Model):
    """GPUs of one model in a host."""

    id = models.BigAutoField(primary_key=True)
    site = models.CharField(max_length=128)
    host = models.CharField(max_length=128, db_column="host_name")
    vendor = models.CharField(max_length=128)
    model = models.CharField(max_length=128)
    count = models.IntegerField(default=1)
    memory_mb = models.IntegerField(null=True, blank=True, db_column="vram")
    architecture = models.CharField(max_length=64, blank=True, default="")
    framework = models.CharField(max_length=20, blank=True, default="")
    framework_version = models.CharField(max_length=20, blank=True, default="")
    driver_version = models.CharField(max_length=20, blank=True, default="")
    last_seen = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "worker_node_gpus"
        verbose_name = "GPU of worker node"
        verbose_name_plural = "GPUs of worker nodes"
        constraints = [
            models.UniqueConstraint(fields=["site", "host", "vendor", "model"], name="worker_node_gpus_once")
        ]

    def __str__(self) -> str:
        return f"{self.count} {self.model} in {self.host}"
