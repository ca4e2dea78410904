"""Columns of the list of a task's input and output files, and why those fail that have no attempt left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from jedisite.web.columns import Batch, Column, Columns, Row
from tasks_app.domain.job_errors import ALL_FIELDS, main_error
from tasks_app.domain.states import FileStatus
from tasks_app.inputs import missing_files
from tasks_app.models import Dataset, File, Job, JobArchive, JobFile

_FIELDS = ("id", *ALL_FIELDS)


def _errors(rows: Sequence[Row]) -> Mapping[Any, Row]:
    """Why a file is not processed: the error of its last failed job, or why it is missing."""
    missing = [row["id"] for row in rows if row["status"] == FileStatus.MISSING]
    why = missing_files.reasons(missing) if missing else {}
    return {**_of_jobs(rows), **{file_id: {"error_text": said} for file_id, said in why.items()}}


def _of_jobs(rows: Sequence[Row]) -> Mapping[Any, Row]:
    """The last failed job of each file with its error. Three queries; only files that failed are asked for."""
    wanted = [row["id"] for row in rows if row["failed_attempt"] or row["status"] == "failed"]
    if not wanted:
        return {}
    jobs_of: dict[int, list[int]] = {}
    for file_id, job_id in (
        JobFile.objects.filter(file_id__in=wanted).values_list("file_id", "job_id").order_by("job_id")
    ):
        if file_id is not None:
            jobs_of.setdefault(file_id, []).append(job_id)
    ids = [job_id for jobs in jobs_of.values() for job_id in jobs]
    failed: dict[int, dict[str, Any]] = {}
    for model in (Job, JobArchive):
        for row in model._default_manager.filter(pk__in=ids, status="failed").values(*_FIELDS):
            failed[row["id"]] = row
    found: dict[int, dict[str, Any]] = {}
    for file_id, jobs in jobs_of.items():
        last = next((failed[job_id] for job_id in reversed(jobs) if job_id in failed), None)
        if last is not None:
            error = main_error(last)
            said = {"last_error": error.key, "error_text": error.sentence} if error else {}
            found[file_id] = {"last_failed_job": last["id"], **said}
    return found


def _of_datasets(rows: Sequence[Row]) -> Mapping[Any, Row]:
    """Names of the datasets. One query."""
    names = dict(Dataset.objects.filter(pk__in={row["dataset_id"] for row in rows}).values_list("id", "name"))
    return {row["id"]: {"dataset": names.get(row["dataset_id"], "")} for row in rows}


_PROCESSING: Final = {
    **dict.fromkeys(("pending", "defined", "waiting", "assigned", "activated", "throttled", "sent"), "queued"),
    "holding": "running",
}


def _processing(rows: Sequence[Row]) -> Mapping[Any, Row]:
    """How far the job of each running file is, in JEDI's words; of others their own state. One query."""
    wanted = {row["job_id"] for row in rows if row["status"] == "running" and row["job_id"]}
    states = dict(Job.objects.filter(pk__in=wanted).values_list("id", "status")) if wanted else {}

    def of(row: Row) -> str:
        state = states.get(row["job_id"]) if row["status"] == "running" else None
        return _PROCESSING.get(state, state) if state else str(row["status"])

    return {row["id"]: {"proc_status": of(row)} for row in rows}


FILES = Columns(
    File,
    (
        Column("lfn", "File", "name"),
        Column("id", "Number", "id", shown=False),
        Column("type", "Use"),
        Column("status", "Status", "status", source="seen_status"),
        Column("attempt", "Attempts", "number", help="ended attempts"),
        Column("max_attempt", "Max", "number", help="maximum number of attempts"),
        Column("failed_attempt", "Failed", "number", help="failed attempts"),
        Batch(
            (
                Column("last_error", "Last error", "code", help="of the last failed job of the file"),
                Column("error_text", "Details", "sentence"),
                Column("last_failed_job", "Failed job", "id"),
            ),
            _errors,
            needs=("status", "failed_attempt"),
        ),
        Column("job_id", "Job", "id", help="the current job of the file, or the last one"),
        Column("size", "Size", "bytes"),
        Column("events", "Events", "number"),
        Batch(
            (Column("proc_status", "Processing", shown=False, help="how far the job that has the file is"),),
            _processing,
            needs=("status", "job_id"),
        ),
        Batch((Column("dataset", "Dataset", "name"),), _of_datasets, needs=("dataset_id",)),
        Column("dataset_id", "Dataset number", "number_plain", shown=False),
        Column("start_event", "First event", "number", shown=False),
        Column("end_event", "Last event", "number", shown=False),
        Column("lumi_block", "Lumi block", "number", shown=False),
        Column("boundary_id", "Group", "number_plain", shown=False, help="files of one group stay together"),
        Column("ram_count", "Memory", "number", shown=False),
        Column("checksum", "Checksum", "code", shown=False),
        Column("guid", "GUID", "code", shown=False),
        Column("scope", "Scope", shown=False),
        Column("surl", "Address", "name", shown=False),
        Column("last_attempt_time", "Last tried", "ago", shown=False),
        Column("creation_date", "Listed", "ago", shown=False),
    ),
)
DATASET_FILES = Columns(File, tuple(p for p in FILES.parts if not (isinstance(p, Batch) and p.compute is _of_datasets)))
"""The same for the list of one dataset's files, which need not say whose they are."""
