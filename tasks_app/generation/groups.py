"""How tasks and jobs are grouped for the throttle, and what it has decided for one pass of the job generator.

Only work queues with a share, and global shares that are throttled, take part. A partition is one queue: tasks of its sub
queues are grouped together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from django.db.models import Subquery
from django.db.models.functions import JSONObject

from brokerage_app.models import GlobalShare, ThrottleRecord, WorkQueue
from brokerage_app.policy.throttle import Allowance
from brokerage_app.policy.workqueues import RESOURCE, partitions_of
from jedisite import refusals
from jedisite.database.sql import numbers as as_array
from jedisite.database.sql import texts
from tasks_app.domain.jumbo_use import ENABLED
from tasks_app.models import Task

# ruff: noqa: S608 - every piece is a constant of this module
OUTDATED: Final = timedelta(minutes=5)
"""Decisions are written anew each minute while tasks wait: an older one is of the past."""


class Group(NamedTuple):
    """What one decision is for. `queue` is `share:NAME` or `queue:ID`, of a sub queue the ID of its partition."""

    vo: str
    label: str
    queue: str
    resource_type: str


@dataclass(frozen=True, slots=True)
class Queues:
    """The work queues and shares by which tasks and jobs are grouped.

    resource   ids of work queues that keep their own counts, whatever the share of their jobs
    partitions ids of partitions by the ids of their sub queues
    shares     names of all shares that tasks may have
    names      the names of those that are throttled, by key; a task of another one is not
    all_names  the names of all, by key
    """

    resource: tuple[int, ...] = ()
    partitions: Mapping[int, int] = field(default_factory=dict)
    shares: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    all_names: Mapping[str, str] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, Any]:
        """The parameters of `key_of`."""
        return {
            "resource": as_array(self.resource),
            "shares": texts(self.shares),
            "sub_queues": as_array(self.partitions),
            "partitions": as_array(self.partitions.values()),
        }

    def unit(self, queue_id: int | None) -> int | None:
        """The work queue as it is grouped: its partition, or itself."""
        return self.partitions.get(queue_id, queue_id) if queue_id is not None else None


def key_of(row: str) -> str:
    """SQL for the key of a row of tasks or jobs; null for rows that belong to nothing that is known."""
    return f"""CASE WHEN {row}.workqueue_id = ANY(%(resource)s::int[]) THEN 'queue:' || {row}.workqueue_id
                    WHEN {row}.gshare = ANY(%(shares)s::text[]) THEN 'share:' || {row}.gshare
                    ELSE 'queue:' || {unit_of(row)} END"""


def unit_of(row: str) -> str:
    """SQL for the work queue of a row as it is grouped: its partition, or itself."""
    number = f"array_position(%(sub_queues)s::int[], {row}.workqueue_id::int)"
    return f"coalesce((%(partitions)s::int[])[{number}], {row}.workqueue_id)"


def known_queues() -> Queues:
    """The work queues and shares of this installation."""
    return _grouped_by(
        WorkQueue.objects.only("name", "share", "function", "partition_id"),
        GlobalShare.objects.filter(children=None).only("name", "throttled"),
    )


def _grouped_by(queues: Iterable[WorkQueue], leaves: Iterable[GlobalShare]) -> Queues:
    rows, shares = list(queues), list(leaves)
    resource = sorted(row.id for row in rows if row.function == RESOURCE)
    partitions = partitions_of(rows)
    rows = [row for row in rows if row.id not in partitions]
    names = {f"queue:{row.id}": row.name for row in rows if row.share is not None}
    names |= {f"share:{share.name}": share.name for share in shares if share.throttled != "N"}
    all_names = {f"queue:{row.id}": row.name for row in rows} | {f"share:{share.name}": share.name for share in shares}
    return Queues(tuple(resource), partitions, tuple(sorted(share.name for share in shares)), names, all_names)


def group_of(task: Task, queues: Queues) -> Group | None:
    """The group of a task; None for tasks that are never throttled."""
    key = _key(task, queues)
    if key not in queues.names:
        return None
    return Group(task.vo or "", task.prod_source_label or "", key, task.resource_type or "")


def _key(task: Task, queues: Queues) -> str:
    """`key_of` for a task that is at hand."""
    if task.work_queue_id not in queues.resource and task.gshare in queues.shares:
        return f"share:{task.gshare}"
    return f"queue:{queues.unit(task.work_queue_id)}"


def name_of(task: Task, queues: Queues) -> str:
    """The name of the work queue or share by which a task is grouped; "" without one."""
    return queues.all_names.get(_key(task, queues), "")


def record_of(task: Task, now: datetime) -> ThrottleRecord | None:
    """The decision that holds for a task; None for tasks that are not throttled, and when none was made lately.

    One query, and one more for a task of a partition; its `work_queue` should be at hand.
    """
    if not task.gshare and not task.work_queue_id:
        return None
    leaf = GlobalShare.objects.filter(children=None, name=task.gshare).values(
        found=JSONObject(name="name", throttled="throttled")
    )
    of = [task.work_queue] if task.work_queue else []
    of += WorkQueue.objects.filter(pk=of[0].partition_id) if of and of[0].partition_id else []
    records = ThrottleRecord.objects.filter(
        vo=task.vo or "",
        label=task.prod_source_label or "",
        resource_type=task.resource_type or "",
        queue__in=[*(f"queue:{row.id}" for row in of), f"share:{task.gshare}"],
        at__gt=now - OUTDATED,
    ).annotate(leaf=Subquery(leaf))
    found = list(records)
    shares = [GlobalShare(**record.leaf) for record in found[:1] if record.leaf]
    group = group_of(task, _grouped_by(of, shares))
    return next((record for record in found if group is not None and record.queue == group.queue), None)


def is_throttled(task: Task, now: datetime) -> bool:
    """Whether the decision that holds for a task keeps it from more jobs. One query, and one more as for `record_of`."""
    record = record_of(task, now)
    return record is not None and bool(record.code) and _is_below(task, record.min_priority)


def _is_below(task: Task, least: int | None) -> bool:
    return least is None or (task.current_priority or 0) < least


@dataclass(slots=True)
class Throttle:
    """The decisions of one pass, and how many jobs each group may still make in it."""

    queues: Queues = field(default_factory=Queues)
    allowances: dict[Group, Allowance] = field(default_factory=dict)
    off: tuple[str, ...] = ()
    """VOs for which no jobs are made."""
    _made: dict[Group, int] = field(default_factory=lambda: defaultdict(int))

    def condition(self) -> tuple[str, dict[str, Any]]:
        """SQL on the row `t` that holds for tasks that may get jobs, and its values."""
        parts, values = [], {}
        if self.off:
            parts.append("coalesce(t.vo, '') <> ALL(%(off)s::text[])")
            values["off"] = texts(self.off)
        refused = self.refused()
        if refused:
            # Consumers of tasks with jumbo jobs may wait for these, however many jobs of the group there are.
            parts.append(f"(t.usejumbo IN ({_WITH_JUMBO}) OR NOT EXISTS (SELECT 1 FROM {GROUPS} WHERE {CONCERNS}))")
            values |= self.queues.values | columns(refused)
        return " AND ".join(parts) or "TRUE", values

    def room(self, task: Task) -> int | None:
        """Jobs that a task may get in this pass; None is any number."""
        group = self._group(task)
        allowance = self.allowances.get(group) if group else None
        if group is None or allowance is None or allowance.max_jobs is None:
            return None
        return max(allowance.max_jobs - self._made[group], 0)

    def refuses(self, task: Task) -> bool:
        """Whether a task gets no jobs by the decision of its group."""
        group = self._group(task)
        allowance = self.allowances.get(group) if group else None
        return allowance is not None and bool(allowance.code) and _is_below(task, allowance.min_priority)

    def made(self, task: Task, jobs: int) -> None:
        group = self._group(task)
        if group is not None:
            self._made[group] += jobs

    def waits(self, task: Task) -> bool:
        """Whether more jobs of the task's group are to be made in a later pass only, so that pilots have time for these."""
        group = self._group(task)
        allowance = self.allowances.get(group) if group else None
        return allowance is not None and allowance.max_jobs is not None and not allowance.lack_of_jobs

    def _group(self, task: Task) -> Group | None:
        return group_of(task, self.queues)

    def refused(self) -> list[tuple[Group, Allowance]]:
        """Groups of which some or all tasks get no jobs."""
        return [(group, a) for group, a in self.allowances.items() if a.code]


_WITH_JUMBO: Final = ", ".join(f"'{use}'" for use in sorted(ENABLED))
GROUPS: Final = """unnest(%(vos)s::text[], %(labels)s::text[], %(queues)s::text[], %(types)s::text[], %(least)s::int[],
                    %(titles)s::text[], %(notes)s::text[]) g (vo, label, queue, resource_type, least, title, note)"""
CONCERNS: Final = f"""g.vo = coalesce(t.vo, '') AND g.label = coalesce(t.prodsourcelabel, '') AND g.queue = {key_of("t")}
           AND g.resource_type = coalesce(t.resource_type, '')
           AND (g.least IS NULL OR coalesce(t.currentpriority, 0) < g.least)"""
"""SQL: the groups that get no jobs, from `columns`, and whether one of them is that of the task `t`."""


def columns(refused: Sequence[tuple[Group, Allowance]]) -> dict[str, Any]:
    """The parameters of GROUPS."""
    titles = [refusals.get(allowance.code).title for _, allowance in refused]
    return {
        "vos": texts(group.vo for group, _ in refused),
        "labels": texts(group.label for group, _ in refused),
        "queues": texts(group.queue for group, _ in refused),
        "types": texts(group.resource_type for group, _ in refused),
        "least": as_array(allowance.min_priority for _, allowance in refused),
        "titles": texts(titles),
        "notes": texts(f"{title}: {a.detail}" for title, (_, a) in zip(titles, refused, strict=True)),
    }
