"""A workflow is submitted: its definition is checked, and its packages become tasks, all of them or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db import transaction

from jedisite import audit
from jedisite.identity.callers import Caller
from tasks_app.ddm import data_management
from tasks_app.ddm.base import Maker
from tasks_app.domain.failure_reasons import ANY
from tasks_app.models import Workflow, WorkflowPackage
from tasks_app.params.faults import Faults, FieldError, ParamErrors
from tasks_app.submission import submitting
from tasks_app.workflows.rules.definition import Definition
from tasks_app.workflows.rules.implied_graph import Graph
from tasks_app.workflows.rules.not_runnable import check_runnable
from tasks_app.workflows.rules.task_groups import Names, PlannedTask, files_by_dataset, planned_tasks, task_dictionary
from tasks_app.workflows.rules.workflow_checks import checked
from tasks_app.workflows.rules.workflow_document import as_document

MOST_LACKING = 20
"""Files that a dataset does not have and that are named."""


@transaction.atomic
def submit_workflow(document: object, caller: Caller) -> Workflow:
    """Register a workflow, and its tasks unless it is on hold.

    Raises ParamErrors with every fault of the definition, or those of the first task that cannot be submitted;
    submitting.SubmissionRefusedError when the caller has too many tasks. Both write nothing.
    """
    definition, graph = checked(document)
    faults = Faults()
    check_runnable(definition, caller.name, faults)
    faults.raise_if_any()
    by_reason = dict(definition.restarts) if set(definition.restarts) - {ANY} else {}
    workflow = Workflow.objects.create(
        name=definition.name, owner=caller.name, definition=as_document(definition), restarts=by_reason
    )
    audit.record(caller.name, "submit", "workflow", workflow.pk)
    WorkflowPackage.objects.bulk_create(
        [WorkflowPackage(workflow=workflow, path=node.path, software=node.package.software) for node in graph.nodes],
        batch_size=2000,
    )
    if not definition.hold:
        begin(workflow, definition, graph, caller)
    return workflow


def begin(workflow: Workflow, definition: Definition, graph: Graph, caller: Caller) -> None:
    """Make the tasks of a workflow that has none. In the caller's transaction; raises as `submit_workflow`."""
    names = names_of(workflow)
    dictionaries = [(one, task_dictionary(one, definition, graph, names)) for one in planned_tasks(graph, names)]
    data_management().add_to_container(names.container, (), by=Maker(caller.name))
    if external := files_by_dataset(definition):
        _check_there(external, caller)
        data_management().add_to_container(names.container, external, by=Maker(caller.name))
    rows = {row.path: row for row in WorkflowPackage.objects.filter(workflow=workflow)}
    for planned, raw in dictionaries:
        task_id = _submit(planned, raw, caller, graph)
        for boundary, index in enumerate(planned.nodes):
            row = rows[graph.nodes[index].path]
            row.task_id, row.boundary = task_id, boundary
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


def _check_there(files: Mapping[str, Sequence[str]], caller: Caller) -> None:
    """Raises ParamErrors for datasets that data management does not have, and for files that they will never have."""
    faults, ddm = Faults(), data_management()
    for name, near in ddm.unknown(list(files), user=caller.name).items():
        hint = f" Did you mean {near}?" if near else ""
        faults.add("dataset", "known dataset", f"There is no dataset {name}.{hint}")
    faults.raise_if_any()
    for name, lfns in files.items():
        if ddm.constituents(name) != [name]:
            faults.add("dataset", "dataset", f"{name} is a container: name the dataset in it that has the file.")
        elif not ddm.describe(name).open:
            for lfn, near in list(ddm.lacking([name], lfns).items())[:MOST_LACKING]:
                hint = f" Did you mean {near}?" if near else ""
                faults.add("inputs", "known file", f"{lfn} is not in the dataset {name}, which is closed.{hint}")
    faults.raise_if_any()


def _submit(planned: PlannedTask, raw: Mapping[str, Any], caller: Caller, graph: Graph) -> int:
    """Submit a task. Its faults are told with the first package of it."""
    try:
        return submitting.submit(
            submitting.check(dict(raw), caller), by=caller.name, most_active=settings.JEDI_MOST_ACTIVE_TASKS
        ).task_id
    except ParamErrors as errors:
        path = graph.nodes[planned.nodes[0]].path
        told = tuple(FieldError(f"{path}: {e.field}", e.rule, e.message) for e in errors.errors)
        raise ParamErrors(told) from errors
