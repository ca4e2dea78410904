"""Columns of the list of tasks. What is computed is asked for all tasks of a page at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db.models import Count, Max
from django.utils import timezone

from brokerage_app.models import VerdictRecord
from jedisite.web.columns import Batch, Column, Columns, Row
from tasks_app.domain import progress
from tasks_app.domain.states import JOB_AT_PILOT, JOB_QUEUED, JobStatus, TaskStatus
from tasks_app.explaining.waiting import blocking, without_pilots
from tasks_app.inputs.missing_files import missing_of
from tasks_app.models import Dataset, Job, Task
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.models.task import since


def _of_inputs(rows: Sequence[Row]) -> Mapping[Any, Row]:
    """Counts of the input files. One query, and one more where files are missing."""
    by_task: dict[int, list[Dataset]] = defaultdict(list)
    inputs = Dataset.objects.filter(task_id__in=[r["id"] for r in rows], type__in=INPUT_TYPES, master_id__isnull=True)
    for dataset in inputs:
        by_task[dataset.task_id].append(dataset)
    missing = missing_of(dataset for datasets in by_task.values() for dataset in datasets)
    found: dict[int, dict[str, Any]] = {}
    for row in rows:
        datasets = by_task[row["id"]]
        done = progress.of_datasets(datasets, sum(missing[d.id].files for d in datasets if d.id in missing))
        found[row["id"]] = {
            "progress": done.percent if done.total else None,
            "files": done.total,
            "files_finished": done.finished,
            "files_failed": done.failed,
            "files_working": done.working,
            "files_waiting": done.waiting,
            "events": sum(dataset.events or 0 for dataset in datasets) or None,
            "events_used": sum(dataset.events_used or 0 for dataset in datasets) or None,
            "last_progress": max((dataset.modification_time for dataset in datasets), default=None),
        }
    return found


def _of_jobs(rows: Sequence[Row]) -> Mapping[Any, Row]:
    """Numbers of jobs, and what blocks a task that has none on the way, or only such as no pilot takes.

    Three small queries, and one more where jobs of a task wait and none is at a pilot.
    """
    ids = [row["id"] for row in rows]
    jobs: dict[int, dict[str, int]] = defaultdict(dict)
    counted = Job.objects.filter(task_id__in=ids).values_list("task_id", "status").annotate(n=Count("id")).order_by()
    for task_id, status, n in counted:
        if task_id is not None:
            jobs[task_id][status] = n
    latest = VerdictRecord.objects.filter(task_id__in=ids).order_by().values("task_id").annotate(last=Max("id"))
    wanted = VerdictRecord.objects.filter(id__in=[row["last"] for row in latest])
    verdicts = {v.task_id: v for v in wanted.only("task_id", "chosen", "code", "sentence")}
    only_wait = {row["id"]: row["status"] for row in rows if row["status"] in AT_WORK and _only_wait(jobs[row["id"]])}
    silent = without_pilots(only_wait, timezone.now())
    found: dict[int, dict[str, Any]] = {}
    for row in rows:
        of_task = jobs[row["id"]]
        running = sum(of_task.get(status, 0) for status in JOB_AT_PILOT)
        queued = sum(of_task.get(status, 0) for status in JOB_QUEUED)
        failed, finished = of_task.get(JobStatus.FAILED, 0), of_task.get(JobStatus.FINISHED, 0)
        verdict = verdicts.get(row["id"])
        is_blocked = not running and not queued and row["status"] != TaskStatus.DONE
        found[row["id"]] = {
            "running": running,
            "queued": queued,
            "failed": failed,
            "finished": finished,
            "failure_percent": round(100 * failed / (failed + finished), 1) if failed + finished else None,
            "reason": verdict.code if is_blocked and verdict is not None and not verdict.chosen else "",
            "blocked_by": blocking(row["status"], row["error_dialog"], verdict)
            if is_blocked
            else silent.get(row["id"], ""),
        }
    return found


AT_WORK: Final = frozenset({TaskStatus.SCOUTING, TaskStatus.RUNNING})
"""States of tasks that may wait for nothing but pilots; of others the state says more."""


def _only_wait(jobs: Mapping[str, int]) -> bool:
    return bool(jobs.get(JobStatus.ACTIVATED)) and not any(jobs.get(status) for status in JOB_AT_PILOT)


def _of_sites(rows: Sequence[Row]) -> Mapping[Any, Row]:
    """At how many sites each task has open jobs. One query."""
    of_tasks = Job.objects.open().filter(task_id__in=[row["id"] for row in rows]).order_by().values_list("task_id")
    counted: dict[Any, int] = dict(of_tasks.annotate(n=Count("site", distinct=True)))
    return {row["id"]: {"sites": counted.get(row["id"], 0)} for row in rows}


def _since(rows: Sequence[Row]) -> Mapping[Any, Row]:
    """No query."""
    moments = ("frozen_time", "state_change_time", "modification_time")
    return {row["id"]: {"since": since(row["status"], *(row[name] for name in moments))} for row in rows}


TASKS = Columns(
    Task,
    (
        Column("id", "Task", "id"),
        Column("name", "Name", "name"),
        Column("status", "Status", "task_status"),
        Batch(
            (
                Column(
                    "since",
                    "In this status",
                    "ago",
                    shown=False,
                    help="time since the status was set, retries of a wait not counted",
                ),
            ),
            _since,
            needs=("status", "frozen_time", "state_change_time", "modification_time"),
        ),
        Column(
            "state_change_time", "Status changed", "ago", shown=False, help="last change, retries of a wait included"
        ),
        # What decides whether somebody has to look stands first.
        Batch(
            (
                Column("blocked_by", "Blocked by", "sentence"),
                Column("failed", "Failed", "number", help="failed jobs"),
                Column("failure_percent", "Failure %", "percent", help="failed jobs among ended jobs, in per cent"),
                Column("running", "Running", "number", help="jobs at pilots"),
                Column("queued", "Queued", "number", help="jobs that wait for a pilot"),
                Column("finished", "Finished", "number", shown=False, help="finished jobs"),
                Column("reason", "Reason", "code", shown=False, help="code of the broker's last refusal"),
            ),
            _of_jobs,
            needs=("status", "error_dialog"),
        ),
        Batch(
            (
                Column("progress", "Progress", "progress", help="finished input files, in per cent"),
                Column("files", "Files", "number", shown=False, help="input files"),
                Column("files_finished", "Files done", "number", shown=False),
                Column("files_failed", "Files failed", "number", shown=False),
                Column("files_working", "Files in jobs", "number", shown=False),
                Column(
                    "files_waiting", "Files left", "number", shown=False, help="not in a job and not failed permanently"
                ),
                Column("events", "Events", "number", shown=False),
                Column("events_used", "Events used", "number", shown=False),
                Column("last_progress", "Last progress", "ago", shown=False, help="when its input files last changed"),
            ),
            _of_inputs,
        ),
        Batch((Column("sites", "Sites", "number", shown=False, help="sites with open jobs"),), _of_sites),
        Column("user", "User"),
        Column("gshare", "Share"),
        Column("current_priority", "Priority", "number", help="higher is served first"),
        Column("task_priority", "Initial priority", "number", shown=False, help="as submitted"),
        Column("task_type", "Type", shown=False),
        Column("work_queue", "Work queue", source="work_queue__name", shown=False),
        Column("creation_date", "Created", "ago", shown=False),
        Column("nucleus", "Nucleus", shown=False),
        Column("site", "Bound to site", shown=False),
        Column("core_count", "Cores", "number", shown=False),
        Column("ram_count", "Memory", "number", shown=False, help="in the unit of the next column"),
        Column("ram_unit", "Memory unit", shown=False),
        Column("resource_type", "Resource", shown=False),
        Column("prod_source_label", "Label", shown=False),
        Column("processing_type", "Processing", shown=False),
        Column("working_group", "Group", shown=False),
        Column("vo", "VO", shown=False),
        Column("campaign", "Campaign", shown=False),
        Column("req_id", "Request", "number_plain", shown=False),
        Column("parent_id", "Parent", "number_plain", shown=False),
        Column("attempt", "Attempt", "number", shown=False),
        Column(
            "start_time", "Started", "ago", shown=False, help="when this attempt was refined, or its first job was made"
        ),
        Column("end_time", "Ended", "ago", shown=False),
        Column("modification_time", "Changed", "ago", shown=False),
        Column("throttled_time", "Throttled", "ago", shown=False),
        Column("ttc_requested", "Deadline", "ago", shown=False),
        Column(
            "ttc_predicted",
            "Expected end",
            "ago",
            shown=False,
            help="at the rate at which its last hours finished files",
        ),
        Column(
            "ttc_prediction_date", "Expectation of", "ago", shown=False, help="when its expected end was worked out"
        ),
        Column(
            "failure_rate",
            "Failure rate",
            "percent",
            shown=False,
            help="failed among ended jobs, archived ones too",
        ),
        Column("super_status", "Coarse status", shown=False, help="as production systems and pbook show it"),
        Column("ami_flag", "Metadata", shown=False, help="READY: outputs are complete, for catalogues of metadata"),
        Column(
            "rescue_time", "Rescued", "ago", shown=False, help="when it was last freed from a process that was gone"
        ),
        Column("term_condition", "Submitted from", shown=False, help="operating system of the submitting machine"),
        Column("cpu_efficiency", "CPU efficiency", "percent", shown=False),
        Column("error_dialog", "Message", "sentence", shown=False),
    ),
)
