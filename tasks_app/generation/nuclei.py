"""Tasks whose outputs are gathered at a nucleus: which need one, what the choice reads of them, and the move that gives it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from django.db import transaction

from brokerage_app.brokers.production_task import Decision, Destination
from brokerage_app.cases.gathering import (
    NUCLEUS,
    Gathering,
    RemainingWork,
    asked_token,
    group_of,
    remaining_hs06s,
)
from brokerage_app.policy.workqueues import RESOURCE
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.stored import as_json, from_json
from jedisite.database.sql import hot_cursor, numbers, texts
from tasks_app.domain.states import TaskStatus
from tasks_app.generation.turn_facts import needs_of
from tasks_app.inputs.locality import inputs_of
from tasks_app.inputs.preprocessed import params_of
from tasks_app.lifecycle import task_moves
from tasks_app.lifecycle.nucleus_waits import as_output, gathered_by_nucleus
from tasks_app.models import Dataset, Task
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.params.split_codes import CODES
from tasks_app.params.splitrule import SplitRule

WORKS_IN: Final = (TaskStatus.READY, TaskStatus.SCOUTING, TaskStatus.RUNNING, TaskStatus.PENDING)
AT_WORK: Final = (TaskStatus.SCOUTING, TaskStatus.RUNNING)
"""A task that was reassigned in the midst of these goes on in them."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the choice of a nucleus reads of one task. `hs06s` is its own remaining work."""

    task: Task
    needs: TaskNeeds
    gathering: Gathering
    hs06s: float


def asked_of(task: Task, now: datetime) -> Asked:
    """Read a task and its parent, for the choice."""
    rule, raw = SplitRule.parse(task.split_rule), params_of(task.id)
    queue = task.work_queue
    is_resource = queue is not None and queue.function == RESOURCE
    parent_nucleus, parent_chain = _parent(task)
    needs = needs_of(task, raw)
    by_cpu = bool(
        task.cpu_time and task.cpu_time_unit
    )  # then a walltime counts only for jobs whose events nobody knows
    needs = replace(
        needs,
        walltime_s=0 if by_cpu else needs.walltime_s,
        nucleus=task.nucleus or "",
        full_chain=full_chain_of(rule),
        t1_weight=rule.get_int("TW"),
        prestaging=rule.get_int("IS") == 1,
        io_intensity=float(task.io_intensity) if task.io_intensity is not None else None,
        priority=_first(task.current_priority, task.task_priority),
        frozen_s=(now - task.frozen_time).total_seconds() if task.frozen_time else None,
        inputs=inputs_of(task),
    )
    gathering = Gathering(
        tuple(as_output(dataset) for dataset in gathered_by_nucleus(task.id)),
        on_master=bool(raw.get("taskBrokerOnMaster")),
        parent_nucleus=parent_nucleus,
        parent_full_chain=parent_chain,
        group=group_of(task.gshare or "", queue.name if queue is not None else "", is_resource=is_resource),
    )
    return Asked(task, needs, gathering, _hs06s_of(task))


def _first(*values: int | None) -> int:
    return next((value for value in values if value is not None), 0)


def full_chain_of(rule: SplitRule) -> str:
    number = rule.get_int("FU")
    return CODES["FU"].values.get(number, "") if number is not None else ""


def _parent(task: Task) -> tuple[str, str]:
    """The nucleus of the parent task, and in which words that asked for its chain to stay there."""
    if not task.parent_id or task.parent_id == task.id:
        return "", ""
    found = Task.objects.filter(pk=task.parent_id).values_list("nucleus", "split_rule").first()
    return (found[0] or "", full_chain_of(SplitRule.parse(found[1]))) if found else ("", "")


def _hs06s_of(task: Task) -> float:
    masters = Dataset.objects.filter(task_id=task.id, type__in=INPUT_TYPES, master_id=None)
    return sum(
        remaining_hs06s(events or 0, used or 0, task.cpu_time, task.cpu_time_unit)
        for events, used in masters.values_list("events", "events_used")
    )


# The same as `remaining_hs06s` and `group_of`, for all tasks at once.
_WORK = """
SELECT t.nucleus,
       CASE WHEN t.gshare <> '' AND w.queue_function IS DISTINCT FROM %(resource)s THEN 'share ' || t.gshare
            ELSE 'queue ' || coalesce(w.queue_name, '') END,
       coalesce(t.currentpriority, t.taskpriority, 0),
       sum(greatest(coalesce(d.nevents, 0) - coalesce(d.neventsused, 0), 0)::float8 * greatest(coalesce(t.cputime, 300), 0)
           / CASE WHEN t.cputimeunit LIKE 'm%%' THEN 1000 ELSE 1 END)
  FROM jedi_tasks t JOIN jedi_datasets d ON d.jeditaskid = t.jeditaskid
  LEFT JOIN jedi_work_queue w ON w.queue_id = t.workqueue_id
 WHERE t.status = ANY(%(statuses)s::text[]) AND t.nucleus <> '' AND t.vo = %(vo)s AND t.prodsourcelabel = %(label)s
   AND d.masterid IS NULL AND d.type = ANY(%(types)s::text[]) AND d.nfiles > d.nfilesfinished + d.nfilesfailed
 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""


def remaining_work(vo: str, label: str) -> RemainingWork:
    """The work that tasks of a kind still have to do for each nucleus."""
    with hot_cursor() as cursor:
        cursor.execute(
            _WORK,
            {
                "resource": RESOURCE,
                "statuses": texts(WORKS_IN),
                "vo": vo,
                "label": label,
                "types": texts(INPUT_TYPES),
            },
        )
        return RemainingWork.of(cursor.fetchall())


@transaction.atomic
def assign(asked: Asked, fence: int, decision: Decision, *, by: str) -> None:
    """Give a task its nucleus and its outputs their places; it goes on. The decision has one drawn.

    Raises LostClaimError, and then writes nothing.
    """
    if decision.drawn is None:
        raise ValueError(f"no nucleus was drawn for task {asked.task.id}")
    task = asked.task
    to = task.old_status if task.old_status in AT_WORK else TaskStatus.READY
    task_moves.move_task(
        task.id,
        to,
        by=by,
        reason=decision.sentence(),
        fence=fence,
        nucleus=decision.drawn.nucleus,
        old_status=None,
        error_dialog=None,
    )
    _place(task.id, decision.drawn.destinations)


def _place(task_id: int, destinations: Iterable[Destination]) -> None:
    some = sorted(destinations, key=lambda d: d.output.id)
    with hot_cursor() as cursor:
        cursor.execute(
            """UPDATE jedi_datasets d
                  SET destination = n.destination, storagetoken = n.token, modificationtime = clock_timestamp()
                 FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS n (id, destination, token)
                WHERE d.datasetid = n.id AND d.jeditaskid = %s""",
            [
                numbers(d.output.id for d in some),
                texts(d.destination for d in some),
                texts(d.token for d in some),
                task_id,
            ],
        )


def forget_places(task_id: int) -> None:
    """Take the outputs of a task from their nucleus; what was asked for of their storage is kept."""
    some = list(Dataset.objects.filter(task_id=task_id, destination__startswith=NUCLEUS))
    for dataset in some:
        dataset.storage_token = asked_token(dataset.storage_token, dataset.destination) or None
        dataset.destination = None
    Dataset.objects.bulk_update(some, ["storage_token", "destination"])


def facts_of(asked: Asked, decision: Decision, work: RemainingWork, draw: float) -> Mapping[str, Any]:
    """What is kept beside needs and grid, so that the decision can be made again. `queues`: what was said of them, for the
    pages of sites.
    """
    return {
        "draw": draw,
        "drawn": decision.drawn.nucleus if decision.drawn else None,
        "chance": decision.drawn.chance if decision.drawn else None,
        "note": decision.note,
        "gathering": as_json(asked.gathering),
        "queues": {"skipped": decision.queues.kept_skips(), "reasons": decision.queues.compact()},
        "work": [[nucleus, *portion] for nucleus, some in sorted(work.portions.items()) for portion in some],
    }


@dataclass(frozen=True, slots=True)
class Known:
    """What was kept by `facts_of` for making a decision again."""

    gathering: Gathering
    draw: float
    work: RemainingWork

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Known:
        return cls(
            from_json(Gathering, facts.get("gathering", {})),
            float(facts.get("draw", 0.0)),
            RemainingWork.of(facts.get("work", ())),
        )
