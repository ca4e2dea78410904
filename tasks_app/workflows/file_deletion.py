"""Files of workflows that are `deletable` go when their workflow has ended well: nobody in it reads them again."""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, TextField
from django.db.models.functions import Cast

from jedisite import audit
from tasks_app.ddm import data_management
from tasks_app.ddm.base import SITE
from tasks_app.domain.states import TASK_FINAL
from tasks_app.models import Dataset, Task, TaskParams, Workflow, WorkflowPackage
from tasks_app.params.faults import ParamErrors
from tasks_app.workflows.package_facts import package_facts
from tasks_app.workflows.rules.package_states import PackageStatus
from tasks_app.workflows.rules.stickiness import is_deleted, kept_files
from tasks_app.workflows.submitting_workflows import definition_of, held_workflow, names_of

ME = "workflows"
MOST_NAMED = 100
"""Datasets that the entry in the audit trail names."""


def with_files_to_delete(limit: int) -> list[int]:
    """Workflows with such files of which no task is at work, in another order each time: some wait for somebody for long."""
    own = WorkflowPackage.objects.filter(workflow_id=OuterRef(OuterRef("pk"))).values("task_id")
    at_work = Task.objects.filter(pk__in=own).exclude(status__in=TASK_FINAL)
    rows = Workflow.objects.filter(~Exists(at_work), deletes_files=True).exclude(container="")
    return list(rows.order_by("?").values_list("pk", flat=True)[:limit])


@transaction.atomic
def delete_files(workflow_id: int) -> int:
    """Delete them when each package is successful or dropped, and no task reads them. Returns how many datasets went.

    A package that has failed or was killed may be tried again, and would read them again.
    """
    workflow = held_workflow(workflow_id)
    if not workflow.deletes_files:  # another agent was faster
        return 0
    packages = WorkflowPackage.objects.filter(workflow=workflow)
    dropped = set(packages.filter(is_canceled=True).values_list("path", flat=True))
    facts = {fact.path: fact for fact in package_facts(workflow)}
    if any(fact.status is not PackageStatus.SUCCESSFUL and path not in dropped for path, fact in facts.items()):
        return 0
    try:
        definition, graph = definition_of(workflow)
    except ParamErrors:  # of an older version: what it wished is not known for certain
        Workflow.objects.filter(pk=workflow.pk).update(deletes_files=False)
        return 0
    kept = kept_files(definition)
    those = (facts[node.path].task_id for node in graph.nodes if is_deleted(node.package, kept))
    writers = {task_id for task_id in those if task_id is not None}
    found = Dataset.objects.filter(task_id__in=writers, type="output", container_name=workflow.container)
    names = sorted(found.values_list("name", flat=True))
    if _is_read(workflow, names):
        return 0
    # Datasets of tasks, of which each writes files that all go, or none that does.
    deleted = data_management().delete(names, by=SITE)
    Workflow.objects.filter(pk=workflow.pk).update(deletes_files=False)
    if deleted:
        reason = "its files are deletable, and it has ended"
        audit.record(
            ME, "delete files", "workflow", workflow.pk, reason=reason, details={"datasets": names[:MOST_NAMED]}
        )
    return deleted


def _is_read(workflow: Workflow, datasets: Collection[str]) -> bool:
    """Whether a task that has not ended reads the container of a workflow or one of these datasets of it, or may do so: its
    inputs are not known yet, and its parameters name the workflow."""
    prefix = names_of(workflow).prefix
    names = {*datasets, workflow.container, prefix}
    read = Dataset.objects.filter(Q(name__in=names) | Q(container_name__in=names), type="input")
    if read.exclude(task__status__in=TASK_FINAL).exists():
        return True
    new = Task.objects.exclude(status__in=TASK_FINAL).exclude(Exists(Dataset.objects.filter(task_id=OuterRef("pk"))))
    params = TaskParams.objects.filter(pk__in=new.values("pk")).annotate(text=Cast("params", TextField()))
    return params.filter(text__contains=prefix).exists()
