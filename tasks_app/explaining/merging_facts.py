"""What is said about the merging of a job: by whom its output is merged, or whose outputs it merges."""

from __future__ import annotations

from dataclasses import dataclass

from tasks_app.domain.range_jobs import MERGE, TAKING
from tasks_app.domain.states import JOB_FINAL, JobStatus
from tasks_app.generation.merge_turns import WAITS
from tasks_app.models import Job, JobRetryHistory, Task
from tasks_app.models.job import JobColumns
from tasks_app.refining.offered import MERGES

SHOWN = 10


@dataclass(frozen=True, slots=True)
class Merging:
    """A sentence that goes on with some jobs; `more`: there are others."""

    sentence: str
    jobs: tuple[Job, ...] = ()
    more: bool = False


def of_job(job: JobColumns) -> Merging | None:
    """None for a job that has nothing to do with merging."""
    if job.event_service in TAKING:
        return _of_ranges(job)
    links = JobRetryHistory.objects.filter(relation_type="merge", task_id=job.task_id)
    if job.processing_type == MERGES:
        made_by = list(
            links.filter(new_job_id=job.id).order_by("old_job_id").values_list("old_job_id", flat=True)[: SHOWN + 1]
        )
        found = tuple(Job.objects.filter(pk__in=made_by[:SHOWN]).order_by("id"))
        return Merging("The job merges the outputs of other jobs:", found, len(made_by) > SHOWN) if found else None
    if job.status not in (JobStatus.MERGING, JobStatus.FINISHED):
        return None
    latest = links.filter(old_job_id=job.id).order_by("-new_job_id").values_list("new_job_id", flat=True).first()
    merge_job = Job.objects.filter(pk=latest).first() if latest else None
    if job.status == JobStatus.FINISHED:
        return Merging("Its output was merged by", (merge_job,)) if merge_job else None
    failed = merge_job is not None and merge_job.status in (JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.CLOSED)
    if merge_job is None or failed:
        said = _note(job)
        if said:
            return Merging(said)
    if merge_job is None:
        return Merging(
            "Its output waits to be merged: until a merge job is full, or no job of the task is left at the site."
        )
    if failed:
        return Merging("Its output waits to be merged again, after", (merge_job,))
    if merge_job.site != job.site:
        return Merging(
            f"Its output is merged at {merge_job.site}, since {job.site} took no merge jobs, by", (merge_job,)
        )
    return Merging("Its output waits to be merged by", (merge_job,))


def _of_ranges(job: JobColumns) -> Merging | None:
    """The same for a job that took ranges of events: what its jobset has made is merged together."""
    others = Job.objects.filter(task_id=job.task_id, jobset_id=job.jobset_id, event_service__gt=0).exclude(pk=job.id)
    merge_job = others.filter(event_service=MERGE).order_by("-id").first()
    if job.status == JobStatus.FINISHED:
        done = merge_job is not None and merge_job.status == JobStatus.FINISHED
        return Merging("Its output was merged by", (merge_job,)) if merge_job and done else None
    if job.status != JobStatus.MERGING:
        return None
    if merge_job is not None and merge_job.status not in JOB_FINAL:
        return Merging("Its output waits to be merged by", (merge_job,))
    said = "Its output is merged when all ranges of its files are decided"
    ended = (*JOB_FINAL, JobStatus.MERGING)
    at_work = list(others.exclude(event_service=MERGE).exclude(status__in=ended).order_by("id")[: SHOWN + 1])
    if not at_work:
        return Merging(f"{said}.")
    return Merging(f"{said}; it waits for", tuple(at_work[:SHOWN]), len(at_work) > SHOWN)


def _note(job: JobColumns) -> str:
    """The sentence on the task that the queue of this job takes no merge jobs; "" when it takes them."""
    note = Task.objects.filter(pk=job.task_id).values_list("error_dialog", flat=True).first() or ""
    return f"{note[0].upper()}{note[1:]}." if note.startswith(WAITS) and f"{job.site}: " in note else ""


def sentence_on(job: JobColumns) -> str:
    """What the merging of a job's outputs waits for, in a sentence; "" when they are not to be merged."""
    if job.status != JobStatus.MERGING:
        return ""
    found = of_job(job)
    if found is None:
        return ""
    return " ".join([found.sentence, *(f"job {other.id} ({other.status})" for other in found.jobs)])
