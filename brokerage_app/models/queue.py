"""Work queues: how tasks are grouped and what share of the CPUs a group gets."""

from __future__ import annotations

from django.db import models


class WorkQueue(models.Model):
    id = models.AutoField(primary_key=True, db_column="queue_id")
    name = models.CharField(max_length=32, db_column="queue_name")
    type = models.CharField(max_length=32, db_column="queue_type", help_text="the prodSourceLabel of its tasks")
    vo = models.CharField(max_length=32, db_column="vo")
    status = models.CharField(max_length=64, null=True, blank=True, db_column="status")
    partition_id = models.IntegerField(null=True, blank=True, db_column="partitionid", help_text="-1 marks a partition")
    stretchable = models.SmallIntegerField(null=True, blank=True, db_column="stretchable")
    share = models.SmallIntegerField(null=True, blank=True, db_column="queue_share")
    order = models.SmallIntegerField(null=True, blank=True, unique=True, db_column="queue_order")
    criteria = models.TextField(null=True, blank=True, db_column="criteria")
    variables = models.TextField(null=True, blank=True, db_column="variables")
    function = models.CharField(max_length=32, null=True, blank=True, db_column="queue_function")

    class Meta:
        db_table = "jedi_work_queue"
        constraints = [models.UniqueConstraint(fields=["name", "type", "vo"], name="jedi_work_queue_name")]

    def __str__(self) -> str:
        return self.name
