"""Jobs: one table for all states; final jobs move to the archive. Side tables hold what is long or many."""

from __future__ import annotations

from typing import Final

from django.db import models
from django.db.models import Case, F, Q, Value, When
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Cast, Now, StrIndex
from django.db.models.lookups import GreaterThan

from tasks_app.domain.lines import URGENT
from tasks_app.domain.states import JOB_FINAL, JOB_OPEN, JobStatus
from tasks_app.models.fields import big, moment, number, small, text

OPEN_VALUES = sorted(JOB_OPEN)
_TEXT: Final = models.TextField()
LINE: Final = Case(
    When(Q(processing_type=URGENT) | GreaterThan(StrIndex("special_handling", Value(URGENT)), 0), then=Value(URGENT)),
    When(gshare__isnull=False, then=CombinedExpression(Value("share:"), "||", F("gshare"), output_field=_TEXT)),
    default=CombinedExpression(Value("queue:"), "||", Cast("work_queue_id", _TEXT), output_field=_TEXT),
    output_field=_TEXT,
)
"""`LINE` of `domain.lines`, as the index has it."""
FINAL_VALUES = sorted(status.value for status in JOB_FINAL)


class JobColumns(models.Model):
    """The columns of a job, in the living table and in the archive. Names are PanDA's."""

    id = models.BigIntegerField(primary_key=True, db_column="pandaid")
    task_id = big("jeditaskid")
    name = text("jobname", 256)
    status = models.CharField(max_length=15, db_column="jobstatus", choices=[(s.value, s.value) for s in JobStatus])
    sub_status = text("jobsubstatus", 80)
    creation_time = models.DateTimeField(db_column="creationtime", db_default=Now())
    modification_time = models.DateTimeField(db_column="modificationtime", db_default=Now())
    state_change_time = moment("statechangetime")
    start_time = moment("starttime")
    end_time = moment("endtime")
    heartbeat_at = moment("heartbeat_at")
    ranges_reported_at = moment("ranges_reported_at")
    transformation = text("transformation", 250)
    processing_type = text("processingtype", 64)
    prod_source_label = text("prodsourcelabel", 20)
    user = text("produsername", 128)
    working_group = text("workinggroup", 32)
    vo = text("vo", 32)
    site = text("computingsite", 128)
    computing_element = text("computingelement", 128)
    cloud = text("cloud", 50)
    nucleus = text("nucleus", 52)
    worker_node = text("modificationhost", 128)
    destination_block = text("destinationdblock", 255)
    req_id = big("reqid")
    jobset_id = big("jobsetid")
    parent_id = big("parentid")
    job_definition_id = big("jobdefinitionid")
    assigned_priority = number("assignedpriority")
    current_priority = models.IntegerField(db_column="currentpriority", db_default=0)
    work_queue_id = number("workqueue_id")
    gshare = text("gshare", 32)
    resource_type = text("resource_type", 56)
    core_count = small("corecount")
    min_ram_mb = big("minramcount")
    max_walltime_s = big("maxwalltime")
    max_disk_mb = big("maxdiskcount")
    max_cpu_count = big("maxcpucount")
    attempt = small("attemptnr")
    max_attempt = small("maxattempt")
    failed_attempt = small("failedattempt")
    input_files = number("ninputdatafiles")
    input_bytes = big("inputfilebytes")
    output_files = number("noutputdatafiles")
    output_bytes = big("outputfilebytes")
    events = big("nevents")
    event_service = small("eventservice")
    special_handling = text("specialhandling", 80)
    release = text("atlasrelease", 64)
    home_package = text("homepackage", 128)
    cmt_config = text("cmtconfig", 250)
    container_name = text("container_name", 200)
    transfer_type = text("transfertype", 20)
    pilot_error_code = number("piloterrorcode")
    pilot_error_diag = text("piloterrordiag", 500)
    exe_error_code = number("exeerrorcode")
    exe_error_diag = text("exeerrordiag", 500)
    sup_error_code = number("superrorcode")
    sup_error_diag = text("superrordiag", 500)
    ddm_error_code = number("ddmerrorcode")
    ddm_error_diag = text("ddmerrordiag", 500)
    brokerage_error_code = number("brokerageerrorcode")
    brokerage_error_diag = text("brokerageerrordiag", 500)
    dispatcher_error_code = number("jobdispatchererrorcode")
    dispatcher_error_diag = text("jobdispatchererrordiag", 500)
    task_buffer_error_code = number("taskbuffererrorcode")
    task_buffer_error_diag = text("taskbuffererrordiag", 500)
    trans_exit_code = text("transexitcode", 128)
    cpu_time_s = big("cpuconsumptiontime")
    actual_cores = small("actualcorecount")
    max_rss_kb = big("maxrss")
    avg_rss_kb = big("avgrss")
    max_pss_kb = big("maxpss")
    avg_pss_kb = big("avgpss")
    job_metrics = text("jobmetrics", 500)
    pilot_id = text("pilotid", 200)
    pilot_timing = text("pilottiming", 100)
    batch_id = text("batchid", 80)
    worker_id = text("workerid", 80)
    command_to_pilot = text("commandtopilot", 250)
    fence = models.BigIntegerField(db_column="fence", db_default=0)
    secret_hash = models.BinaryField(null=True, blank=True, db_column="secret_hash", editable=False)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return str(self.id)


class JobQuerySet(models.QuerySet["Job"]):
    def open(self) -> JobQuerySet:
        return self.filter(status__in=OPEN_VALUES)


class Job(JobColumns):
    objects = JobQuerySet.as_manager()

    class Meta:
        db_table = "jobs"
        constraints = [
            models.CheckConstraint(condition=Q(status__in=[s.value for s in JobStatus]), name="jobs_status_known"),
        ]
        indexes = [
            models.Index("site", -F("current_priority"), "id", condition=Q(status="activated"), name="jobs_dispatch"),
            models.Index(
                "site",
                LINE,
                -F("current_priority"),
                "id",
                condition=Q(status="activated"),
                name="jobs_dispatch_by_line",
            ),
            models.Index(fields=["site", "id"], condition=Q(status="activated"), name="jobs_dispatch_by_age"),
            models.Index(fields=["site", "status"], condition=Q(status__in=OPEN_VALUES), name="jobs_open_by_site"),
            models.Index(fields=["task_id", "status", "id"], name="jobs_task_status"),
            models.Index(fields=["status", "id"], name="jobs_status"),
            models.Index(fields=["jobset_id"], condition=Q(event_service__gt=0), name="jobs_jobset"),
            # For lists, and for when a queue last started a job. Written once a job, when it ends; heartbeats change none
            # of these columns.
            models.Index(
                fields=["site", "status", "id"], condition=Q(status__in=FINAL_VALUES), name="jobs_ended_by_site"
            ),
            models.Index(
                fields=["site", "start_time"],
                condition=Q(status__in=FINAL_VALUES, start_time__isnull=False),
                name="jobs_started_by_site",
            ),
            models.Index(
                fields=["worker_node", "id"],
                condition=Q(status__in=FINAL_VALUES, worker_node__isnull=False),
                name="jobs_ended_by_node",
            ),
        ]


class JobArchive(JobColumns):
    """Final jobs after the retention time, partitioned by the month of their last change."""

    class Meta:
        db_table = "jobs_archive"
        verbose_name = "archived job"
        indexes = [
            models.Index(fields=["task_id", "status", "id"], name="jobs_archive_task_status"),
            # Lists by queue, and whether there ever was a queue of a name.
            models.Index(fields=["site", "id"], name="jobs_archive_site"),
        ]


def living_or_archived(job_id: int) -> JobColumns | None:
    """A job, wherever it is kept."""
    return Job.objects.filter(pk=job_id).first() or JobArchive.objects.filter(pk=job_id).first()


class JobFile(models.Model):
    """A file as one job reads or writes it."""

    id = models.BigAutoField(primary_key=True, db_column="row_id")
    job_id = models.BigIntegerField(db_column="pandaid")
    task_id = big("jeditaskid")
    dataset_id = big("datasetid")
    file_id = big("fileid")
    type = models.CharField(max_length=20, db_column="type")
    lfn = models.TextField(db_column="lfn")
    scope = text("scope", 30)
    dataset = text("dataset", 255)
    destination_block = text("destinationdblock", 255)
    destination_se = text("destinationse", 250)
    guid = text("guid", 64)
    size = big("fsize")
    checksum = text("checksum", 36)
    status = text("status", 64)
    attempt = small("attemptnr")
    events = big("nevents")
    start_event = big("startevent")
    end_event = big("endevent")
    surl = models.TextField(null=True, blank=True, db_column="surl")

    class Meta:
        db_table = "job_files"
        indexes = [
            # In the order of the rows, so that a hand-out sorts nothing.
            models.Index(fields=["job_id", "id"], name="job_files_in_order"),
            models.Index(fields=["file_id"], name="job_files_file"),
            # What consumers of events have stored, until it is deleted.
            models.Index(fields=["id"], condition=Q(type="zipoutput", status="ready"), name="job_files_zips"),
        ]

    def __str__(self) -> str:
        return self.lfn


class JobParams(models.Model):
    """The command line of a job's transformation."""

    id = models.BigIntegerField(primary_key=True, db_column="pandaid")
    params = models.TextField(db_column="jobparameters")

    class Meta:
        db_table = "job_params"
        verbose_name_plural = "job params"


class JobMetadata(models.Model):
    """The report that the payload itself wrote, if any."""

    id = models.BigIntegerField(primary_key=True, db_column="pandaid")
    metadata = models.JSONField(db_column="metadata")

    class Meta:
        db_table = "job_metadata"
        verbose_name_plural = "job metadata"


class JobOutputReport(models.Model):
    """A pilot's final report that the adder has not booked yet."""

    id = models.BigIntegerField(primary_key=True, db_column="pandaid")
    task_id = big("jeditaskid")
    attempt = models.SmallIntegerField(db_column="attemptnr")
    status = models.CharField(max_length=15, db_column="jobstatus")
    data = models.JSONField(db_column="data", help_text="{lfn: {guid, fsize, adler32, surl, nevents}}")
    created = models.DateTimeField(db_column="timestamp", db_default=Now())

    class Meta:
        db_table = "job_output_report"
