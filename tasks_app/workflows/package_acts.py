"""What is done to single packages: one, those of a line, or those whose jobs are on one node. Kill and retry, and of lines and
packages also hold, resume and priority (`line_holds`).

A package is a group of files of its task, and so a subjob: it is killed and tried again as those are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from django.db import transaction

from jedisite import audit
from jedisite.database.sql import hot_cursor
from jedisite.identity.callers import Caller
from tasks_app.domain.failure_reasons import PLATFORM
from tasks_app.domain.job_timeouts import LOST_HEARTBEAT
from tasks_app.domain.retry_rules import GIVEN_UP
from tasks_app.domain.states import TASK_FINAL, JobStatus
from tasks_app.models import Task, Workflow
from tasks_app.outcomes.job_outcome import Outcome
from tasks_app.outcomes.outcomes import book
from tasks_app.outcomes.recovery import lock
from tasks_app.upkeep.subjob_kills import kill_subjobs
from tasks_app.workflows import line_holds
from tasks_app.workflows.package_facts import PackageFact, package_facts
from tasks_app.workflows.rules.package_states import AT_WORK, on_dead_node
from tasks_app.workflows.submitting_workflows import held_workflow
from tasks_app.workflows.workflow_acts import Acted, CannotActError, retry_packages

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_NOT_FOR_NODES: Final = ("hold", "resume", "priority")


def on_node(facts: Sequence[PackageFact], node: str) -> list[PackageFact]:
    """The packages that have a job on a node."""
    found = on_dead_node(node, [fact.node for fact in facts], [fact.status for fact in facts])
    return [facts[index] for index in found]


def act_on_packages(
    workflow_id: int,
    name: str,
    *,
    caller: Caller,
    reason: str,
    line: str = "",
    node: str = "",
    paths: Collection[str] = (),
    priority: int | None = None,
    preview: bool = False,
) -> Acted:
    """Do it to the packages of a line (`001/002`), to one (`001/002/001`), to several `paths`, or to those with a job on a node.

    `priority` is for the act of that name, which needs it unless it is a preview. A retry of a node fails the jobs there, which
    are lost, and other jobs follow. Raises CannotActError, and then writes nothing.
    """
    if node and name in _NOT_FOR_NODES:
        raise CannotActError(
            "Packages of a node are killed or retried: hold, resume and priority are for lines and packages."
        )
    with transaction.atomic():
        workflow = held_workflow(workflow_id)
        chosen = _chosen(workflow, caller, line, node, paths)
        if name == "kill":
            return _kill(workflow, chosen, caller, reason, line, node, preview=preview)
        if name in _NOT_FOR_NODES:
            return _steer(workflow, name, chosen, caller, reason, line, priority, preview=preview)
        if node:
            return _restart(workflow, chosen, caller, reason, node, preview=preview)
    return retry_packages(workflow_id, [fact.path for fact in chosen], caller=caller, reason=reason, preview=preview)


def _chosen(workflow: Workflow, caller: Caller, line: str, node: str, paths: Collection[str]) -> list[PackageFact]:
    if not caller.may_command(workflow.owner):
        raise CannotActError(f"Workflow {workflow.pk} belongs to {workflow.owner}; you may not command it.")
    if not workflow.container:
        raise CannotActError(f"Workflow {workflow.pk} has not begun: it can be resumed or killed as a whole.")
    facts = package_facts(workflow)
    if node:
        if not (found := on_node(facts, node)):
            raise CannotActError(f"No package of workflow {workflow.pk} has a job on the node {node[:100]}.")
        return found
    if paths:
        wanted = set(paths)
        return [fact for fact in facts if fact.path in wanted]
    found = [fact for fact in facts if fact.path == line or fact.path.startswith(f"{line}/")]
    if not found:
        said = "lines are written as 001/002, packages as 001/002/001"
        raise CannotActError(f"Workflow {workflow.pk} has no line or package {line[:20]}; {said}.")
    return found


def _kill(
    workflow: Workflow,
    chosen: Sequence[PackageFact],
    caller: Caller,
    reason: str,
    line: str,
    node: str,
    *,
    preview: bool,
) -> Acted:
    """Jobs end, and no others follow. What waits for files of other packages cannot be killed: it is dropped."""
    ended = _ended(chosen)
    hit = [fact for fact in chosen if fact.status in AT_WORK or (fact.is_ready and fact.task_id not in ended)]
    if not hit:
        raise CannotActError(
            "No package of them has a job or waits for one: what waits for files is dropped with its line."
        )
    if not preview:
        for task_id, own in _groups(hit).items():
            kill_subjobs(task_id, own, caller, reason=reason)
        _record(workflow, "kill", hit, caller, reason, line, node)
    return _acted(hit)


def _steer(
    workflow: Workflow,
    name: str,
    chosen: Sequence[PackageFact],
    caller: Caller,
    reason: str,
    line: str,
    priority: int | None,
    *,
    preview: bool,
) -> Acted:
    """Hold packages, resume them, or give their jobs another priority."""
    if name == "hold":
        hit = line_holds.to_hold(chosen)
        jobs = line_holds.free_jobs(hit) if preview else line_holds.hold(workflow, hit, caller, reason)
    elif name == "resume":
        hit, jobs = line_holds.to_resume(chosen), []
        if not preview:
            line_holds.resume(workflow, hit)
    else:
        hit = line_holds.to_give_priority(chosen, caller)
        jobs = line_holds.free_jobs(hit)
        if not preview:
            assert priority is not None  # who asks for it has checked that
            line_holds.give_priority(workflow, hit, priority)
    if not preview:
        _record(workflow, name, hit, caller, reason, line, "", {} if priority is None else {"priority": priority})
    return replace(_acted(hit), jobs=tuple(jobs))


def _restart(
    workflow: Workflow, chosen: Sequence[PackageFact], caller: Caller, reason: str, node: str, *, preview: bool
) -> Acted:
    """The jobs on a node are lost: they end now, as nobody there would hear of a kill. That uses up no attempt."""
    if not preview:
        said = f"{GIVEN_UP} by {caller.name} ({PLATFORM}): {node}" + (f": {reason}" if reason else "")
        outcomes = [
            Outcome(
                fact.job_id,
                fact.task_id,
                JobStatus.FAILED,
                *LOST_HEARTBEAT,
                said[:500],
                by=caller.name[:128],
            )
            for fact in chosen
            if fact.job_id is not None
        ]
        with hot_cursor() as cursor:
            lock(cursor, list(_groups(chosen)))
            book(cursor, outcomes)
        _record(workflow, "retry", chosen, caller, reason, "", node)
    return _acted(chosen)


def _ended(facts: Sequence[PackageFact]) -> set[int]:
    tasks = {fact.task_id for fact in facts if fact.task_id is not None}
    return set(Task.objects.filter(pk__in=tasks, status__in=TASK_FINAL).values_list("pk", flat=True))


def _groups(facts: Sequence[PackageFact]) -> dict[int, list[int]]:
    """The groups of packages, by the task that they are of, both in order."""
    found: dict[int, list[int]] = {}
    for fact in facts:
        if fact.task_id is not None and fact.boundary is not None:
            found.setdefault(fact.task_id, []).append(fact.boundary)
    return dict(sorted(found.items()))


def _acted(hit: Sequence[PackageFact]) -> Acted:
    return Acted(
        tuple(sorted({fact.task_id for fact in hit if fact.task_id is not None})),
        packages=tuple(fact.path for fact in hit),
        jobs=tuple(fact.job_id for fact in hit if fact.job_id is not None),
    )


def _record(
    workflow: Workflow,
    name: str,
    hit: Sequence[PackageFact],
    caller: Caller,
    reason: str,
    line: str,
    node: str,
    more: Mapping[str, Any] = NOTHING,
) -> None:
    what = {**({"line": line} if line else {"node": node} if node else {}), **more}
    details = {**what, "packages": [fact.path for fact in hit]}
    audit.record(caller.name, name, "workflow", workflow.pk, reason=reason, details=details)
