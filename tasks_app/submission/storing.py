"""Rows that refining makes. But for `store`, call inside the transaction that moves the task on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import transaction

from tasks_app.ddm import data_management, maker_of
from tasks_app.domain.scopes import scope_of
from tasks_app.domain.states import DatasetStatus, FileStatus, TaskStatus
from tasks_app.inputs import preprocessed
from tasks_app.lifecycle import claims, dataset_moves, task_moves
from tasks_app.models import Dataset, File, JobParamsTemplate, PlannedOutput, Task, TaskParams
from tasks_app.models import OutputTemplate as Template
from tasks_app.models.dataset import MADE_TYPES, OUTPUT_TYPES
from tasks_app.params.dataset_attributes import Attributes
from tasks_app.refining.base import DatasetSpec, OutputTemplate, Refined
from tasks_app.submission.resource_typing import resource_type

ME = "refiner"
PREPROCESSING_RECORD = "preprocessing"
PREPROCESSING_ATTEMPTS = 3
HIGHEST_SERIAL = 9_999_999
"""The highest number of an output: the books of JEDI have seven digits for it."""
ATTRIBUTES = {str(field.column): field.attname for field in Task._meta.concrete_fields}
"""The attribute of the task model for each column of JEDI's table."""
SET_BY_MOVES = frozenset(
    {"jeditaskid", "status", "creationdate", "modificationtime", "statechangetime", "lockedby", "lockedtime"}
)


@transaction.atomic
def store(task: Task, fence: int, refined: Refined) -> None:
    """Store what refining found and move the task on; nothing when the claim is gone."""
    task_id = task.id
    if not claims.still_holds(task_id, fence):
        return
    # What a preprocessing step read and wrote stays in the books.
    Dataset.objects.filter(task_id=task_id).exclude(type__in=preprocessed.TYPES, files__gt=0).delete()
    # The task's own jobs write no log of the step.
    Template.objects.filter(task_id=task_id, dataset__type=preprocessed.LOG).delete()
    rows: list[Dataset] = []
    for position, spec in enumerate(refined.datasets):
        rows.append(create_dataset(task_id, position, spec, rows))
    create_templates(task_id, refined.templates, rows)
    store_texts(task_id, refined)
    register_outputs(task, rows)
    columns = task_attributes(refined.task)
    to, reason = TaskStatus.DEFINED, "parameters are refined"
    if _begin_preprocessing(task_id):
        to, reason = (
            TaskStatus.TOPREPROCESS,
            "the preprocessing step is refined; its results complete the parameters",
        )
    else:
        PlannedOutput.objects.filter(task_id=task_id).delete()
    task_moves.move_task(task_id, to, by=ME, reason=reason, error_dialog=None, **columns)


def _begin_preprocessing(task_id: int) -> bool:
    """Store the record of a preprocessing step that refining has just laid out. Returns whether there is one."""
    dataset = Dataset.objects.filter(task_id=task_id, type=preprocessed.INPUT).first()
    if dataset is None or dataset.files:
        return False
    # As a pseudo input it is booked and tried again like any other.
    File.objects.create(
        task_id=task_id,
        dataset_id=dataset.id,
        lfn=PREPROCESSING_RECORD,
        type="pseudo_input",
        status=FileStatus.READY,
        attempt=0,
        max_attempt=PREPROCESSING_ATTEMPTS,
        keep_track=1,
        size=0,
    )
    step = Dataset.objects.filter(pk=dataset.id)
    dataset_moves.move(step, DatasetStatus.READY, files=1, files_to_be_used=1, state="closed")
    return True


def task_attributes(columns: Mapping[str, object]) -> dict[str, Any]:
    """Attributes of the task's row for the columns that refining gives, with the resource type that follows from them."""
    given: dict[str, Any] = dict(columns)
    found = {ATTRIBUTES[name]: value for name, value in given.items() if name not in SET_BY_MOVES}
    found["resource_type"] = resource_type(
        given["corecount"], given["ramcount"], given["ramunit"], given["baseramcount"]
    )
    return found


def create_dataset(task_id: int, position: int, spec: DatasetSpec, before: Sequence[Dataset]) -> Dataset:
    """The row of a dataset; `before` are those of the places before it."""
    return Dataset.objects.create(
        task_id=task_id,
        list_position=position,
        name=spec.datasetname,
        type=spec.type,
        status=DatasetStatus.DEFINED,
        master_id=before[spec.master].id if spec.master is not None else None,
        provenance_id=before[spec.provenance].id if spec.provenance is not None else None,
        container_name=spec.containername,
        stream_name=spec.streamname,
        attributes=spec.attributes,
        storage_token=spec.storagetoken,
        destination=spec.destination,
        state="open" if spec.type in MADE_TYPES else None,
    )


def create_templates(task_id: int, templates: Iterable[OutputTemplate], rows: Sequence[Dataset]) -> None:
    Template.objects.bulk_create(
        [
            Template(
                task_id=task_id,
                dataset=rows[template.dataset],
                file_name_template=template.filenametemplate,
                serial=template.serialnr,
                max_serial=HIGHEST_SERIAL,
                stream_name=template.streamname,
                out_type=template.outtype,
            )
            for template in templates
        ]
    )


def store_texts(task_id: int, refined: Refined) -> None:
    """The template of command lines, the dictionary that the refiner completed, and marks on the parent's outputs."""
    JobParamsTemplate.objects.update_or_create(task_id=task_id, defaults={"template": refined.job_params_template})
    if refined.params is not None:
        TaskParams.objects.filter(pk=task_id).update(params=dict(refined.params))
    mark_transient(refined, Task.objects.values_list("parent_id", flat=True).get(pk=task_id))


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


def register_outputs(task: Task, rows: Iterable[Dataset]) -> None:
    """Register the outputs of a task with data management, in the containers that they belong to.

    Raises ForeignDatasetError when a name is that of somebody else's dataset or container.
    """
    outputs = [row for row in rows if row.type in MADE_TYPES]
    if not outputs:
        return
    names = list(dict.fromkeys(row.name for row in outputs))
    data_management().create(names, scope=scope_of(names[0], task.user), by=maker_of(task))
    by_container: dict[str, list[str]] = {}
    for row in outputs:
        if row.container_name:
            by_container.setdefault(row.container_name, []).append(row.name)
    for container, names in by_container.items():
        data_management().add_to_container(container, names, by=maker_of(task))
