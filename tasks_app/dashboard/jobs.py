"""Pages on jobs: the list, one job, and the end of its log."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from jedisite.identity import Right, caller_of, needs
from tasks_app.dashboard import errors, job_doing, merging, pages, storage
from tasks_app.explaining.jobs import builder_of
from tasks_app.filtersets import JobFilter
from tasks_app.models import (
    Job,
    JobArchive,
    JobFile,
    JobMetadata,
    JobParams,
    JobRetryHistory,
    JobStatusLog,
    RetryNote,
)
from tasks_app.models.job import JobColumns
from tasks_app.states import JOB_FINAL, JobStatus

REFRESH_S = 5
FILES = 200
SHOWN_BYTES = 24_000
_HAS_LOG = JOB_FINAL | {JobStatus.MERGING}


@needs(Right.READ)
@require_safe
def job_list(request: HttpRequest) -> HttpResponse:
    """Jobs, newest first, filtered by the query string."""
    chosen = JobFilter(request.GET, queryset=Job.objects.all())
    page = pages.keyset_page(request, chosen.qs if chosen.is_valid() else Job.objects.none())
    now = timezone.now()
    context = {
        "section": "jobs",
        "page": page,
        "rows": [(job, error_of(job), _walltime_s(job, now)) for job in page.rows],
        "filters": chosen.form,
        "statuses": [status.value for status in JobStatus],
        "filtered": any(value for name, value in request.GET.items() if name != "before"),
        "seconds": REFRESH_S,
        "now": now,
    }
    return render(request, "tasks_app/job_list.html", context)


@needs(Right.READ)
@require_safe
def job_page(request: HttpRequest, job_id: int) -> HttpResponse:
    """One job, from the living table or the archive."""
    job = job_of(job_id)
    files = list(JobFile.objects.filter(job_id=job_id).order_by("type", "id")[: FILES + 1])
    now = timezone.now()
    context: dict[str, Any] = {
        "section": "jobs",
        "job": job,
        "error": error_of(job),
        "waits_for": builder_of(job),
        "merging": merging.of_job(job),
        "buttons": job_doing.job_buttons(job, caller_of(request)),
        "log": JobStatusLog.objects.filter(job_id=job_id).order_by("id")[:200],
        "files": files[:FILES],
        "more_files": len(files) > FILES,
        "params": JobParams.objects.filter(pk=job_id).values_list("params", flat=True).first(),
        "metadata": JobMetadata.objects.filter(pk=job_id).values_list("metadata", flat=True).first(),
        "attempts": attempts_of(job_id),
        "retry_notes": RetryNote.objects.filter(job_id=job_id).order_by("id")[:20] if job.status == "failed" else (),
        "walltime_s": _walltime_s(job, now),
        "efficiency": _efficiency_percent(job, now),
        "queued_s": (job.start_time - job.creation_time).total_seconds() if job.start_time else None,
        "final": job.status in JOB_FINAL,
        "has_log": job.status in _HAS_LOG,
        "seconds": REFRESH_S,
        "now": now,
    }
    return render(request, "tasks_app/job_page.html", context)


@needs(Right.READ)
@require_safe
def job_log(request: HttpRequest, job_id: int) -> HttpResponse:
    """The ends of what the payload and the pilot wrote, read from the log file in the storage element.

    `?member=<name>` shows another file of the archive.
    """
    job = job_of(job_id)
    log_file = JobFile.objects.filter(job_id=job_id, type__in=("log", "trn_log")).order_by("id").first()
    found: storage.Log | None = None
    problem, member = "", request.GET.get("member", "")[: storage.LONGEST_NAME]
    if log_file is None:
        problem = "The job has no log file."
    elif job.status not in _HAS_LOG:
        problem = "The log is there when the job has ended."
    else:
        try:
            path = storage.path_of(log_file.surl, log_file.lfn, scope=log_file.scope)
            found = storage.read_log(path, limit=SHOWN_BYTES, member=member)
        except storage.StorageError as exc:
            problem = str(exc)
    context = {"section": "jobs", "job": job, "log_file": log_file, "found": found, "member": member, "problem": problem}
    return render(request, "tasks_app/job_log.html", context)


def error_of(job: JobColumns) -> errors.JobError | None:
    """The main error of a job that ended badly; a pilot's code on a job that goes on is not shown as one."""
    if job.status not in (JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.CLOSED, JobStatus.HOLDING):
        return None
    return errors.main_error(job.__dict__)


def error_words(job: JobColumns) -> str:
    """What is known of why a job ended badly, in a sentence; "" for others."""
    error = error_of(job)
    if error is None:
        return ""
    return f"{error.sentence} ({error.key})"


def merging_words(job: JobColumns) -> str:
    """What the merging of a job's outputs waits for, in a sentence; "" when they are not to be merged."""
    if job.status != JobStatus.MERGING:
        return ""
    found = merging.of_job(job)
    if found is None:
        return ""
    return " ".join([found.sentence, *(f"job {other.id} ({other.status})" for other in found.jobs)])


def job_of(job_id: int) -> JobColumns:
    """A job of the living table or the archive. Raises Http404."""
    found: JobColumns | None = Job.objects.filter(pk=job_id).first() or JobArchive.objects.filter(pk=job_id).first()
    if found is None:
        raise Http404(f"There is no job {job_id}.")
    return found


def attempts_of(job_id: int) -> list[dict[str, Any]]:
    """The jobs of the same attempt chain with their states, oldest first; empty when it stands alone."""
    near = list(
        JobRetryHistory.objects.exclude(relation_type="merge").filter(Q(old_job_id=job_id) | Q(new_job_id=job_id))[:200]
    )
    if not near:
        return []
    origins = {link.origin_job_id for link in near if link.origin_job_id}
    ids = {job_id, *origins}
    for link in near:
        ids |= {link.old_job_id, link.new_job_id}
    found = Job.objects.filter(pk__in=sorted(ids)).order_by("id").values(
        "id", "status", "site", "attempt", "creation_time", "start_time", "end_time", "modification_time"
    )
    known: dict[int, dict[str, Any]] = {row["id"]: dict(row) for row in found}
    return [known.get(job, {"id": job, "status": None}) for job in sorted(ids)]


def _walltime_s(job: JobColumns, now: datetime) -> float | None:
    if job.start_time is None:
        return None
    end = job.end_time or (now if job.status not in JOB_FINAL else job.modification_time)
    return max((end - job.start_time).total_seconds(), 0.0)


def _efficiency_percent(job: JobColumns, now: datetime) -> float | None:
    """CPU time over walltime and cores, in percent."""
    walltime = _walltime_s(job, now)
    if not walltime or job.cpu_time_s is None:
        return None
    return 100 * job.cpu_time_s / walltime / (job.actual_cores or job.core_count or 1)
