"""Subjobs of a task: the groups of its files, numbered from 0, each with its state, its jobs, its error and its outputs.

A subjob keeps its number over all attempts. Those of `loadXML` are there as soon as the task is, jobs or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from tasks_app.domain.job_errors import ALL_FIELDS, PAYLOAD, error_of
from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.gpi.rules.master_status import FAILED, FINAL, KILLED, SUBMITTED, master_status, subjob_status
from tasks_app.models import Command, Dataset, File, Job, JobArchive, JobFile, Task, TaskParams
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.models.file import GIVEN_UP
from tasks_app.params.command_parameters import subjobs_in
from tasks_app.params.job_groups import read_groups

OUTPUT: Final = ("lfn", "size", "checksum")
_RETRIES: Final = ("retry", "increase_attempts")


def subjobs_of(task: Task, numbers: Sequence[int] | None = None, *, outputs: bool = False) -> dict[str, Any]:
    """The state of the task as a master, the numbers of subjobs by state, and the subjobs, or those of the numbers.

    Up to ten queries, however many subjobs there are.
    """
    # In this order: a command that is carried out meanwhile shows in what is read after it.
    waiting = _resubmitted(task.id)
    task_status = Task.objects.values_list("status", flat=True).get(pk=task.id)
    rows = _groups(task.id)
    jobs_of = _jobs([file.id for file in rows.values()])
    last = _last_jobs({jobs[-1] for jobs in jobs_of.values()})
    final = task_status in TASK_FINAL
    found: list[dict[str, Any]] = []
    for number in _numbers(task.id, rows):
        file = rows.get(number)
        jobs = jobs_of.get(file.id, []) if file else []
        job = last.get(jobs[-1]) if jobs else None
        status = subjob_status(
            file.status if file else "ready",
            str(job["status"]) if job else None,
            given_up=bool(getattr(file, "given_up", False)),
            task_is_final=final,
            task_is_broken=task_status == TaskStatus.BROKEN,
        )
        if status in (FAILED, KILLED) and (waiting is None or number in waiting):
            status = SUBMITTED
        found.append({"number": number, "status": status, "jobs": jobs, **_end(job if status in FINAL else None)})
    wanted = None if numbers is None else set(numbers)
    chosen = [one for one in found if wanted is None or one["number"] in wanted]
    if outputs:
        _add_outputs(chosen)
    return {
        "task_id": task.id,
        "task_status": task_status,
        "status": master_status(one["status"] for one in found),
        "counts": dict(Counter(one["status"] for one in found)),
        "subjobs": chosen,
    }


def _resubmitted(task_id: int) -> set[int] | None:
    """The subjobs that a command which waits will try again; None when that is all."""
    found: set[int] = set()
    for (parameters,) in Command.objects.filter(task_id=task_id, status="waiting", name__in=_RETRIES).values_list(
        "parameters"
    ):
        named = subjobs_in(parameters or {})
        if named is None:
            return None
        found.update(named)
    return found


def _groups(task_id: int) -> dict[int, File]:
    """The first file of each group, with its state and whether it is given up."""
    masters = Dataset.objects.filter(task_id=task_id, type__in=INPUT_TYPES, master_id=None).values_list("id", flat=True)
    files = File.objects.filter(task_id=task_id, dataset_id__in=list(masters), boundary_id__isnull=False)
    chosen = files.annotate(given_up=GIVEN_UP).only("id", "status", "boundary_id")
    first = chosen.order_by("boundary_id", "id").distinct("boundary_id")
    return {file.boundary_id: file for file in first if file.boundary_id is not None}


def _numbers(task_id: int, rows: Mapping[int, File]) -> Iterable[int]:
    """Of `loadXML` all groups, also those without a file; with groupBoundaryID only those that there are, since data management
    numbers them as it likes."""
    with_xml = TaskParams.objects.filter(pk=task_id, params__has_key="loadXML")
    if rows:
        return range(1 + max(rows)) if with_xml.exists() else sorted(rows)
    xml = with_xml.values_list("params__loadXML", flat=True).first()
    return range(len(read_groups(xml).groups)) if isinstance(xml, str) and xml else ()


def _jobs(file_ids: list[int]) -> dict[int, list[int]]:
    """The jobs that had each of these files, in order."""
    found: dict[int, list[int]] = {}
    uses = JobFile.objects.filter(file_id__in=file_ids).order_by("job_id").values_list("file_id", "job_id")
    for file_id, job_id in uses:
        if file_id is not None:
            found.setdefault(file_id, []).append(job_id)
    return found


def _last_jobs(ids: set[int]) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for model in (JobArchive, Job):
        rows = model._default_manager.filter(pk__in=ids).values("id", "status", *ALL_FIELDS)
        found.update((row["id"], row) for row in rows)
    return found


def _end(job: dict[str, Any] | None) -> dict[str, Any]:
    """How the last job ended: the exit code of its payload, and a sentence."""
    error = error_of(job) if job else None
    code: int | None = 0 if job and job["status"] == "finished" else None
    if job and error:
        code = job["exe_error_code"] or (int(error.code) if error.component in PAYLOAD else None)
    return {"exit_code": code, "error": error.sentence if error else ""}


def _add_outputs(subjobs: list[dict[str, Any]]) -> None:
    """The outputs of the last jobs of subjobs that are completed. One query."""
    of_job = {one["jobs"][-1]: one for one in subjobs if one["status"] == "completed" and one["jobs"]}
    for one in subjobs:
        one["outputs"] = []
    made = JobFile.objects.filter(job_id__in=list(of_job), type="output", status="finished").order_by("job_id", "id")
    for job_id, file_id, *row in made.values_list("job_id", "file_id", *OUTPUT):
        of_job[job_id]["outputs"].append({"id": file_id, **dict(zip(OUTPUT, row, strict=True))})
