"""Workflows: their definitions, the tasks that their packages became, and which package is which group of which task."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Workflow(models.Model):
    """A definition that somebody submitted. While it is on hold from the start it has no tasks."""

    name = models.CharField(max_length=100)
    owner = models.CharField(max_length=128)
    definition = models.JSONField(help_text="the document, as `manage.py workflow schema` describes it")
    container = models.CharField(max_length=255, blank=True, help_text="where all files of the workflow come together")
    submitted = models.DateTimeField(db_default=Now())
    failures_told = models.DateTimeField(null=True, blank=True, help_text="failures of packages until then were mailed")
    deletes_files = models.BooleanField(default=False, help_text="it has files that go when it has ended")
    restarts = models.JSONField(
        default=dict, help_text="limits of restarts by reason; empty when `any` is the only one, which attempts count"
    )

    class Meta:
        db_table = "workflows"
        indexes = [
            models.Index(fields=["owner", "-id"], name="workflows_of_owner"),
            models.Index(fields=["id"], condition=Q(deletes_files=True), name="workflows_deleting"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.pk})"


class WorkflowPackage(models.Model):
    """A package by its place. It is the group `boundary` of its task, and has no task before its workflow begins."""

    workflow = models.ForeignKey(Workflow, models.CASCADE, related_name="packages")
    path = models.CharField(max_length=20, help_text="stage, line and place in the line")
    software = models.CharField(max_length=255, help_text="the names of its binaries")
    task_id = models.BigIntegerField(null=True, blank=True, db_column="jeditaskid")
    boundary = models.IntegerField(null=True, blank=True)
    is_canceled = models.BooleanField(default=False)
    is_held = models.BooleanField(default=False, help_text="its group gets no job until it is resumed")
    priority = models.IntegerField(null=True, blank=True, help_text="of its jobs, when it is not that of the task")

    class Meta:
        db_table = "workflow_packages"
        constraints = [
            models.UniqueConstraint(fields=["workflow", "path"], name="workflow_packages_path"),
            models.UniqueConstraint(fields=["task_id", "boundary"], name="workflow_packages_group"),
        ]
        indexes = [
            models.Index(fields=["task_id"], condition=Q(is_canceled=True), name="workflow_packages_canceled"),
            models.Index(fields=["task_id"], condition=Q(is_held=True), name="workflow_packages_held"),
        ]

    def __str__(self) -> str:
        return f"{self.path} of workflow {self.workflow_id}"
