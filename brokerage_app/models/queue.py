"""Work queues and global shares: how tasks are grouped and what part of the CPUs a group gets."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q


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


class GlobalShareQuerySet(models.QuerySet["GlobalShare"]):
    def in_order(self) -> GlobalShareQuerySet:
        """Siblings in the order in which tasks are matched with them."""
        return self.order_by(F("queue_id").asc(nulls_last=True), "name")


class GlobalShare(models.Model):
    """A node of the tree that divides the CPUs. Tasks belong to its leaves, the first whose patterns they match."""

    PATTERNS = ("prod_source_label", "working_group", "campaign", "processing_type", "trans_path", "rtype")

    name = models.CharField(max_length=32, primary_key=True, db_column="name")
    value = models.IntegerField(db_column="value")
    parent = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, db_column="parent", db_index=False, related_name="children"
    )
    prod_source_label = models.CharField(max_length=100, null=True, blank=True, db_column="prodsourcelabel")
    working_group = models.CharField(max_length=100, null=True, blank=True, db_column="workinggroup")
    campaign = models.CharField(max_length=100, null=True, blank=True, db_column="campaign")
    processing_type = models.CharField(max_length=100, null=True, blank=True, db_column="processingtype")
    trans_path = models.CharField(max_length=100, null=True, blank=True, db_column="transpath")
    rtype = models.CharField(max_length=100, null=True, blank=True, db_column="rtype")
    vo = models.CharField(max_length=32, null=True, blank=True, db_column="vo")
    queue_id = models.IntegerField(null=True, blank=True, unique=True, db_column="queue_id")
    throttled = models.CharField(
        max_length=1, null=True, blank=True, db_column="throttled", choices=[("Y", "Y"), ("N", "N")]
    )

    objects = GlobalShareQuerySet.as_manager()

    class Meta:
        db_table = "global_shares"
        constraints = [
            models.CheckConstraint(condition=Q(value__gte=0), name="global_shares_value"),
            models.CheckConstraint(condition=Q(throttled__in=("Y", "N")), name="global_shares_throttled"),
            models.CheckConstraint(condition=~Q(parent=F("name")), name="global_shares_not_its_own_parent"),
        ]

    def __str__(self) -> str:
        return self.name
