"""Queues that ran out of jobs, and the tasks that were sent to them."""

from __future__ import annotations

from django.db import models


class EmptyQueue(models.Model):
    """A queue without enough jobs, and since when."""

    queue = models.CharField(max_length=128, primary_key=True)
    since = models.DateTimeField()

    class Meta:
        db_table = "empty_queues"

    def __str__(self) -> str:
        return self.queue


class Preassignment(models.Model):
    """A task that the queue filler sent to a queue, which gets all its jobs until it is busy again."""

    task_id = models.BigIntegerField(primary_key=True, db_column="jeditaskid")
    queue = models.CharField(max_length=128)
    resource_type = models.CharField(max_length=56, blank=True, default="")
    since = models.DateTimeField()

    class Meta:
        db_table = "preassignments"
        indexes = [models.Index(fields=["queue"], name="preassignments_queue")]

    def __str__(self) -> str:
        return f"{self.task_id} at {self.queue}"
