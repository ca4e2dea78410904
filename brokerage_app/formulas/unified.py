"""Pseudo queues: a queue that cuts its slots to size stands for one queue of each resource type (JEDI brokerage document).

Memory is in MB for the whole slot; a limit of 0 is none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from brokerage_app.vocabulary.resource_types import DEFAULT_TABLE, ResourceType
from brokerage_app.vocabulary.site_view import CUT_TO_SIZE, SiteView


@dataclass(frozen=True, slots=True)
class PseudoQueue:
    """One resource type of a queue; `name` is "queue/type"."""

    name: str
    resource_type: str
    cores: int
    min_memory_mb: int
    max_memory_mb: int


def pseudo_queues(
    queue: str, cores: int, min_memory_mb: int, max_memory_mb: int, table: Iterable[ResourceType] = DEFAULT_TABLE
) -> tuple[PseudoQueue, ...]:
    """The pseudo queues of a queue in the order of the table; types that need more cores than a slot has are left out."""
    slot = max(cores, 1)
    return tuple(
        _pseudo_queue(queue, slot, min_memory_mb, max_memory_mb, row)
        for row in table
        if row.min_cores is None or slot >= row.min_cores
    )


def _pseudo_queue(queue: str, slot: int, min_mb: int, max_mb: int, row: ResourceType) -> PseudoQueue:
    cores = max(slot if row.max_cores is None else min(slot, row.max_cores), row.min_cores or 0)
    least, most = min_mb * cores // slot, max_mb * cores // slot
    if row.min_memory_per_core_mb is None:
        least = max(least, min_mb)
    else:
        # a type begins where the next lower one ends, so the slot is to have more than that type's most
        least = max(least, cores * row.min_memory_per_core_mb - cores + 1)
    if row.max_memory_per_core_mb is None:
        most = min(most, max_mb)
    else:
        ceiling = cores * row.max_memory_per_core_mb
        most = min(most, ceiling) if max_mb else ceiling
    return PseudoQueue(f"{queue}/{row.name}", row.name, cores, max(least, 0), most)


def parts_of(parent: SiteView, types: Iterable[ResourceType]) -> list[SiteView]:
    """The pseudo queues of a queue that cuts its slots to size; none for others. Each has its part of the scratch disk."""
    if parent.capability != CUT_TO_SIZE:
        return []
    core = max(1, parent.cores)
    return [
        replace(
            parent,
            name=part.name,
            parent=parent.name,
            cores=part.cores,
            min_memory_mb=part.min_memory_mb,
            max_memory_mb=part.max_memory_mb,
            work_dir_mb=parent.work_dir_mb * part.cores // core,
        )
        for part in pseudo_queues(parent.name, core, parent.min_memory_mb, parent.max_memory_mb, types)
    ]
