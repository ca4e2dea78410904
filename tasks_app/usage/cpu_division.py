"""How CPU is divided now: what each global share executes against its target, and what each work queue should get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.db.models import Count

from brokerage_app.grid import installed_policy
from brokerage_app.policy.division import distribute, serving_order
from brokerage_app.policy.shares import BranchUsage, Share, Usage, metrics
from brokerage_app.policy.workqueues import QueueRow
from tasks_app.counts.line_order import powers_of_queues, powers_of_shares
from tasks_app.models import Task

WHOLE: Final = 100.0


@dataclass(frozen=True, slots=True)
class ShareNow:
    """A share of the tree. Power in HS; `branch` for those of the first level, `figures` for leaves."""

    share: Share
    percent: float
    usage: Usage
    branch: BranchUsage | None
    figures: Mapping[str, float] | None


@dataclass(frozen=True, slots=True)
class QueueNow:
    """A work queue. `percent` of the CPUs of its VO and label, None when it is outside the sharing; its open tasks."""

    queue: QueueRow
    partition: str | None
    tasks: int
    percent: float | None


@dataclass(frozen=True, slots=True)
class Division:
    """`order`: the queues that keep their own statistics, then leaves by their under-use; without a tree the work queues in
    the order in which their jobs are sent."""

    shares: tuple[ShareNow, ...]
    queues: tuple[QueueNow, ...]
    order: tuple[str, ...]


def division(vo: str | None = None, label: str | None = None) -> Division:
    """The whole tree; the queues, and the order, of one VO and label or, where these are None, of all."""
    tree, queues = installed_policy.share_tree(), installed_policy.work_queues()
    executing, queued = powers_of_shares()
    usage = tree.usage(executing, queued)
    branches, figures = tree.branches(usage), metrics(usage, [leaf.name for leaf in tree.leaves])
    shares = tuple(
        ShareNow(share, tree.percents[name], usage[name], branches.get(name), figures.get(name))
        for name, share in tree.shares.items()
    )
    chosen = [row for row in queues.rows if vo in (None, row.vo) and label in (None, row.type)]
    if tree:
        order = [row.name for row in queues.resources(vo, label)]
        order += [leaf.name for leaf in tree.aligned(vo, label, executing)]
    else:
        names = {row.id: row.name for row in chosen}
        order = [names[one] for one in serving_order(queues.rows, *powers_of_queues()) if one in names]
    return Division(shares, _queues(chosen), tuple(order))


def _queues(rows: list[QueueRow]) -> tuple[QueueNow, ...]:
    """Queues in their order. Those of each VO and label divide the whole among those of them that have open tasks."""
    ids = [row.id for row in rows]
    counted = Task.objects.open().filter(work_queue__in=ids).values("work_queue").annotate(tasks=Count("id"))
    tasks = {int(row["work_queue"]): int(row["tasks"]) for row in counted.order_by()}
    percents: dict[int, float] = {}
    for level in {(row.vo, row.type) for row in rows}:
        percents |= distribute(WHOLE, [row for row in rows if (row.vo, row.type) == level], tasks)
    names = {row.id: row.name for row in rows if row.is_partition}
    return tuple(
        QueueNow(row, names.get(row.partition_id or 0), tasks.get(row.id, 0), percents.get(row.id)) for row in rows
    )
