"""Tasks that wait for a site: what ends a wait before its time.

A look ends with a move to pending, whose time is kept with the task. Where the grid has changed since, the task is tried
again, some seconds after its look at the earliest. Nothing is written when the grid changes, so that a change costs whoever
makes it the same however many tasks wait.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import QuerySet

from brokerage_app.models import GridVersion
from tasks_app.configured import timeout_limits
from tasks_app.domain.states import TASK_GENERATING, TaskStatus
from tasks_app.lifecycle import task_moves
from tasks_app.models import Task

AWAITED: Final = (*GridVersion.AWAITED, GridVersion.SHARES)
"""A share of users also: tasks of some classes wait until its use is below its target."""
SEEKS_SITE: Final = frozenset({*TASK_GENERATING, TaskStatus.TOPREPROCESS, TaskStatus.PREPROCESSING})
"""What a task does that wants a site for its jobs, or for its preprocessing step. One that was set aside returns there."""

UNSEEN: Final = timedelta(seconds=1)
"""A change that is older than a look by less than this may not have been seen by it, and counts as later. Its time is that of the
database just before its commit, so that a look may begin between the two; that of the look's end is of the clock of a process.
The next look, which is further from the change than this, is the last for it: no wait is shorter (`_least`).
"""

CHANGED: Final = """
(t.statechangetime < %(unseen_by)s AND t.statechangetime <= {now} - %(after_change)s
 AND t.frozentime IS NOT NULL AND t.oldstatus = ANY(%(seeks_site)s))
"""
"""SQL of pending tasks `t` that are due since the grid has changed, by the time `now` in SQL; with `values`."""

_SOONER = """
UPDATE jedi_tasks SET next_check_at = least(next_check_at, statechangetime + %(least)s)
 WHERE jeditaskid = %(task)s AND (SELECT max(at) FROM grid_versions WHERE part = ANY(%(parts)s)) > %(seen)s
"""


def last_change() -> QuerySet[GridVersion, datetime]:
    """When the grid, parameters or shares have changed last, as far as a task may wait for that; none before the first change."""
    return GridVersion.objects.filter(part__in=AWAITED).order_by("-at").values_list("at", flat=True)[:1]


def values(changed: datetime | None) -> dict[str, Any]:
    """The values of CHANGED; `changed` is what `last_change` has found."""
    unseen_by = None if changed is None else changed + UNSEEN
    return {"unseen_by": unseen_by, "after_change": _least(), "seeks_site": sorted(SEEKS_SITE)}


def due(task: Task, changed: datetime | None) -> datetime:
    """When a pending task is tried again, where the grid has `changed` last at that time."""
    looked = task.state_change_time
    waits_for_site = task.frozen_time is not None and task.old_status in SEEKS_SITE
    if not waits_for_site or changed is None or looked is None or looked >= changed + UNSEEN:
        return task.next_check
    return min(task.next_check, looked + _least())


def set_aside(task_id: int, fence: int, *, by: str, reason: str, read_at: datetime) -> None:
    """Put a task into pending that no site takes. `read_at`: before the grid was read, by the database's clock.

    What has changed between then and the move has not been seen, and is earlier than the move: the next look comes soon.
    """
    since: dict[str, Any] = {"least": _least(), "task": task_id, "parts": list(AWAITED), "seen": read_at - UNSEEN}
    with transaction.atomic():
        task_moves.set_aside(task_id, fence, by=by, reason=reason)
        # After the move: what comes later than this is later than the move too.
        with connection.cursor() as cursor:
            cursor.execute(_SOONER, since)


def _least() -> timedelta:
    return max(timeout_limits.limit("task.pending_changed"), UNSEEN)
