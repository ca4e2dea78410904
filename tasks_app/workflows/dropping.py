"""A line of a workflow is dropped: its packages are canceled, and nobody waits for what they would have written.

What a job has at that moment is killed. Files of a job that waited leave the books at once. Those of a job that runs come back
when it has ended, without an attempt left, and no retry gives them one; the agent `workflows` removes them then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.db.models import Exists, OuterRef

from jedisite import audit
from jedisite.identity.callers import Caller
from tasks_app.commands import bulk
from tasks_app.domain.states import TASK_FINAL, FileStatus
from tasks_app.lifecycle import file_removal, task_moves
from tasks_app.models import Dataset, File, Task, TaskParams, Workflow, WorkflowPackage
from tasks_app.models.dataset import INPUT_TYPES, LONG_AGO
from tasks_app.params.acts import ACTS
from tasks_app.upkeep import killing
from tasks_app.workflows.package_facts import PackageFact, package_facts
from tasks_app.workflows.rules.implied_graph import Graph
from tasks_app.workflows.rules.line_drops import drop
from tasks_app.workflows.rules.package_states import PackageStatus
from tasks_app.workflows.rules.task_groups import planned_tasks
from tasks_app.workflows.submitting_workflows import definition_of, held_workflow, names_of

_READ: Final = ("input", "pseudo_input")
_BACK: Final = (FileStatus.READY, FileStatus.PENDING, FileStatus.STAGING, FileStatus.LOST, FileStatus.MISSING)


class CannotDropError(ValueError):
    """There is no such line, or nothing of it is left to be dropped, or it is somebody else's; the sentence says which."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """Paths of the packages that are canceled, the files that others lose by their paths, and jobs that are killed."""

    canceled: tuple[str, ...]
    removed: Mapping[str, tuple[str, ...]]
    jobs: tuple[int, ...]


def drop_line(workflow_id: int, line: str, *, caller: Caller, reason: str = "", preview: bool = False) -> Dropped:
    """Drop a line, such as `001/002`; with `preview` only say what that would do.

    Raises CannotDropError, and then writes nothing.
    """
    return drop_lines(workflow_id, [line], caller=caller, reason=reason, preview=preview)


@transaction.atomic
def drop_lines(
    workflow_id: int, lines: Collection[str], *, caller: Caller, reason: str = "", preview: bool = False
) -> Dropped:
    """Drop several lines at once. Of those of which every package has ended nothing is dropped.

    Raises CannotDropError, also when that holds for all of them, and then writes nothing.
    """
    workflow = held_workflow(workflow_id)
    if not caller.may_command(workflow.owner):
        raise CannotDropError(f"Workflow {workflow_id} belongs to {workflow.owner}; you may not command it.")
    _, graph = definition_of(workflow)
    there = {node.line_path for node in graph.nodes}
    if unknown := [line for line in lines if line not in there]:
        raise CannotDropError(f"Workflow {workflow_id} has no line {unknown[0][:20]}; lines are written as 001/002.")
    wanted = set(lines)
    indexes = [node.index for node in graph.nodes if node.line_path in wanted]
    if not preview:
        _hold_tasks(_tasks_of(workflow))
    facts = {fact.path: fact for fact in package_facts(workflow)}
    by_index = [facts[node.path] for node in graph.nodes]
    done = [at for at, fact in enumerate(by_index) if fact.status is PackageStatus.SUCCESSFUL]
    gone = [at for at, fact in enumerate(by_index) if fact.status is PackageStatus.CANCELED]
    found = drop(graph, indexes, successful=done, canceled=gone)
    if not found.canceled:
        which = f"the line {next(iter(lines))}" if len(lines) == 1 else f"these {len(lines)} lines"
        raise CannotDropError(f"Every package of {which} has ended: nothing is left to be dropped.")
    canceled = [by_index[at] for at in found.canceled]
    dropped = Dropped(
        tuple(fact.path for fact in canceled),
        {graph.nodes[at].path: names for at, names in found.removed.items()},
        tuple(fact.job_id for fact in canceled if fact.job_id is not None),
    )
    if not preview:
        removed = {path: list(names) for path, names in dropped.removed.items()}
        details = {"line": ", ".join(lines), "canceled": list(dropped.canceled), "removed": removed}
        audit.record(caller.name, "drop", "workflow", workflow_id, reason=reason, details=details)
        _carry_out(workflow, graph, canceled, {*gone, *found.canceled}, caller, reason)
    return dropped


def _carry_out(
    workflow: Workflow, graph: Graph, canceled: list[PackageFact], all_canceled: set[int], caller: Caller, reason: str
) -> None:
    paths = [fact.path for fact in canceled]
    WorkflowPackage.objects.filter(workflow=workflow, path__in=paths).update(is_canceled=True)
    if not workflow.container:
        return
    rows = list(WorkflowPackage.objects.filter(workflow=workflow).values_list("path", "task_id", "is_canceled"))
    task_of = {path: task_id for path, task_id, _ in rows if task_id is not None}
    tasks = sorted(set(task_of.values()))
    remove_canceled([workflow.pk])
    if jobs := [fact.job_id for fact in canceled if fact.job_id is not None]:
        killing.kill_for_a_reason(jobs, caller, reason or f"its line of workflow {workflow.pk} was dropped")
        remove_canceled([workflow.pk])
    changed = _rewrite(workflow, graph, all_canceled, task_of)
    growing = Dataset.objects.filter(task_id__in=changed, type__in=INPUT_TYPES, state="mutable")
    growing.update(state_check_time=LONG_AGO)
    task_moves.wake_tasks(changed, "feeder", "job_generator", "post_processor")
    left = {task_id for _, task_id, is_canceled in rows if not is_canceled}
    if ended := [task_id for task_id in tasks if task_id not in left]:
        bulk.give(ACTS["kill"], ended, caller=caller, reason=reason or "all of its packages were dropped")


def _rewrite(workflow: Workflow, graph: Graph, canceled: set[int], task_of: Mapping[str, int]) -> list[int]:
    """Take what is canceled out of the groups of all tasks. Returns the tasks whose groups have changed."""
    planned = {
        task_of[graph.nodes[one.nodes[0]].path]: one.groups
        for one in planned_tasks(graph, names_of(workflow), canceled)
    }
    changed = []
    for row in TaskParams.objects.filter(pk__in=list(planned)).order_by("pk"):
        if row.params.get("loadXML") != planned[row.pk]:
            row.params = {**row.params, "loadXML": planned[row.pk]}
            changed.append(row)
    TaskParams.objects.bulk_update(changed, ["params"])
    return [row.pk for row in changed]


def _tasks_of(workflow: Workflow) -> set[int]:
    rows = WorkflowPackage.objects.filter(workflow=workflow, task_id__isnull=False)
    return {task_id for task_id in rows.values_list("task_id", flat=True) if task_id is not None}


def _hold_tasks(tasks: Iterable[int]) -> None:
    """Lock tasks, so that no jobs of them are made meanwhile."""
    list(Task.objects.select_for_update().filter(pk__in=list(tasks)).order_by("pk").values_list("pk"))


def with_canceled_files(limit: int) -> list[int]:
    """Workflows that have files of canceled packages in tasks, since jobs gave them back. A task may have ended since."""
    back = File.objects.filter(
        task_id=OuterRef("task_id"), boundary_id=OuterRef("boundary"), type__in=_READ, status__in=_BACK
    )
    open_tasks = Task.objects.filter(pk=OuterRef("task_id")).exclude(status__in=TASK_FINAL)
    spent = Dataset.objects.filter(task_id=OuterRef("task_id"), type__in=INPUT_TYPES, files_failed__gt=0)
    rows = WorkflowPackage.objects.filter(Exists(open_tasks) | Exists(spent), Exists(back), is_canceled=True)
    return list(rows.order_by("workflow_id").values_list("workflow_id", flat=True).distinct()[:limit])


@transaction.atomic
def remove_canceled(workflows: Collection[int]) -> int:
    """Take the files of canceled packages out of their tasks, as far as no job has them. Returns how many files."""
    rows = WorkflowPackage.objects.filter(workflow_id__in=workflows, is_canceled=True, task_id__isnull=False)
    groups: dict[int, list[int]] = {}
    for task_id, boundary in rows.values_list("task_id", "boundary"):
        assert task_id is not None and boundary is not None  # they are set together
        groups.setdefault(task_id, []).append(boundary)
    _hold_tasks(groups)
    removed = 0
    for task_id in sorted(groups):
        file_removal.hold_back_groups(task_id, groups[task_id])
        if some := file_removal.remove_groups(task_id, groups[task_id]):
            task_moves.wake_task(task_id, "job_generator", "post_processor")
            removed += some
    return removed
