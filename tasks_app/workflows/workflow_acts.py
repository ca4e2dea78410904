"""What is done to a whole workflow, or to a stage of it: hold, resume, kill, retry, change of priority; and a retry of packages.

Each is a command on its tasks, or a change of them, which has its own preview and its own entry in the audit trail. What no
task accepts leaves no entry for the workflow. Single lines and packages are in `package_acts`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.db import transaction

from jedisite import audit
from jedisite.identity.callers import Caller
from tasks_app.commands import bulk
from tasks_app.domain.states import TASK_FINAL
from tasks_app.lifecycle import task_moves
from tasks_app.models import Task, Workflow, WorkflowPackage
from tasks_app.params.acts import ACTS
from tasks_app.params.command_parameters import written_numbers
from tasks_app.workflows.package_facts import package_facts
from tasks_app.workflows.rules.package_states import PackageStatus
from tasks_app.workflows.submitting_workflows import begin, definition_of, held_workflow

COMMANDS: Final[Mapping[str, str]] = {
    "hold": "pause",
    "resume": "resume",
    "kill": "kill",
    "retry": "retry",
    "priority": "priority",
}
"""What is done to a workflow, and what that is on each of its tasks."""
MORE: Final = "increase_attempts"
"""What a retry is on a task that is at work."""


class CannotActError(ValueError):
    """The workflow is in no state for it, or has no such stage; the sentence says which."""


@dataclass(frozen=True, slots=True)
class Acted:
    """The tasks that accept it, those that do not and why, and whether the workflow's tasks are made by it.

    Of an act on single packages also their paths, and the jobs that it kills; of a resume those of packages that were on hold by
    themselves.
    """

    tasks: tuple[int, ...] = ()
    refused: Sequence[bulk.Refused] = ()
    begins: bool = False
    packages: tuple[str, ...] = ()
    jobs: tuple[int, ...] = ()


def act_on_workflow(
    workflow_id: int,
    name: str,
    *,
    caller: Caller,
    reason: str,
    stage: int | None = None,
    priority: int | None = None,
    preview: bool = False,
) -> Acted:
    """Do it to the tasks that accept it from this caller; with `preview` only say which.

    Raises CannotActError, and ParamErrors when a workflow that was on hold cannot begin; both write nothing.
    """
    with transaction.atomic():
        workflow = held_workflow(workflow_id)
        if not workflow.container:
            return _before_it_began(workflow, name, caller, reason, stage, preview=preview)
    parameters = {} if priority is None else {"priority": priority}
    tasks = _tasks_of(workflow, stage)
    if name == "retry":
        acted = retry_tasks(tasks, caller, reason, preview=preview)
    else:
        acted = give(COMMANDS[name], tasks, caller, reason, parameters, preview=preview)
    if name == "resume" and caller.may_command(workflow.owner):
        acted = replace(acted, packages=_resume_packages(workflow, tasks, preview=preview))
    if (acted.tasks or acted.packages) and not preview:
        if name == "priority":
            # That of whole tasks is that of all of their packages.
            rows = WorkflowPackage.objects.filter(workflow=workflow, task_id__in=acted.tasks)
            rows.filter(priority__isnull=False).update(priority=None)
        details: dict[str, Any] = parameters if stage is None else {"stage": stage, **parameters}
        if acted.packages:
            details = {**details, "packages": list(acted.packages)}
        audit.record(caller.name, name, "workflow", workflow_id, reason=reason, details=details or None)
    return acted


@transaction.atomic
def _resume_packages(workflow: Workflow, tasks: Sequence[int], *, preview: bool) -> tuple[str, ...]:
    """Packages of these tasks that are on hold by themselves, or with their line, get jobs again. Returns their paths."""
    held = WorkflowPackage.objects.filter(workflow=workflow, task_id__in=tasks, is_held=True).order_by("pk")
    paths = tuple(held.values_list("path", flat=True))
    if paths and not preview:
        held.update(is_held=False)
        task_moves.wake_tasks(tasks, "job_generator")
    return paths


def retry_tasks(
    tasks: Sequence[int], caller: Caller, reason: str, parameters: dict[str, Any] | None = None, *, preview: bool
) -> Acted:
    """Try again what has failed: tasks that have ended are retried, those at work give more attempts."""
    at_work = set(Task.objects.filter(pk__in=tasks).exclude(status__in=TASK_FINAL).values_list("pk", flat=True))
    ended = [task for task in tasks if task not in at_work]
    one = give(COMMANDS["retry"], ended, caller, reason, parameters or {}, preview=preview)
    other = give(MORE, sorted(at_work), caller, reason, parameters or {}, preview=preview)
    return Acted((*one.tasks, *other.tasks), (*one.refused, *other.refused))


def retry_packages(
    workflow_id: int, paths: Collection[str], *, caller: Caller, reason: str = "", preview: bool = False
) -> Acted:
    """Try again those of these packages that have failed, and no other ones; with `preview` only say whose tasks accept it.

    Raises CannotActError when none of them has failed. Raises Workflow.DoesNotExist.
    """
    wanted = set(paths)
    with transaction.atomic():
        workflow = held_workflow(workflow_id)
        failed = [
            fact for fact in package_facts(workflow) if fact.path in wanted and fact.status is PackageStatus.FAILED
        ]
        if not failed:
            raise CannotActError("None of these packages has failed: there is nothing to try again.")
    groups: dict[int, list[int]] = {}
    for fact in failed:
        assert fact.task_id is not None and fact.boundary is not None  # what has failed has a task
        groups.setdefault(fact.task_id, []).append(fact.boundary)
    done = [
        retry_tasks([task_id], caller, reason, {"subjobs": written_numbers(sorted(own))}, preview=preview)
        for task_id, own in sorted(groups.items())
    ]
    tasks = tuple(task for one in done for task in one.tasks)
    hit = tuple(fact.path for fact in failed if fact.task_id in tasks)
    if hit and not preview:
        audit.record(caller.name, "retry", "workflow", workflow_id, reason=reason, details={"packages": list(hit)})
    return Acted(tasks, [group for one in done for group in one.refused], packages=hit)


def packages_of_line(workflow_id: int, line: str) -> list[str]:
    """The paths of the packages of a line, such as `001/002`. Raises CannotActError when there is no such line."""
    rows = WorkflowPackage.objects.filter(workflow_id=workflow_id, path__startswith=f"{line}/").order_by("pk")
    found = list(rows.values_list("path", flat=True))
    if not found:
        raise CannotActError(f"Workflow {workflow_id} has no line {line[:20]}; lines are written as 001/002.")
    return found


def _before_it_began(
    workflow: Workflow, name: str, caller: Caller, reason: str, stage: int | None, *, preview: bool
) -> Acted:
    """What can be done to a workflow that has been on hold since it was submitted. In the caller's transaction."""
    rows = WorkflowPackage.objects.filter(workflow=workflow)
    is_over = not rows.filter(is_canceled=False).exists()
    if is_over or stage is not None or name not in ("resume", "kill"):
        what = "was killed before it began" if is_over else "has been on hold since it was submitted: resume or kill it"
        raise CannotActError(f"Workflow {workflow.pk} {what}.")
    if not caller.may_command(workflow.owner):
        raise CannotActError(f"Workflow {workflow.pk} belongs to {workflow.owner}; you may not command it.")
    if name == "kill":
        if not preview:
            rows.update(is_canceled=True)
            audit.record(caller.name, name, "workflow", workflow.pk, reason=reason)
        return Acted()
    if caller.name != workflow.owner:
        raise CannotActError(f"Only {workflow.owner} can begin workflow {workflow.pk}: its tasks are theirs.")
    if not preview:
        definition, graph = definition_of(workflow)
        begin(workflow, definition, graph, caller)
        audit.record(caller.name, name, "workflow", workflow.pk, reason=reason)
    return Acted(begins=True)


def _tasks_of(workflow: Workflow, stage: int | None) -> list[int]:
    rows = WorkflowPackage.objects.filter(workflow=workflow)
    if stage is not None:
        rows = rows.filter(path__startswith=f"{stage:03d}/")
    found = sorted({task_id for task_id in rows.values_list("task_id", flat=True) if task_id is not None})
    if not found:
        raise CannotActError(f"Workflow {workflow.pk} has no stage {stage}.")
    return found


def give(
    command: str, tasks: Sequence[int], caller: Caller, reason: str, parameters: dict[str, Any], *, preview: bool
) -> Acted:
    """Give a command, or a change, to the tasks that accept it; with `preview` only say which."""
    if not tasks:
        return Acted()
    if preview:
        plan = bulk.preview(ACTS[command], bulk.by_ids(tasks), caller, parameters)
        return Acted(tuple(task.id for task in plan.tasks), plan.refused)
    done = bulk.give(ACTS[command], tasks, caller=caller, reason=reason, parameters=parameters)
    return Acted(done.ids, done.refused)
