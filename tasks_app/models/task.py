"""Tasks: what somebody asked for, its parameters, and the template of its jobs' parameters."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from django.db import models
from django.db.models import Case, Exists, F, OuterRef, Q, Value, When
from django.db.models.functions import Now

from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.domain.super_status import OTHERS, STATES_OF
from tasks_app.models.fields import big, moment, number, small, text
from tasks_app.models.job import Job, JobArchive

if TYPE_CHECKING:
    pass

FINAL_VALUES = sorted(TASK_FINAL)


class TaskQuerySet(models.QuerySet["Task"]):
    """The questions that the agents and the JEDI documents ask of the table."""

    def open(self) -> TaskQuerySet:
        """Tasks that are not in a final state."""
        return self.exclude(status__in=FINAL_VALUES)

    def having_names(self) -> TaskQuerySet:
        """Tasks whose names are taken: all but those that broke before they had a job, since these have made nothing."""
        jobs = [Exists(jobs.objects.filter(task_id=OuterRef("pk"))) for jobs in (Job, JobArchive)]
        return self.exclude(~jobs[0], ~jobs[1], status=TaskStatus.BROKEN)


STUCK: Final = (TaskStatus.PENDING, TaskStatus.ASSIGNING)
"""A task in these is tried again and again: it leaves its state for a moment, and `frozen_time` is when it got there first."""
SINCE: Final = f"""coalesce(CASE WHEN t.status IN ({", ".join(f"'{status}'" for status in STUCK)}) THEN t.frozentime END,
                                 t.statechangetime, t.modificationtime)"""
"""`since` as SQL on a row `t`."""


def since(status: str, frozen: datetime | None, changed: datetime | None, modified: datetime) -> datetime:
    """Since when a task is in its state: of one that waits, since it began to wait, however often it was tried."""
    return (frozen if status in STUCK else None) or changed or modified


SCOUTS_SKIPPED: Final = "ava"
"""Stands in the unit of the walltime, as in PanDA, when somebody has told a task to skip its scouts; once they are judged the
unit is one again."""


class Task(models.Model):
    """One task. The id comes from the sequence `jedi_tasks_id_seq`, which starts at 10 000 000."""

    id = models.BigIntegerField(primary_key=True, db_column="jeditaskid")
    name = text("taskname", 256)
    status = models.CharField(max_length=64, db_column="status", choices=[(s.value, s.value) for s in TaskStatus])
    user = models.CharField(max_length=128, db_column="username")
    creation_date = models.DateTimeField(db_column="creationdate", db_default=Now())
    modification_time = models.DateTimeField(db_column="modificationtime", db_default=Now())
    req_id = big("reqid")
    old_status = text("oldstatus", 64)
    cloud = text("cloud", 10)
    site = text("site", 60)
    start_time = moment("starttime")
    end_time = moment("endtime")
    frozen_time = moment("frozentime")
    prod_source_label = text("prodsourcelabel", 20)
    working_group = text("workinggroup", 32)
    vo = text("vo", 32)
    core_count = number("corecount")
    task_type = text("tasktype", 64)
    processing_type = text("processingtype", 64)
    task_priority = number("taskpriority")
    current_priority = number("currentpriority")
    architecture = text("architecture", 256)
    trans_uses = text("transuses", 64)
    trans_home = text("transhome", 128)
    trans_path = text("transpath", 128)
    locked_by = text("lockedby", 56)
    locked_time = moment("lockedtime")
    term_condition = text("termcondition", 100)
    split_rule = models.TextField(null=True, blank=True, db_column="splitrule")
    walltime = number("walltime")
    walltime_unit = text("walltimeunit", 32)
    out_disk_count = number("outdiskcount")
    out_disk_unit = text("outdiskunit", 32)
    work_disk_count = number("workdiskcount")
    work_disk_unit = text("workdiskunit", 32)
    ram_count = number("ramcount")
    ram_unit = text("ramunit", 32)
    io_intensity = number("iointensity")
    io_intensity_unit = text("iointensityunit", 32)
    work_queue = models.ForeignKey(
        "brokerage_app.WorkQueue", models.SET_NULL, null=True, blank=True, db_column="workqueue_id", db_index=False
    )
    progress = small("progress")
    failure_rate = small("failurerate", help_text="failed jobs among ended jobs, in per cent")
    error_dialog = models.TextField(null=True, blank=True, db_column="errordialog")
    country_group = text("countrygroup", 20)
    parent_id = big("parent_tid", help_text="equals the task's own id when it has no parent")
    event_service = small("eventservice")
    ticket_id = text("ticketid", 50)
    ticket_system_type = text("ticketsystemtype", 32)
    state_change_time = moment("statechangetime")
    super_status = models.GeneratedField(
        expression=Case(
            *(
                When(status__in=STATES_OF[coarse], then=Value(coarse))
                for coarse in sorted(STATES_OF)
                if coarse != OTHERS
            ),
            default=Value(OTHERS),
        ),
        output_field=models.CharField(max_length=64),
        db_persist=True,
        db_column="superstatus",
        help_text="coarse state of the task",
    )
    campaign = text("campaign", 32)
    merge_ram_count = number("mergeramcount")
    merge_ram_unit = text("mergeramunit", 32)
    merge_walltime = number("mergewalltime")
    merge_walltime_unit = text("mergewalltimeunit", 32)
    throttled_time = moment("throttledtime")
    num_throttled = small("numthrottled")
    merge_core_count = number("mergecorecount")
    goal = small("goal", help_text="per mille of the input that is to succeed")
    assessment_time = moment("assessmenttime")
    cpu_time = number("cputime")
    cpu_time_unit = text("cputimeunit", 32)
    cpu_efficiency = small("cpuefficiency")
    base_walltime = number("basewalltime")
    ami_flag = text("amiflag", 10, help_text="READY when the task is done or finished, for catalogues of metadata")
    nucleus = text("nucleus", 52)
    base_ram_count = number("baseramcount")
    ttc_requested = moment("ttcrequested")
    ttc_predicted = moment("ttcpredicted", help_text="when it will end at the rate of its last hours")
    ttc_prediction_date = moment("ttcpredictiondate")
    rescue_time = moment("rescuetime", help_text="when it was last freed from a process that was gone")
    request_type = text("requesttype", 36)
    gshare = text("gshare", 32)
    use_jumbo = text("usejumbo", 1)
    resource_type = text("resource_type", 56)
    disk_io = number("diskio")
    disk_io_unit = text("diskiounit", 32)
    memory_leak_core = big("memory_leak_core")
    memory_leak_x2 = models.DecimalField(
        max_digits=14, decimal_places=3, null=True, blank=True, db_column="memory_leak_x2"
    )
    attempt = small("attemptnr")
    container_name = text("container_name", 200)
    job_label = text("job_label", 20)
    # Modification times are never set back here: both are the same.
    real_modification_time = models.GeneratedField(
        expression=F("modification_time"),  # type: ignore[arg-type]
        output_field=models.DateTimeField(),
        db_persist=True,
        db_column="realmodificationtime",
    )
    framework = text("framework", 50)
    activated_time = moment("activatedtime")
    queued_time = moment("queuedtime")
    action_time = moment("actiontime")
    fence = models.BigIntegerField(
        db_column="fence", db_default=0, help_text="raised by every claim; a stale holder writes nothing"
    )
    next_check = models.DateTimeField(
        db_column="next_check_at", db_default=Now(), help_text="no agent handles the task before this time"
    )

    objects = TaskQuerySet.as_manager()

    class Meta:
        db_table = "jedi_tasks"
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=[s.value for s in TaskStatus]), name="jedi_tasks_status_known"
            ),
            models.CheckConstraint(
                condition=Q(progress__isnull=True) | Q(progress__range=(0, 100)), name="jedi_tasks_progress"
            ),
        ]
        indexes = [
            models.Index(
                "status",
                F("current_priority").desc(nulls_last=True),
                "id",
                condition=~Q(status__in=FINAL_VALUES),
                name="jedi_tasks_open_by_priority",
            ),
            models.Index(fields=["user", "status"], name="jedi_tasks_user_status"),
            models.Index(fields=["status", "task_type", "creation_date"], name="jedi_tasks_status_created"),
            models.Index(fields=["locked_time"], condition=Q(locked_by__isnull=False), name="jedi_tasks_locked"),
            models.Index(fields=["name", "id"], name="jedi_tasks_name"),
            models.Index(fields=["parent_id"], name="jedi_tasks_parent"),
            models.Index(fields=["req_id", "user"], name="jedi_tasks_request"),
            # Orders of the API's list of tasks.
            models.Index(fields=["creation_date", "id"], name="jedi_tasks_by_creation"),
            models.Index(fields=["current_priority", "id"], name="jedi_tasks_by_priority"),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.name or ''}"

    @property
    def skips_scouts(self) -> bool:
        """Whether somebody has told the task to skip its scouts, which are not judged yet."""
        return self.walltime_unit == SCOUTS_SKIPPED

    @property
    def unit_of_walltime(self) -> str | None:
        """With a unit the walltime is for each MB of input, without one for the whole job. That scouts are skipped is
        noted in the same column, and is no unit."""
        return None if self.skips_scouts else self.walltime_unit

    @property
    def since(self) -> datetime:
        """Since when it is in its state."""
        return since(self.status, self.frozen_time, self.state_change_time, self.modification_time)


class TaskParams(models.Model):
    """The dictionary that was submitted, with what the refiner completed and what was changed since."""

    task = models.OneToOneField(Task, models.CASCADE, primary_key=True, db_column="jeditaskid", related_name="params")
    params = models.JSONField(db_column="taskparams")

    class Meta:
        db_table = "jedi_taskparams"
        verbose_name_plural = "task params"


class JobParamsTemplate(models.Model):
    """The text from which the parameters of each job are made."""

    task = models.OneToOneField(
        Task, models.CASCADE, primary_key=True, db_column="taskid", related_name="job_params_template"
    )
    template = models.TextField(db_column="jobparamstemplate")
    # Today's system calls the key jeditaskid, the documents taskid: statements written for either work.
    also_task_id = models.GeneratedField(
        expression=F("task_id"),  # type: ignore[arg-type]
        output_field=models.BigIntegerField(),
        db_persist=True,
        db_column="jeditaskid",
    )

    class Meta:
        db_table = "jedi_jobparams_template"
