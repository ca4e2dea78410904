"""Event ranges: books below the file. Partitioned by a hash of the task id.

A row is a block: contiguous ranges of one file, of one length, that have the same state, owner and attempts left. It
splits where some of them move on. A range on its own is a block of one.
"""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q


class Event(models.Model):
    id = models.BigAutoField(primary_key=True, db_column="row_id")
    task_id = models.BigIntegerField(db_column="jeditaskid")
    dataset_id = models.BigIntegerField(db_column="datasetid")
    job_id = models.BigIntegerField(db_column="pandaid")
    file_id = models.BigIntegerField(db_column="fileid")
    process_id = models.BigIntegerField(db_column="job_processid")
    status = models.SmallIntegerField(db_column="status", db_default=0)
    events_per_range = models.IntegerField(
        db_column="events_per_range",
        db_default=1,
        help_text="length of a range; the last one of a block may be shorter",
    )
    min_event = models.BigIntegerField(null=True, blank=True, db_column="def_min_eventid")
    max_event = models.BigIntegerField(null=True, blank=True, db_column="def_max_eventid")
    processed_up_to = models.BigIntegerField(null=True, blank=True, db_column="processed_upto_eventid")
    attempt = models.SmallIntegerField(null=True, blank=True, db_column="attemptnr", help_text="attempts that remain")
    objstore_id = models.IntegerField(null=True, blank=True, db_column="objstore_id")
    event_offset = models.BigIntegerField(null=True, blank=True, db_column="event_offset")
    is_jumbo = models.SmallIntegerField(null=True, blank=True, db_column="is_jumbo")
    zip_row_id = models.BigIntegerField(null=True, blank=True, db_column="ziprow_id")
    file_not_deleted = models.CharField(max_length=1, null=True, blank=True, db_column="file_not_deleted")
    error_code = models.IntegerField(null=True, blank=True, db_column="error_code")
    path_convention = models.IntegerField(null=True, blank=True, db_column="path_convention")
    error_diag = models.TextField(null=True, blank=True, db_column="error_diag")

    class Meta:
        db_table = "jedi_events"
        constraints = [
            models.CheckConstraint(condition=Q(attempt__isnull=True) | Q(attempt__gte=0), name="jedi_events_attempts"),
            models.CheckConstraint(
                condition=Q(min_event__isnull=True) | Q(min_event__lte=F("max_event")), name="jedi_events_range"
            ),
            models.CheckConstraint(condition=Q(events_per_range__gt=0), name="jedi_events_range_length"),
            models.UniqueConstraint(fields=["task_id", "job_id", "file_id", "process_id"], name="jedi_events_key"),
        ]
        indexes = [
            models.Index(fields=["file_id"], name="jedi_events_file"),
            models.Index(fields=["job_id", "status"], name="jedi_events_job"),
            models.Index(
                fields=["task_id", "job_id", "file_id", "process_id"],
                condition=Q(status=0, attempt__gt=0),
                name="jedi_events_ready",
            ),
        ]
