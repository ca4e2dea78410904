"""Pending tasks: which are due, and what becomes of one.

Those that no site would take return sooner when the grid has changed since (`tasks_app/lifecycle/site_waits.py`).

frozenTime keeps the moment since which nothing could be done, also while the task goes back and forth between pending
and what it tries: so a task whose trouble never ends is exhausted after a week. A task that waits for its parent has
none, and waits without end.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from jedisite.database.sql import sql_time
from tasks_app.configured import timeout_limits
from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.domain.throttling import PendingView, leave_pending
from tasks_app.lifecycle import claims, site_waits, task_moves
from tasks_app.models import Task

_ENDS = ", ".join(f"'{status}'" for status in sorted(TASK_FINAL))
_PARENT_WORKS = f"""EXISTS (SELECT 1 FROM jedi_tasks p WHERE p.jeditaskid = t.parent_tid AND p.jeditaskid <> t.jeditaskid
                             AND p.status NOT IN ({_ENDS}))"""  # noqa: S608 - constants


def due(now: datetime) -> str:
    """SQL of pending tasks `t` whose wait is over, or that are stuck for too long, with the values of `site_waits`."""
    return f"""t.oldstatus IS NOT NULL AND (t.next_check_at <= {sql_time(now)}
        OR {site_waits.CHANGED.format(now=sql_time(now))}
        OR (t.frozentime <= {sql_time(now)} - {timeout_limits.stuck_sql()} AND NOT {_PARENT_WORKS}))"""


def leave(task_id: int, fence: int, *, by: str, now: datetime, changed: datetime | None) -> bool:
    """Let a claimed task go on, or give it up. Returns whether it was its time."""
    task = Task.objects.get(pk=task_id)
    longest = timeout_limits.limit("task.stuck", task.prod_source_label or "", vo=task.vo or "")
    parent = None
    if task.parent_id and task.parent_id != task_id:
        parent = Task.objects.filter(pk=task.parent_id).values_list("status", flat=True).first()
    since = task.state_change_time or task.creation_date
    view = PendingView(task.old_status, since, task.frozen_time, site_waits.due(task, changed), parent)
    step = leave_pending(view, now, longest)
    if step is None:
        claims.release_task(task_id, fence, wait=max(task.next_check - now, timedelta()))
        return False
    reason = step.reason.detail
    if step.status == TaskStatus.EXHAUSTED:
        dialog = f"{reason}; the last reason: {task.error_dialog or 'none was given'}"
        task_moves.move_task(task_id, step.status, by=by, reason=reason, fence=fence, error_dialog=dialog)
        return True
    # The clock of how long the task has been stuck runs on until something works.
    task_moves.move_task(
        task_id,
        task.old_status or TaskStatus.READY,
        by=by,
        reason=reason,
        fence=fence,
        old_status=None,
        frozen_time=task.frozen_time,
    )
    return True
