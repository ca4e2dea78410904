"""Locks on partitions of the work, so that two passes do not fill the same queue at once."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class ProcessLock(models.Model):
    id = models.BigAutoField(primary_key=True)
    vo = models.CharField(max_length=32, db_column="vo")
    prod_source_label = models.CharField(max_length=20, db_column="prodsourcelabel")
    work_queue_id = models.IntegerField(db_column="workqueue_id", db_default=0)
    cloud = models.CharField(max_length=10, db_column="cloud", db_default="default")
    resource_type = models.CharField(max_length=56, db_column="resource_type", db_default="default")
    component = models.CharField(max_length=56, db_column="component", db_default="default")
    locked_by = models.CharField(max_length=56, db_column="lockedby")
    locked_time = models.DateTimeField(db_column="lockedtime", db_default=Now())
    fence = models.BigIntegerField(db_column="fence", db_default=0)

    class Meta:
        db_table = "jedi_process_lock"
        constraints = [
            models.UniqueConstraint(
                fields=["vo", "prod_source_label", "work_queue_id", "cloud", "resource_type", "component"],
                name="jedi_process_lock_key",
            )
        ]
