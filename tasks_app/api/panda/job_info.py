"""Jobs as PanDA's clients read them: the columns of a JobSpec, and its files as FileSpecs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet

from tasks_app.api.panda.panda_names import FILE, JOB, rows_told
from tasks_app.models import Job, JobArchive, JobFile, JobMetadata, JobParams

MOST_JOBS = 5500
"""Jobs that one call describes."""


def described(job_ids: Sequence[int], *, archived: bool = True) -> list[dict[str, Any] | None]:
    """The jobs in the order of their ids, None for one that is not there. Five queries for any number of jobs.

    With `archived` also those that ended long ago.
    """
    wanted = set(job_ids)
    found = _rows(Job.objects.filter(id__in=wanted))
    if archived and len(found) < len(wanted):
        found |= _rows(JobArchive.objects.filter(id__in=wanted - found.keys()))
    _complete(found)
    return [found.get(job_id) for job_id in job_ids]


def described_of_task(task_id: int, statuses: Sequence[str] = (), most: int = MOST_JOBS) -> list[dict[str, Any]]:
    """The jobs of a task in these states (in all, when none is given), oldest first; the newest `most` of them."""
    chosen = {"task_id": task_id, **({"status__in": list(statuses)} if statuses else {})}
    found = _rows(Job.objects.filter(**chosen).order_by("-id")[:most])
    if len(found) < most:
        found |= _rows(JobArchive.objects.filter(**chosen).order_by("-id")[: most - len(found)])
    _complete(found)
    for job in found.values():
        started, ended = job["startTime"], job["endTime"]
        job["jobDuration"] = int((ended - started).total_seconds()) if started and ended else None
        job["extendedProdSourceLabel"] = job["prodSourceLabel"]
    return [found[job_id] for job_id in sorted(found)]


def ids_of_task(task_id: int, most: int) -> list[int]:
    """Ids of the jobs of a task, the newest `most` of them, oldest first."""
    living, old = (
        model.objects.filter(task_id=task_id).order_by("-id").values_list("id", flat=True)[:most]
        for model in (Job, JobArchive)
    )
    return sorted({*living, *old})[-most:]


def _rows(jobs: QuerySet[Any]) -> dict[int, dict[str, Any]]:
    return {job["PandaID"]: job for job in rows_told(jobs, JOB)}


def _complete(jobs: dict[int, dict[str, Any]]) -> None:
    """Add command lines, payloads' reports and files."""
    params = dict(JobParams.objects.filter(id__in=jobs).values_list("id", "params"))
    reports = dict(JobMetadata.objects.filter(id__in=jobs).values_list("id", "metadata"))
    files: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for file in rows_told(JobFile.objects.filter(job_id__in=jobs).order_by("id"), FILE):
        files[file["PandaID"]].append(file)
    for job_id, job in jobs.items():
        report = reports.get(job_id)
        job.update(
            jobParameters=params.get(job_id, ""),
            metadata=None if report is None else json.dumps(report),
            Files=files.get(job_id, []),
        )
