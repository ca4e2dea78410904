"""Tasks that wait for a nucleus: which do, when one is looked for again, and what ends a wait before its time.

A look sets the time of the next one before it reads anything, counted from when the pass read the grid. So a change of the
grid is later than the look that has not seen it, or earlier by less than `UNSEEN`, and a wait that is made shorter meanwhile
stays shorter.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, Final

from django.db import connection
from django.utils import timezone

from brokerage_app.brokers import production_task
from brokerage_app.cases.gathering import Output, is_gathered
from brokerage_app.grid.configured import configuration
from brokerage_app.models import GridVersion, Site
from tasks_app.configured import timeout_limits
from tasks_app.lifecycle.site_waits import UNSEEN
from tasks_app.models import Dataset, Task

NUCLEUS_ROLE: Final = "nucleus"
GATHERED_TYPES: Final = ("output", "log")

# Whose time comes within the least wait is left to it: a wait that was made shorter says no more when the task was looked at.
_CHANGED = """
(t.next_check_at > clock_timestamp() + %(changed)s
 AND t.next_check_at - %(assigning)s < (SELECT max(at) FROM grid_versions WHERE part = ANY(%(parts)s)) + %(unseen)s
 AND t.next_check_at - %(assigning)s + %(changed)s <= clock_timestamp())
"""
DUE: Final = f"(t.next_check_at <= clock_timestamp() OR {_CHANGED})"
"""SQL of tasks `t` for which a nucleus is to be looked for, with `due_values`."""
_WAKE = """
UPDATE jedi_tasks SET next_check_at = greatest(clock_timestamp(), next_check_at - %(assigning)s + %(changed)s)
 WHERE jeditaskid IN (
    SELECT jeditaskid FROM jedi_tasks
     WHERE status = 'assigning' AND next_check_at > clock_timestamp() + %(changed)s
       AND jeditaskid IN (SELECT jeditaskid FROM jedi_datasets WHERE datasetname = ANY(%(names)s::text[]) AND type = 'input')
     ORDER BY jeditaskid FOR UPDATE)
"""


def needs_nucleus(task: Task) -> bool:
    """Whether a task has to be given a nucleus before its jobs are made: it names one, or is of a kind that gets one, and there
    are some.
    """
    is_brokered = production_task.is_responsible(configuration(), task.vo or "", task.prod_source_label or "")
    if not is_brokered and not task.nucleus:
        return False
    places = [d.destination for d in gathered_by_nucleus(task.id)]
    if not production_task.needs_nucleus(task.cloud, task.nucleus, places, is_brokered=is_brokered):
        return False
    return bool(task.nucleus) or _has_nuclei()


def _has_nuclei() -> bool:
    return Site.objects.filter(role=NUCLEUS_ROLE).exists()


def gathered_by_nucleus(task_id: int) -> list[Dataset]:
    """Datasets that a nucleus is to gather: not those for which the task names an endpoint, or that stay where they are made."""
    found = Dataset.objects.filter(task_id=task_id, type__in=GATHERED_TYPES).order_by("list_position", "id")
    return [d for d in found if (not d.destination or is_gathered(d.destination)) and not as_output(d).is_distributed]


def as_output(dataset: Dataset) -> Output:
    return Output.of(dataset.id, dataset.name, dataset.storage_token, dataset.destination)


def due_values() -> dict[str, Any]:
    return {**_waits(), "parts": list(GridVersion.AWAITED), "unseen": UNSEEN}


def _waits() -> dict[str, Any]:
    return {
        "assigning": timeout_limits.limit("task.assigning"),
        "changed": timeout_limits.limit("task.assigning_changed"),
    }


def begin_look(task_id: int, fence: int, read_at: datetime) -> None:
    """Before anything is read of a claimed task: set when its next look is due. `read_at`: before the grid was read, by the
    database's clock. A claim that is gone is left alone.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jedi_tasks SET next_check_at = %s WHERE jeditaskid = %s AND fence = %s",
            [read_at + timeout_limits.limit("task.assigning"), task_id, fence],
        )


def wake_readers(names: Collection[str]) -> None:
    """In the transaction in which more of these datasets is found: tasks that wait and read them look again, a minute after their
    last look at the earliest.
    """
    if names:
        with connection.cursor() as cursor:
            cursor.execute(_WAKE, {**_waits(), "names": sorted(names)})


def next_look(task: Task) -> datetime:
    """When a nucleus is looked for again for a task that has none. One statement."""
    assigning, changed = timeout_limits.limit("task.assigning"), timeout_limits.limit("task.assigning_changed")
    looked = task.next_check - assigning
    if task.next_check <= timezone.now() + changed:
        return task.next_check
    if GridVersion.objects.filter(part__in=GridVersion.AWAITED, at__gt=looked - UNSEEN).exists():
        return min(task.next_check, looked + changed)
    return task.next_check
