"""The refiner: turns submitted parameters into a task with datasets, templates of names, and a template of parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from jedisite.agents import Pass, owner
from tasks_app import moves
from tasks_app.accounting.resource_typing import resource_type
from tasks_app.accounting.unmerged import PROCESSING_TYPE
from tasks_app.ddm import data_management
from tasks_app.ddm.base import UnknownDatasetError
from tasks_app.generating import prepro
from tasks_app.models import Dataset, JobParamsTemplate, OutputTemplate, Task, TaskParams
from tasks_app.models.dataset import MADE_TYPES, OUTPUT_TYPES
from tasks_app.params.schema import ParamErrors, parse
from tasks_app.params.schema import TaskParams as Params
from tasks_app.preprocessed import results_of
from tasks_app.refining.attributes import Attributes
from tasks_app.refining.base import (
    CannotRefine,
    DatasetSpec,
    NotYet,
    ParentView,
    Policy,
    Refined,
    containers_of,
    refine,
)
from tasks_app.refining.preprocessing import with_results
from tasks_app.scopes import scope_of
from tasks_app.states import DatasetStatus, TaskStatus

ME = "refiner"
LIMIT = 50
POLICY = Policy(output_templates=False)
"""Outputs go straight to the datasets that tasks name: nothing makes datasets from templates yet."""

ATTRIBUTES = {field.column: field.attname for field in Task._meta.concrete_fields}
"""The attribute of the task model for each column of JEDI's table."""


SET_BY_MOVES = frozenset(
    {"jeditaskid", "status", "creationdate", "modificationtime", "statechangetime", "lockedby", "lockedtime"}
)


def run(limit: int = LIMIT) -> Pass:
    claimed = moves.claim_tasks(owner(), [TaskStatus.REGISTERED], limit)
    return Pass(moves.for_each(claimed, _refine, by=ME), more=len(claimed) == limit)


def _refine(task_id: int, fence: int) -> None:
    task = Task.objects.get(pk=task_id)
    parent, found_before = _parent_of(task), results_of(task_id)
    try:
        params = parse(TaskParams.objects.get(pk=task_id).params)
        _check_steps(params)
        found = refine(
            params, task_id=task_id, user=task.user, now=timezone.now(), parent=parent, policy=POLICY,
            constituents=constituents_of(params, parent, found_before), preprocessed=found_before,
        )  # fmt: skip
        refined = _check_names(task_id, found)
    except NotYet as exc:
        wait = timedelta(seconds=settings.JEDI_PENDING_RETRY_S)
        moves.set_aside(task_id, fence, by=ME, reason=str(exc), wait=wait, frozen=False)
    except ParamErrors as exc:
        moves.break_task(task_id, fence, by=ME, reason="; ".join(f"{e.field}: {e.message}" for e in exc.errors[:5]))
    except CannotRefine as exc:
        moves.break_task(task_id, fence, by=ME, reason=str(exc))
    else:
        _store(task_id, fence, refined)


NOT_AVAILABLE = {
    "nEventsPerWorker": "event service",
    "inputPreStaging": "staging of inputs from tape",
    "useJobCloning": "copies of jobs",
    "nEsConsumers": "jobs that share the events of one input",
    "fineGrainedProc": "events that are handed out one by one",
    "nJumboJobs": "jumbo jobs",
    "hpoWorkflow": "an optimisation of hyper-parameters",
    "loadXML": "job boundaries given as XML",
    "onSiteMerging": "merging at the site of a job",
    "nEventsPerOutputFile": "merging at the site of a job",
    "segmentedWork": "inputs that are divided into segments",
    "multiStepExec": "payloads of several steps",
    "writeInputToFile": "lists of inputs in files of their own",
}
"""Steps that this site does not take yet: a task that asks for one would run without it, so it is refused."""


def _check_steps(params: Params) -> None:
    """Raise CannotRefine when the task asks for a step that this site cannot take, or calls its jobs merge jobs."""
    if params.text("processingType") == PROCESSING_TYPE:
        raise CannotRefine(f"processingType {PROCESSING_TYPE} is that of jobs which merge what others have written")
    for key, what in NOT_AVAILABLE.items():
        if params.raw.get(key):
            raise CannotRefine(f"{key} asks for {what}, which this site does not offer")


def _parent_of(task: Task) -> ParentView | None:
    if not task.parent_id or task.parent_id == task.id:
        return None
    status = Task.objects.filter(pk=task.parent_id).values_list("status", flat=True).first()
    outputs = Dataset.objects.filter(task_id=task.parent_id, type__in=OUTPUT_TYPES).values_list("name", flat=True)
    return ParentView(task.parent_id, status, frozenset(outputs))


def _check_names(task_id: int, refined: Refined) -> Refined:
    """Make sure that no other task makes files of the same names: serial numbers go on after those of ended tasks.

    Raises CannotRefine when another task with the same names has not ended.
    """
    templates = []
    for template in refined.templates:
        scope = scope_of(refined.datasets[template.dataset].datasetname)
        same = OutputTemplate.objects.filter(file_name_template=template.filenametemplate).exclude(task_id=task_id)
        others = [row for row in same.select_related("dataset") if scope_of(row.dataset.name) == scope]
        if others and "$JEDITASKID" not in template.filenametemplate and "$PANDAID" not in template.filenametemplate:
            running = Task.objects.open().filter(pk__in=[row.task_id for row in others]).first()
            if running is not None:
                raise CannotRefine(
                    f"task {running.id}, which is {running.status}, makes files of the same names "
                    f"({template.filenametemplate}); put $JEDITASKID into the name"
                )
            template = replace(template, serialnr=max([template.serialnr, *(row.serial for row in others)]))
        templates.append(template)
    return replace(refined, templates=tuple(templates))


@transaction.atomic
def _store(task_id: int, fence: int, refined: Refined) -> None:
    """Store what refining found and move the task on; nothing when the claim is gone."""
    if not moves.still_holds(task_id, fence):
        return
    # What a preprocessing step read and wrote stays in the books.
    Dataset.objects.filter(task_id=task_id).exclude(type__in=prepro.TYPES, files__gt=0).delete()
    prepro.put_aside(task_id)
    rows: list[Dataset] = []
    for position, spec in enumerate(refined.datasets):
        rows.append(Dataset.objects.create(task_id=task_id, list_position=position, **_columns_of(spec, rows)))
    OutputTemplate.objects.bulk_create(
        [
            OutputTemplate(
                task_id=task_id,
                dataset=rows[template.dataset],
                file_name_template=template.filenametemplate,
                serial=template.serialnr,
                stream_name=template.streamname,
                out_type=template.outtype,
            )
            for template in refined.templates
        ]
    )
    JobParamsTemplate.objects.update_or_create(task_id=task_id, defaults={"template": refined.job_params_template})
    register_outputs(task_id, rows)
    parent_id = Task.objects.values_list("parent_id", flat=True).get(pk=task_id)
    mark_transient(refined, parent_id)
    columns: dict[str, Any] = {
        ATTRIBUTES[name]: value for name, value in refined.task.items() if name not in SET_BY_MOVES
    }
    task: dict[str, Any] = dict(refined.task)
    columns["resource_type"] = resource_type(task["corecount"], task["ramcount"], task["ramunit"], task["baseramcount"])
    to, reason = TaskStatus.DEFINED, "parameters are refined"
    if prepro.seed(task_id):
        to, reason = (
            TaskStatus.TOPREPROCESS,
            "the preprocessing step is refined; what it finds completes the parameters",
        )
    moves.move_task(task_id, to, by=ME, reason=reason, error_dialog=None, **columns)


def constituents_of(
    params: Params, parent: ParentView | None, preprocessed: Mapping[str, str] | None = None
) -> dict[str, list[str]]:
    """The datasets of the containers that the inputs name. Raises NotYet or CannotRefine for one that does not exist.

    Inputs that a preprocessing step names are known by what it found.
    """
    if params.spec("preproSpec") is not None:
        if preprocessed is None:
            return {}
        params = with_results(params, preprocessed)
    waits = params.given("waitInput") or (parent is not None and parent.progress == "running")
    found: dict[str, list[str]] = {}
    for name in containers_of(params):
        try:
            found[name] = data_management().constituents(name)
        except UnknownDatasetError as exc:
            if waits:
                raise NotYet(f"{exc}; the task waits for it") from exc
            if not params.flag("ignoreMissingInDS"):
                raise CannotRefine(str(exc)) from exc
            found[name] = []
        if waits and not found[name]:
            raise NotYet(f"the container {name} has no datasets yet; the task waits for them")
    return found


def register_outputs(task_id: int, rows: Iterable[Dataset]) -> None:
    """Register the outputs of a task with data management, in the containers that they belong to."""
    outputs = [row for row in rows if row.type in MADE_TYPES]
    if not outputs:
        return
    names = list(dict.fromkeys(row.name for row in outputs))
    data_management().create(names, scope=scope_of(names[0]), task_id=task_id)
    by_container: dict[str, list[str]] = {}
    for row in outputs:
        if row.container_name:
            by_container.setdefault(row.container_name, []).append(row.name)
    for container, names in by_container.items():
        data_management().add_to_container(container, names, task_id=task_id)


def mark_transient(refined: Refined, parent_id: int | None) -> None:
    """Outputs of the parent that this task makes superfluous need not be kept for ever."""
    if not refined.transient or parent_id is None:
        return
    made = Dataset.objects.select_for_update().filter(
        task_id=parent_id, type__in=OUTPUT_TYPES, name__in=refined.transient
    )
    for row in made.order_by("id"):
        if "tr" not in Attributes.parse(row.attributes):
            row.attributes = ",".join(filter(None, [row.attributes, "tr=1"]))
            row.save(update_fields=["attributes"])


def _columns_of(spec: DatasetSpec, before: list[Dataset]) -> dict[str, Any]:
    return {
        "name": spec.datasetname,
        "type": spec.type,
        "status": DatasetStatus.DEFINED,
        "master_id": before[spec.master].id if spec.master is not None else None,
        "provenance_id": before[spec.provenance].id if spec.provenance is not None else None,
        "container_name": spec.containername,
        "stream_name": spec.streamname,
        "attributes": spec.attributes,
        "storage_token": spec.storagetoken,
        "destination": spec.destination,
        "state": "open" if spec.type in MADE_TYPES else None,
    }
