"""A workflow is submitted: its definition is checked, and its packages become tasks, all of them or none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from django.conf import settings
from django.db import transaction

from jedisite import audit
from jedisite.identity.callers import Caller
from tasks_app.ddm import data_management
from tasks_app.ddm.base import Maker
from tasks_app.domain.failure_reasons import ANY
from tasks_app.models import Workflow, WorkflowPackage
from tasks_app.params.faults import Faults, ParamErrors
from tasks_app.submission import submitting
from tasks_app.workflows.rules.definition import Definition
from tasks_app.workflows.rules.implied_graph import Graph
from tasks_app.workflows.rules.not_runnable import check_runnable
from tasks_app.workflows.rules.stickiness import is_deleted, kept_files
from tasks_app.workflows.rules.task_groups import Names, PlannedTask, files_by_dataset, planned_tasks, task_dictionary
from tasks_app.workflows.rules.workflow_checks import checked
from tasks_app.workflows.rules.workflow_document import as_document

MOST_LACKING = 20
"""Files that a dataset does not have and that are named."""
OF_WORKFLOW: Final = {"taskPriority": "priority", "taskName": "name"}
OF_PACKAGE: Final = {
    "includedSite": "nodes",
    "excludedSite": "not_nodes",
    "workDiskCount": "work_mb",
    "walltime": "run_time_s",
}
"""Fields of a definition, by the parameters of tasks that they become."""


@transaction.atomic
def submit_workflow(document: object, caller: Caller) -> Workflow:
    """Register a workflow, and its tasks unless it is on hold.

    Raises ParamErrors with every fault of the definition, or those of all tasks that cannot be submitted, with paths of
    the definition's fields; submitting.SubmissionRefusedError when the caller has too many tasks. Both write nothing.
    """
    definition, graph = checked(document)
    check_submittable(definition, caller)
    kept = kept_files(definition)
    by_reason = dict(definition.restarts) if set(definition.restarts) - {ANY} else {}
    workflow = Workflow.objects.create(
        name=definition.name,
        owner=caller.name,
        definition=as_document(definition),
        restarts=by_reason,
        deletes_files=any(is_deleted(node.package, kept) for node in graph.nodes),
    )
    audit.record(caller.name, "submit", "workflow", workflow.pk)
    WorkflowPackage.objects.bulk_create(
        [WorkflowPackage(workflow=workflow, path=node.path, software=node.package.software) for node in graph.nodes],
        batch_size=2000,
    )
    if not definition.hold:
        begin(workflow, definition, graph, caller)
    return workflow


def check_submittable(definition: Definition, caller: Caller | None) -> None:
    """What can be known before a workflow is submitted; without a caller what holds for everybody, and no query.

    Raises ParamErrors with all faults.
    """
    faults = Faults()
    check_runnable(definition, caller.name if caller else "", faults)
    if caller is not None:
        _check_there(definition, caller, faults)
    faults.raise_if_any()


def begin(workflow: Workflow, definition: Definition, graph: Graph, caller: Caller) -> None:
    """Make the tasks of a workflow that has none. In the caller's transaction; raises as `submit_workflow`."""
    names = names_of(workflow)
    dictionaries = [(one, task_dictionary(one, definition, graph, names)) for one in planned_tasks(graph, names)]
    faults = Faults()
    _check_there(definition, caller, faults)
    faults.raise_if_any()
    data_management().add_to_container(names.container, (), by=Maker(caller.name))
    if external := files_by_dataset(definition):
        data_management().add_to_container(names.container, external, by=Maker(caller.name))
    rows = {row.path: row for row in WorkflowPackage.objects.filter(workflow=workflow)}
    most = settings.JEDI_MOST_ACTIVE_TASKS
    for planned, raw in dictionaries:
        try:
            submission = submitting.check(dict(raw), caller)
            if faults:
                continue  # nothing is made any more
            task_id = submitting.submit(submission, by=caller.name, most_active=most).task_id
        except ParamErrors as errors:
            _add_of_task(errors, planned, graph, faults)
            continue
        for boundary, index in enumerate(planned.nodes):
            row = rows[graph.nodes[index].path]
            row.task_id, row.boundary = task_id, boundary
    faults.raise_if_any()
    WorkflowPackage.objects.bulk_update(rows.values(), ["task_id", "boundary"], batch_size=2000)
    workflow.container = names.container
    workflow.save(update_fields=["container"])


def held_workflow(workflow_id: int) -> Workflow:
    """The workflow, locked for the caller's transaction: one act on it comes after the other. Raises Workflow.DoesNotExist."""
    return Workflow.objects.select_for_update().get(pk=workflow_id)


def names_of(workflow: Workflow) -> Names:
    return Names(f"user.{workflow.owner}.{workflow.name}.{workflow.pk}")


def definition_of(workflow: Workflow) -> tuple[Definition, Graph]:
    """The stored definition and its graph. What the checks of a later version refuse raises ParamErrors."""
    return checked(workflow.definition)


def _check_there(definition: Definition, caller: Caller, faults: Faults) -> None:
    """Datasets that data management does not have, and files that they will never have."""
    files, ddm = files_by_dataset(definition), data_management()
    if not files:
        return
    said: dict[tuple[str, str], tuple[str, str]] = {}
    unknown = ddm.unknown(list(files), user=caller.name)
    for name, near in unknown.items():
        hint = f" Did you mean {near}?" if near else ""
        said[name, ""] = ("known dataset", f"There is no dataset {name}.{hint}")
    for name in files.keys() - unknown.keys():
        if ddm.constituents(name) != [name]:
            said[name, ""] = ("dataset", f"{name} is a container: name the dataset in it that has the file.")
        elif not ddm.describe(name).open:
            for lfn, near in list(ddm.lacking([name], files[name]).items())[:MOST_LACKING]:
                hint = f" Did you mean {near}?" if near else ""
                said[name, lfn] = ("known file", f"{lfn} is not in the dataset {name}, which is closed.{hint}")
    if not said:
        return
    told = set()
    for at, name, dataset in _external_inputs(definition):
        for key, field in (((dataset, ""), "dataset"), ((dataset, name), "name")):
            if key in said and key not in told:
                told.add(key)
                faults.add(f"{at}.{field}", *said[key])


def _external_inputs(definition: Definition) -> Iterator[tuple[str, str, str]]:
    """The path of each input that is in a dataset, with its name and the dataset."""
    for stage, line, sequence, _, package in definition.packages():
        for b, binary in enumerate(package.binaries):
            for n, file in enumerate(binary.inputs):
                if file.dataset:
                    place = f"stages[{stage - 1}].lines[{line - 1}].packages[{sequence - 1}]"
                    yield f"{place}.binaries[{b}].inputs[{n}]", file.name, file.dataset


def _add_of_task(errors: ParamErrors, planned: PlannedTask, graph: Graph, faults: Faults) -> None:
    """The faults of a task as those of the definition, told with its first package."""
    node = graph.nodes[planned.nodes[0]]
    place = f"stages[{node.stage - 1}].lines[{node.line - 1}].packages[{node.sequence - 1}]"
    for one in errors.errors:
        if one.field in OF_WORKFLOW:
            faults.add(OF_WORKFLOW[one.field], one.rule, one.message)
        else:
            faults.add(f"{place}.{OF_PACKAGE.get(one.field, one.field)}", one.rule, one.message)
