"""Files of datasets as a task uses them. Partitioned by ranges of the task id.

No index stands on a column that agents change: new files are picked by the cursor of their dataset, and files that
come back after a failure stand in `FileRetry`.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db import models
from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Now

from tasks_app.domain.states import FILE_STATES, FileStatus
from tasks_app.models.fields import big, moment, number, small, text

GIVEN_UP = Q(type__in=("input", "pseudo_input", "pp_input", "random_seed"), status=FileStatus.READY) & (
    Q(attempt__gte=F("max_attempt")) | Q(failed_attempt__gte=F("max_failure"))
)
"""Inputs that have failed for good. To the agents they are `ready`, as a retry only has to give them more attempts."""


class FileQuerySet(models.QuerySet["File"]):
    def as_seen(self) -> FileQuerySet:
        """With `seen_status`, the state that people are shown: `failed` for inputs that have failed for good."""
        seen = Case(When(GIVEN_UP, then=Value(FileStatus.FAILED.value)), default=F("status"))
        return self.annotate(seen_status=seen)

    def seen_in(self, statuses: Iterable[str]) -> FileQuerySet:
        """Files that people see in one of these states."""
        wanted = set(statuses)
        found = Q(status__in=wanted)
        if FileStatus.FAILED in wanted:
            found |= GIVEN_UP
        elif FileStatus.READY in wanted:
            found &= ~GIVEN_UP
        return self.filter(found)

    def of_dataset(self, task_id: int, dataset_id: int, type: str, status: str | None = None) -> FileQuerySet:
        """Files of one dataset of a task, in one state if a state is given, in the order in which they came."""
        found = self.filter(task_id=task_id, dataset_id=dataset_id, type=type)
        return (found if status is None else found.filter(status=status)).order_by("id")

    def all_of_dataset(self, dataset_id: int, task_id: int) -> FileQuerySet:
        return self.filter(task_id=task_id, dataset_id=dataset_id)


class File(models.Model):
    id = models.BigAutoField(primary_key=True, db_column="fileid")
    task_id = models.BigIntegerField(db_column="jeditaskid")
    dataset_id = models.BigIntegerField(db_column="datasetid")
    creation_date = models.DateTimeField(db_column="creationdate", db_default=Now())
    last_attempt_time = moment("lastattempttime")
    lfn = models.TextField(db_column="lfn")
    guid = text("guid", 64)
    type = models.CharField(max_length=20, db_column="type")
    status = models.CharField(max_length=64, db_column="status", choices=[(s.value, s.value) for s in FILE_STATES])
    size = big("fsize", help_text="bytes")
    checksum = text("checksum", 36, help_text="ad:<adler32 in hex> or md:<md5 in hex>")
    scope = text("scope", 30)
    attempt = small("attemptnr", db_default=0, help_text="attempts that have ended")
    max_attempt = small("maxattempt")
    events = big("nevents")
    keep_track = small("keeptrack")
    start_event = big("startevent", help_text="first event in the file, from 0")
    end_event = big("endevent", help_text="last event in the file, inclusive")
    first_event = big("firstevent", help_text="number of the first event over the whole dataset, from 1")
    boundary_id = big("boundaryid")
    job_id = big("pandaid")
    failed_attempt = small("failedattempt", db_default=0)
    lumi_block = big("lumiblocknr")
    out_job_id = big("outpandaid")
    max_failure = small("maxfailure")
    ram_count = number("ramcount", db_default=0)
    is_waiting = text("is_waiting", 1)
    jobset_id = big("jobsetid")
    proc_status = text("proc_status", 64)
    constituent_id = big("constituent_id")
    surl = models.TextField(
        null=True, blank=True, db_column="surl", help_text="where the local catalogue found the file"
    )

    objects = FileQuerySet.as_manager()

    class Meta:
        db_table = "jedi_dataset_contents"
        # In the database the primary key is (jeditaskid, datasetid, fileid), since the table is partitioned by task.
        indexes = [
            models.Index(fields=["id"], name="jedi_contents_fileid"),
            models.Index(fields=["lfn"], name="jedi_contents_lfn"),
        ]

    def __str__(self) -> str:
        return self.lfn


class FileRetry(models.Model):
    """An input file that is to be handed out again. The picker takes the row away."""

    id = models.BigIntegerField(primary_key=True, db_column="fileid")
    task_id = models.BigIntegerField(db_column="jeditaskid")
    dataset_id = models.BigIntegerField(db_column="datasetid")

    class Meta:
        db_table = "file_retries"
        verbose_name_plural = "file retries"
        indexes = [models.Index(fields=["task_id", "dataset_id", "id"], name="file_retries_dataset")]
