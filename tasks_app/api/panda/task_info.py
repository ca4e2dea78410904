"""What PanDA's clients ask about one task, and about those that changed: v1."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes

from jedisite.identity.callers import Right
from tasks_app.api.panda.call_params import Flag, Id, Listed, Moment, Number, Params, Text
from tasks_app.api.panda.calls import Answer, Ask, call
from tasks_app.api.panda.job_info import MOST_JOBS, described_of_task, ids_of_task
from tasks_app.api.panda.task_list import MOST_TASKS, told_tasks
from tasks_app.api.panda.wire import envelope, refused
from tasks_app.domain.states import JobStatus
from tasks_app.models import Dataset, File, Job, JobArchive, Task, TaskParams
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.refining.offered import MERGES

MOST_IDS = 100_000
MOST_FILES = 100_000
UNSUCCESSFUL = (JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.CLOSED)


class TaskParamsOf(Params):
    task_id = Id()


def of_task(function: Callable[[Ask, Task], HttpResponse]) -> Answer:
    """For calls about one task: refused when there is no such task."""

    def answer(ask: Ask) -> HttpResponse:
        task = Task.objects.filter(pk=ask.given["task_id"]).first()
        return function(ask, task) if task else refused(f"there is no task {ask.given['task_id']}")

    answer.__name__, answer.__doc__, answer.__module__ = function.__name__, function.__doc__, function.__module__
    return answer


@call("task/get_status", "GET", Right.READ, TaskParamsOf, data=OpenApiTypes.STR)
@of_task
def get_status(ask: Ask, task: Task) -> HttpResponse:
    """The state of a task."""
    return envelope(task.status)


@call("task/get_job_ids", "GET", Right.READ, TaskParamsOf)
@of_task
def get_job_ids(ask: Ask, task: Task) -> HttpResponse:
    """Ids of the jobs of a task, oldest first; of very many the newest."""
    found = ids_of_task(task.id, MOST_IDS)
    return envelope(found, message=_cut(found, MOST_IDS, "jobs"))


@call("task/get_task_parameters", "GET", Right.READ, TaskParamsOf, data=OpenApiTypes.OBJECT)
@of_task
def get_task_parameters(ask: Ask, task: Task) -> HttpResponse:
    """The dictionary that was submitted, with what was changed since."""
    stored = TaskParams.objects.filter(pk=task.id).first()
    return envelope(stored.params) if stored else refused(f"the parameters of task {task.id} no longer exist")


@call("task/get_detailed_info", "GET", Right.READ, TaskParamsOf, data=OpenApiTypes.OBJECT)
@of_task
def get_detailed_info(ask: Ask, task: Task) -> HttpResponse:
    """All that is known of a task."""
    return envelope(told_tasks(Task.objects.filter(pk=task.id))[0])


@call("task/get_parent_detailed_info", "GET", Right.READ, TaskParamsOf, data=OpenApiTypes.OBJECT)
@of_task
def get_parent_detailed_info(ask: Ask, task: Task) -> HttpResponse:
    """All that is known of the task whose outputs a task reads; of itself when it reads none's."""
    found = told_tasks(Task.objects.filter(pk=task.parent_id or task.id))
    return envelope(found[0]) if found else refused(f"the parent {task.parent_id} of task {task.id} no longer exists")


class DetailsParams(TaskParamsOf):
    include_parameters = Flag(required=False, allow_null=True, help_text="also the submitted dictionary")
    include_status = Flag(required=False, allow_null=True, help_text="also the state")


@call("task/get_details", "GET", Right.READ, DetailsParams, data=OpenApiTypes.OBJECT)
@of_task
def get_details(ask: Ask, task: Task) -> HttpResponse:
    """Datasets, jobs and numbers of files of a task, as clients merge them into what they know."""
    datasets = list(Dataset.objects.shown().of_task(task.id))
    inputs = [d for d in datasets if d.type in INPUT_TYPES and d.master_id is None]
    jobs: list[int] = []
    merges: list[int] = []
    for model in (JobArchive, Job):
        rows: QuerySet[Any, Any] = model.objects.filter(task_id=task.id).order_by("-id")
        for job_id, kind in rows.values_list("id", "processing_type")[:MOST_IDS]:
            (merges if kind == MERGES else jobs).append(job_id)
    found: dict[str, Any] = {
        "jediTaskID": task.id,
        "inDS": _names(d.container_name or d.name for d in inputs if d.type == "input"),
        "outDS": _names(d.container_name or d.name for d in datasets if d.type == "output"),
        "statistics": _statistics(inputs),
        "PandaID": sorted(jobs),
        "mergePandaID": sorted(merges),
        "mergeStatus": task.status if merges else None,
    }
    if ask.given.get("include_status"):
        found |= {"status": task.status, "errorDialog": task.error_dialog}
    if ask.given.get("include_parameters"):
        stored = TaskParams.objects.filter(pk=task.id).first()
        found["task_parameters"] = stored.params if stored else None
    return envelope(found)


def _names(names: Iterable[str]) -> str:
    return ",".join(dict.fromkeys(names))


def _statistics(inputs: list[Dataset]) -> str:
    """Numbers of input files by what became of them: `finished*3,failed*1,running*2`."""
    finished, failed = sum(d.files_finished for d in inputs), sum(d.files_failed for d in inputs)
    used, files = sum(d.files_used for d in inputs), sum(max(d.files, d.files_to_be_used) for d in inputs)
    running = max(used - finished - failed, 0)
    numbers = {
        "finished": finished,
        "failed": failed,
        "running": running,
        "ready": max(files - finished - failed - running, 0),
    }
    return ",".join(f"{name}*{number}" for name, number in numbers.items() if number)


class JobsParams(TaskParamsOf):
    unsuccessful_only = Flag(required=False, allow_null=True, help_text="only failed, cancelled and closed ones")


@call("task/get_job_descriptions", "GET", Right.READ, JobsParams)
@of_task
def get_job_descriptions(ask: Ask, task: Task) -> HttpResponse:
    """The jobs of a task, oldest first; of very many the newest."""
    found = described_of_task(task.id, UNSUCCESSFUL if ask.given.get("unsuccessful_only") else ())
    return envelope(found, message=_cut(found, MOST_JOBS, "jobs"))


class FilesParams(TaskParamsOf):
    dataset_types = Listed(child=Text(max_length=20), required=False, max_length=20, help_text="inputs when absent")


@call("task/get_datasets_and_files", "GET", Right.READ, FilesParams)
@of_task
def get_datasets_and_files(ask: Ask, task: Task) -> HttpResponse:
    """Datasets of a task with their files."""
    types = ask.given.get("dataset_types") or INPUT_TYPES
    datasets = dict(Dataset.objects.of_task(task.id).filter(type__in=types).values_list("id", "name"))
    files: dict[int, list[dict[str, Any]]] = {dataset_id: [] for dataset_id in datasets}
    rows = File.objects.filter(task_id=task.id, dataset_id__in=datasets).order_by("dataset_id", "id")
    count = 0
    for dataset_id, lfn, scope, file_id, status in rows.values_list("dataset_id", "lfn", "scope", "id", "status")[
        :MOST_FILES
    ]:
        files[dataset_id].append({"lfn": lfn, "scope": scope, "id": file_id, "status": status})
        count += 1
    if not datasets:
        return refused(f"task {task.id} has no datasets of the types {', '.join(types)}")
    message = f"only the first {MOST_FILES} files" if count == MOST_FILES else ""
    return envelope([{"dataset": {"name": datasets[d], "id": d}, "files": files[d]} for d in datasets], message=message)


class ModifiedParams(Params):
    since = Moment()
    dn = Text(required=False, allow_null=True, max_length=250, help_text="owner of the tasks; the caller when absent")
    full = Flag(required=False, allow_null=True, help_text="ignored: answers are always full")
    min_task_id = Number(required=False, allow_null=True)
    prod_source_label = Text(required=False, allow_null=True, max_length=20)


@call("task/get_tasks_modified_since", "GET", Right.READ, ModifiedParams)
def get_tasks_modified_since(ask: Ask) -> HttpResponse:
    """Tasks that changed since a moment, oldest first; of very many the first."""
    given = ask.given
    found = Task.objects.filter(user=given.get("dn") or ask.caller.name, modification_time__gte=given["since"])
    if given.get("min_task_id"):
        found = found.filter(id__gt=given["min_task_id"])
    if given.get("prod_source_label"):
        found = found.filter(prod_source_label=given["prod_source_label"])
    tasks = told_tasks(found.order_by("id")[:MOST_TASKS])
    return envelope(tasks, message=_cut(tasks, MOST_TASKS, "tasks"))


def _cut(found: list[Any], most: int, what: str) -> str:
    return f"there may be more than these {most} {what}" if len(found) == most else ""
