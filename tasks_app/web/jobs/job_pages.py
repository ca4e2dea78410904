"""Pages on jobs: the list, one job, and the end of its log."""

from __future__ import annotations

import re
from typing import Any

from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from jedisite.database.database_faults import Fault
from jedisite.identity.callers import Caller, Right, caller_of, needs
from jedisite.web import page_places
from jedisite.web.problems import unavailable
from tasks_app.ddm import small_files
from tasks_app.ddm.fetching import is_made
from tasks_app.ddm.log_reading import LOOKS, TooManyLogReads
from tasks_app.domain.job_errors import error_of
from tasks_app.domain.states import JOB_FINAL, JobStatus
from tasks_app.explaining import merging_facts, time_split
from tasks_app.explaining.why_job import builder_of
from tasks_app.lists import job_columns as columns
from tasks_app.models import Job, JobArchive, JobFile, JobRetryHistory, JobStatusLog
from tasks_app.models.dataset import LOG_TYPES
from tasks_app.models.job import JobColumns, living_or_archived
from tasks_app.web.jobs import job_doing, job_facts, job_plots
from tasks_app.web.jobs.job_listing import LISTING, archive_links
from tasks_app.web.lists import list_page
from tasks_app.web.lists.misspelt import takes
from tasks_app.workflows.places_of_tasks import place_of_job

REFRESH_S = 5
FILES = 200
SHOWN_BYTES = 24_000
LONGEST_FIND = 100
_HAS_LOG = JOB_FINAL | {JobStatus.MERGING}


@needs(Right.READ)
@require_safe
def job_list(request: HttpRequest) -> HttpResponse:
    """Jobs, newest first unless the address says another order; with `archived=true` those that ended long ago."""
    archived = request.GET.get("archived") == "true"
    return list_page.show(
        request,
        LISTING,
        JobArchive.objects.all() if archived else Job.objects.all(),
        more=(lambda rows: {"plots": job_plots.of(rows)}) if request.GET.get("plots") == "on" else None,
        plots_base=_base(request.GET),
        fixed={"archived": "true"} if archived else {},
        archive_links=archive_links(request.GET, request.path),
        plots_url=_toggled(request.GET, "plots"),
    )


def _base(given: QueryDict) -> str:
    """The query string to which a queue and a state can be added."""
    kept = given.copy()
    for name in ("site", "status", "cursor", "view"):
        kept.pop(name, None)
    return f"{kept.urlencode(safe=',')}&" if kept else ""


def _toggled(given: QueryDict, name: str) -> str:
    """The query string with a switch turned."""
    changed = given.copy()
    if changed.pop(name, None) is None:
        changed[name] = "on"
    return changed.urlencode(safe=",") or "view=all"


@needs(Right.READ)
@require_safe
@takes()
def job_page(request: HttpRequest, job_id: int) -> HttpResponse:
    """One job, from the living table or the archive."""
    job = job_of(job_id)
    files = list(JobFile.objects.filter(job_id=job_id).order_by("type", "id")[: FILES + 1])
    now = timezone.now()
    context: dict[str, Any] = {
        "section": "jobs",
        "job": job,
        "error": error_of(job.__dict__),
        "waits_for": builder_of(job),
        "merging": merging_facts.of_job(job),
        "buttons": job_doing.job_buttons(job, caller_of(request)),
        "log": JobStatusLog.objects.filter(job_id=job_id).order_by("id")[:200],
        "files": [(file, _content_of(file, caller_of(request), job)) for file in files[:FILES]],
        "more_files": len(files) > FILES,
        "package": place_of_job(job_id, job.task_id),
        "beside": job_facts.beside(job_id),
        "attempts": job_facts.attempts(job_id),
        "added": page_places.parts_of_job(job),
        "common": job_facts.commonness(job, now) if job.status == JobStatus.FAILED else None,
        "sent": job_facts.sent_here(job),
        "walltime_s": columns.walltime_s(job.__dict__, now),
        "efficiency": columns.efficiency_percent(job.__dict__, now),
        "queued_s": columns.queued_s(job.__dict__, now),
        "time_split": time_split.of_job(job, now),
        "final": job.status in JOB_FINAL,
        "has_log": job.status in _HAS_LOG,
        "seconds": REFRESH_S,
        "now": now,
    }
    return render(request, "tasks_app/job_page.html", context)


def _content_of(file: JobFile | None, caller: Caller, job: JobColumns) -> str:
    """The address of a file that the job made; "" when there is none, or the caller may not have it."""
    if file is None or not file.file_id or not is_made(file.type, file.surl):
        return ""
    may = caller.may_fetch(job.user or "", job.working_group)
    return reverse("api-v2:file-content", args=[file.file_id]) if may else ""


@needs(Right.READ)
@require_safe
@takes("member", "find", "line")
def job_log(request: HttpRequest, job_id: int) -> HttpResponse:
    """The ends of what the payload and the pilot wrote, read from the log file in the storage element.

    `?member=<name>` shows another file of the archive. Those who may have the archive look through all of a text:
    `find=<text>` lists the lines that hold it, and `line=<number>` shows what stands around that line.
    """
    job = job_of(job_id)
    log_file = JobFile.objects.filter(job_id=job_id, type__in=LOG_TYPES).order_by("id").first()
    found: small_files.Log | None = None
    problem, member = "", request.GET.get("member", "")[: small_files.LONGEST_NAME]
    content_url = _content_of(log_file, caller_of(request), job)
    find = request.GET.get("find", "").strip()[:LONGEST_FIND] if content_url else ""
    around = int(line) if content_url and re.fullmatch("[1-9][0-9]{0,9}", line := request.GET.get("line", "")) else 0
    if log_file is None:
        problem = "The job has no log file."
    elif job.status not in _HAS_LOG:
        problem = "The log is available when the job has ended."
    else:
        try:
            path = small_files.path_of(log_file.surl, log_file.lfn, scope=log_file.scope)
            with LOOKS.place(caller_of(request).name):
                found = small_files.read_log(path, limit=SHOWN_BYTES, member=member, find=find, around=around)
        except TooManyLogReads as exc:
            return unavailable(request, Fault(str(exc), exc.wait))
        except small_files.StorageError as exc:
            problem = str(exc)
    context = {
        "section": "jobs",
        "job": job,
        "log_file": log_file,
        "content_url": content_url,
        "found": found,
        "member": member,
        "find": find,
        "around": around,
        "problem": problem,
    }
    return render(request, "tasks_app/job_log.html", context)


def job_of(job_id: int) -> JobColumns:
    """A job of the living table or the archive. Raises Http404."""
    found = living_or_archived(job_id)
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
    found = (
        Job.objects.filter(pk__in=sorted(ids))
        .order_by("id")
        .values("id", "status", "site", "attempt", "creation_time", "start_time", "end_time", "modification_time")
    )
    known: dict[int, dict[str, Any]] = {row["id"]: dict(row) for row in found}
    return [known.get(job, {"id": job, "status": None, "end_time": None}) for job in sorted(ids)]
