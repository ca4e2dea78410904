"""Datasets: one row for each task, dataset and use (input, output, log, ...), with counters over its files."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from tasks_app.domain.states import DatasetStatus
from tasks_app.models.fields import big, moment, text
from tasks_app.models.task import Task

INPUT_TYPES = ("input", "pseudo_input")
TO_BE_FED = (DatasetStatus.REGISTERED, DatasetStatus.DEFINED, DatasetStatus.TOUPDATE, DatasetStatus.PENDING)
"""An input in one of these states is new to the feeder, or is to be listed again."""
CONSTITUENT = "in_constituent"
"""A dataset of a container that is read as a whole: its row says where files came from, and has no files itself."""
OUTPUT_TYPES = ("output", "log", "lib", "pp_log")
UNMERGED_TYPES = ("trn_output", "trn_log")
"""What jobs write first when a task merges its outputs; users do not see them."""
MADE_TYPES = OUTPUT_TYPES + UNMERGED_TYPES
DATASET_TYPES = (*INPUT_TYPES, "pp_input", "random_seed", CONSTITUENT, *MADE_TYPES)
LOG_TYPES = ("log", "pp_log", "trn_log")
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
"""The time of its last check that has a dataset looked at at once."""


def seen_status(use: str, status: str | None, finished: int) -> str | None:
    """The status that people are shown. Outputs and logs of tasks that failed or were aborted are `failed` in the books, as
    in JEDI, whatever their files are: with files they are shown as those of a task that finished in part."""
    if status != DatasetStatus.FAILED or use not in OUTPUT_TYPES or not finished:
        return status
    return DatasetStatus.FINISHED.value


class DatasetQuerySet(models.QuerySet["Dataset"]):
    def shown(self) -> DatasetQuerySet:
        """All but those of unmerged files, which concern nobody until merging goes wrong."""
        return self.exclude(type__in=UNMERGED_TYPES)

    def of_task(self, task_id: int) -> DatasetQuerySet:
        return self.filter(task_id=task_id).order_by("id")

    def with_work(
        self, task_id: int, *, status: str = DatasetStatus.READY, types: Iterable[str] = INPUT_TYPES
    ) -> DatasetQuerySet:
        """Datasets of a task that have files which no job was made for yet."""
        return self.filter(task_id=task_id, status=status, type__in=list(types), files_to_be_used__gt=F("files_used"))

    def used_or_made_by_tasks(self, name: str) -> DatasetQuerySet:
        """Every use of a dataset name, newest task first."""
        return self.filter(name=name).order_by("-task_id")

    def of_container(self, *names: str) -> DatasetQuerySet:
        """Datasets of the tasks that read or write what has one of these names: a dataset, or a container of several."""
        return self.filter(Q(name__in=names) | Q(container_name__in=names))

    def to_be_looked_at(self) -> DatasetQuerySet:
        """Inputs whose files the feeder lists: new ones, those to be updated, and those that grow."""
        unread = Q(status__isnull=True) | Q(status__in=TO_BE_FED)
        return self.filter(unread | Q(state="mutable"), type__in=INPUT_TYPES).exclude(type="pseudo_input")


class Dataset(models.Model):
    id = models.BigAutoField(primary_key=True, db_column="datasetid")
    task = models.ForeignKey(Task, models.CASCADE, db_column="jeditaskid", related_name="datasets", db_index=False)
    name = models.CharField(max_length=255, db_column="datasetname")
    type = models.CharField(max_length=20, db_column="type")
    creation_time = models.DateTimeField(db_column="creationtime", db_default=Now())
    modification_time = models.DateTimeField(db_column="modificationtime", db_default=Now())
    vo = text("vo", 32)
    cloud = text("cloud", 10)
    site = text("site", 60)
    master_id = big("masterid", help_text="the master dataset of a secondary one; empty for a master")
    provenance_id = big("provenanceid")
    container_name = text("containername", 255)
    status = text("status", 20, choices=[(s.value, s.value) for s in DatasetStatus])
    state = text("state", 20, help_text="open, closed, mutable or missing, as last reported by data management")
    state_check_time = moment("statecehcktime", help_text="the column is spelt as in the JEDI documents")
    # Today's system spells it right: statements written for either work.
    also_state_check_time = models.GeneratedField(
        expression=F("state_check_time"),  # type: ignore[arg-type]
        output_field=models.DateTimeField(null=True),
        db_persist=True,
        db_column="statechecktime",
    )
    state_check_expiration = moment("statecheckexpiration")
    frozen_time = moment("frozentime")
    files = models.BigIntegerField(db_column="nfiles", db_default=0)
    files_to_be_used = models.BigIntegerField(db_column="nfilestobeused", db_default=0)
    files_used = models.BigIntegerField(db_column="nfilesused", db_default=0)
    files_on_hold = models.BigIntegerField(db_column="nfilesonhold", db_default=0)
    events = big("nevents")
    events_to_be_used = big("neventstobeused")
    events_used = big("neventsused")
    locked_by = text("lockedby", 56)
    locked_time = moment("lockedtime")
    files_finished = models.BigIntegerField(db_column="nfilesfinished", db_default=0)
    files_failed = models.BigIntegerField(db_column="nfilesfailed", db_default=0)
    attributes = text("attributes", 100)
    stream_name = text("streamname", 20)
    storage_token = text("storagetoken", 100)
    destination = text("destination", 60)
    template_id = big("templateid")
    files_waiting = models.BigIntegerField(db_column="nfileswaiting", db_default=0)
    files_missing = models.BigIntegerField(db_column="nfilesmissing", db_default=0)
    pick_cursor = models.BigIntegerField(
        db_column="pick_cursor", db_default=0, help_text="id of the last file that was handed to the job generator"
    )
    list_position = models.IntegerField(
        db_column="list_position", db_default=0, help_text="place in the task's parameters"
    )

    objects = DatasetQuerySet.as_manager()

    class Meta:
        db_table = "jedi_datasets"
        constraints = [
            models.CheckConstraint(
                condition=Q(files__gte=0, files_used__gte=0, files_finished__gte=0, files_failed__gte=0),
                name="jedi_datasets_counters",
            ),
        ]
        indexes = [
            models.Index(fields=["task", "type"], name="jedi_datasets_task_type"),
            models.Index(fields=["name", "type", "task"], name="jedi_datasets_name"),
            models.Index(fields=["container_name", "type"], name="jedi_datasets_container"),
            models.Index(fields=["locked_time"], condition=Q(locked_by__isnull=False), name="jedi_datasets_locked"),
            models.Index(fields=["id"], condition=Q(type="lib", status="running"), name="jedi_datasets_building"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def seen_status(self) -> str | None:
        return seen_status(self.type, self.status, self.files_finished)
