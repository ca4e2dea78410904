"""Packages of all workflows whose jobs are on one node: found, and killed or retried in one act when the node is dead."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from jedisite.identity.callers import Caller
from tasks_app.domain.states import JobStatus
from tasks_app.models import Job, Workflow, WorkflowPackage
from tasks_app.workflows.package_acts import act_on_packages, on_node
from tasks_app.workflows.package_facts import PackageFact, facts_by_workflow
from tasks_app.workflows.workflow_acts import CannotActError

NODE_ACTS: Final = ("retry", "kill")
LONGEST_NODE: Final = Job._meta.get_field("worker_node").max_length or 0
MOST_WORKFLOWS: Final = 200
"""So many workflows with jobs on one node are looked at in one act."""
_THERE: Final = (
    JobStatus.SENT,
    JobStatus.STARTING,
    JobStatus.RUNNING,
    JobStatus.HOLDING,
    JobStatus.TRANSFERRING,
    JobStatus.MERGING,
)


@dataclass(frozen=True, slots=True)
class OnNode:
    """The packages of one workflow that have a job on a node, or those that an act has hit there; `refused`: why none is hit."""

    workflow: Workflow
    packages: tuple[PackageFact, ...]
    refused: str = ""


def packages_on(node: str, caller: Caller) -> list[OnNode]:
    """By workflow, oldest first; at most MOST_WORKFLOWS of them. Five queries."""
    tasks = Job.objects.filter(worker_node=node, status__in=_THERE).values("task_id")
    ids = (
        WorkflowPackage.objects.filter(task_id__in=tasks).order_by("workflow_id").values_list("workflow_id", flat=True)
    )
    workflows = {
        row.pk: row for row in Workflow.objects.defer("definition").filter(pk__in=ids.distinct()[:MOST_WORKFLOWS])
    }
    facts = facts_by_workflow(sorted(workflows))
    found = [
        OnNode(workflows[number], tuple(on_node(of_one, node)), _refusal(workflows[number], caller))
        for number, of_one in facts.items()
    ]
    return [one for one in found if one.packages]


def act_on_node(node: str, name: str, *, caller: Caller, reason: str) -> list[OnNode]:
    """Kill or retry the packages on a node of each workflow that the caller may command, each in a transaction of its own.

    Returns all workflows with packages there: `refused` says why one was left out. Raises CannotActError when there is none.
    """
    assert name in NODE_ACTS
    there = packages_on(node, caller)
    if not there:
        raise CannotActError(f"No package of a workflow has a job on the node {node[:100]}.")
    if all(one.refused for one in there):
        raise CannotActError(f"You may command none of the workflows that have packages on the node {node[:100]}.")
    return [one if one.refused else _done(one, node, name, caller, reason) for one in there]


def _refusal(workflow: Workflow, caller: Caller) -> str:
    return "" if caller.may_command(workflow.owner) else f"It belongs to {workflow.owner}; you may not command it."


def _done(one: OnNode, node: str, name: str, caller: Caller, reason: str) -> OnNode:
    try:
        hit = set(act_on_packages(one.workflow.pk, name, caller=caller, reason=reason, node=node).packages)
    except CannotActError as error:  # its jobs have ended meanwhile
        return replace(one, refused=str(error))
    return replace(one, packages=tuple(fact for fact in one.packages if fact.path in hit))
