"""Where tasks are counted: the work queue and the global share that refining gives them, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from brokerage_app.grid import installed_policy as policy
from brokerage_app.models import Queue
from brokerage_app.policy.attributes import TaskAttributes
from brokerage_app.policy.placement import Explained, NoPlaceError, Wish, check_leaf, explain, place
from brokerage_app.policy.shares import ShareTree
from brokerage_app.policy.workqueues import WorkQueues
from jedisite.vocabulary.words import sentence
from tasks_app.models import Task, TaskParams
from tasks_app.params.faults import Faults
from tasks_app.params.schema import TaskParams as Params
from tasks_app.refining.base import CannotRefine, Refined
from tasks_app.submission.storing import ATTRIBUTES

COLUMNS = {
    "vo": "vo",
    "prodsourcelabel": "prod_source_label",
    "workinggroup": "working_group",
    "processingtype": "processing_type",
    "corecount": "core_count",
    "site": "site",
    "eventservice": "event_service",
    "splitrule": "split_rule",
    "campaign": "campaign",
    "transpath": "trans_path",
}
"""The attribute that is asked about, for each column of a task."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The work queues and shares of one pass."""

    queues: WorkQueues
    tree: ShareTree

    @classmethod
    def read(cls) -> Policy:
        return cls(policy.work_queues(), policy.share_tree())


def placed(refined: Refined, params: Params, policy: Policy) -> Refined:
    """The refined task with its work queue and share.

    Raises ParamErrors for a share that no task can have, CannotRefine when no queue or no share takes the task.
    """
    wish = Wish(params.text("workQueueName"), params.text("gshare"))
    try:
        found = place(attributes_of(refined.task), wish, policy.queues, policy.tree)
    except NoPlaceError as exc:
        if exc.field:
            raise_fault(exc)
        raise CannotRefine(str(exc)) from exc
    return replace(refined, task={**refined.task, "workqueue_id": found.queue_id, "gshare": found.share})


def explained(task: Task) -> Explained:
    """Every work queue and share that is asked for a task, by its present attributes and by those configured now."""
    return explain(*asked_of(task), policy.work_queues(), policy.share_tree())


def asked_of(task: Task) -> tuple[TaskAttributes, Wish]:
    """What a stored task has and asks for, as it is asked about its place."""
    stored = TaskParams.objects.filter(pk=task.id).values_list("params", flat=True).first() or {}
    wish = Wish(stored.get("workQueueName") or None, stored.get("gshare") or None)
    return attributes_of({column: getattr(task, ATTRIBUTES[column]) for column in COLUMNS}), wish


def check_share(share: str) -> None:
    """Raises ParamErrors when tasks cannot have this share."""
    try:
        check_leaf(share, policy.share_tree())
    except NoPlaceError as exc:
        raise_fault(exc)


def raise_fault(exc: NoPlaceError) -> None:
    """Raises ParamErrors that name the parameter at fault."""
    faults = Faults()
    faults.add(exc.field, "one of", sentence(exc))
    faults.raise_if_any()


def attributes_of(columns: Mapping[str, Any]) -> TaskAttributes:
    """What decides on the place of a task, from its columns by their lower-case names."""
    given = {name: columns.get(column) for column, name in COLUMNS.items()}
    site = (given["site"] or "").split(",")[0].strip()
    return TaskAttributes(**given, site_resource_type=_resource_type_of(site) if site else None)


def _resource_type_of(site: str) -> str | None:
    data = Queue.objects.filter(pk=site).values_list("data", flat=True).first()
    found = (data or {}).get("resource_type")
    return found if isinstance(found, str) else None
