"""Watchdog: tasks whose files need many attempts pause between them; throttled tasks go on when their time is over.

Tasks that are throttled for their user (`type=` in the dialog) belong to the watchdog of user caps, unless nothing is
left to hold.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from django.db import connection

from jedisite.agents.passes import owner
from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import sql_time, the_time
from tasks_app.domain.states import JOB_OPEN, TaskStatus
from tasks_app.domain.throttling import ATTEMPTS_A_STEP, release_throttled, throttle_by_attempts
from tasks_app.lifecycle import claims, task_moves
from tasks_app.models import Task
from tasks_app.upkeep.rules.usercaps import kind_of

ME = "throttle"
LIMIT = 200
NOT_YET = timedelta(days=1)
_OPEN = ", ".join(f"'{status}'" for status in sorted(JOB_OPEN))
# The attempts of files that wait for another one, and those of files in jobs, which their jobs know: no scan of all files.
_LARGEST = f"""greatest(
    (SELECT max(c.attemptnr) FROM file_retries r
       JOIN jedi_datasets d ON d.datasetid = r.datasetid AND d.masterid IS NULL AND d.type IN ('input', 'pseudo_input')
       JOIN jedi_dataset_contents c ON c.jeditaskid = r.jeditaskid AND c.datasetid = r.datasetid AND c.fileid = r.fileid
      WHERE r.jeditaskid = t.jeditaskid),
    (SELECT max(j.attemptnr) - 1 FROM jobs j WHERE j.jeditaskid = t.jeditaskid AND j.jobstatus IN ({_OPEN})), 0)"""  # noqa: S608
_UNUSED = """coalesce((SELECT sum(d.nfilestobeused - d.nfilesused) FROM jedi_datasets d
    WHERE d.jeditaskid = t.jeditaskid AND d.masterid IS NULL AND d.type IN ('input', 'pseudo_input')
      AND d.status NOT IN ('removed', 'failed', 'broken')), 0)"""


@agent("throttle", every="60s", title="Throttles tasks whose files need many attempts")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Throttle tasks, then release those whose time is over."""
    if not claims.states_in_use([TaskStatus.RUNNING, TaskStatus.THROTTLED]):
        return Pass()
    now = the_time(now)
    condition = (
        f"t.numthrottled IS NOT NULL AND {_LARGEST} >= {ATTEMPTS_A_STEP} * (t.numthrottled + 1) AND {_UNUSED} > 0"
    )
    many = claims.claim_tasks(owner(), [TaskStatus.RUNNING], limit, condition=condition, even_waiting=True, agent=ME)
    items = claims.for_each(many, partial(_throttle, now=now), by=ME)
    by_user = "position('type=' in coalesce(t.errordialog, '')) > 0"
    mine = f"(coalesce(t.throttledtime <= {sql_time(now)}, true) AND NOT {by_user})"
    over = f"({mine} OR {_UNUSED} <= 0)"
    held = claims.claim_tasks(owner(), [TaskStatus.THROTTLED], limit, condition=over, even_waiting=True, agent=ME)
    items += claims.for_each(held, partial(_release, now=now), by=ME)
    return Pass(items, more=max(len(many), len(held)) == limit)


def _throttle(task_id: int, fence: int, *, now: datetime) -> bool:
    task = Task.objects.get(pk=task_id)
    step = throttle_by_attempts(task.status, _number(_LARGEST, task_id), task.num_throttled, now)
    if step is None or step.until is None:
        claims.release_task(task_id, fence)
        return False
    task_moves.throttle_task(
        task_id, fence, by=ME, reason=step.reason.detail, until=step.until, now=now, num_throttled=step.num_throttled
    )
    return True


def _release(task_id: int, fence: int, *, now: datetime) -> bool:
    task = Task.objects.get(pk=task_id)
    until = task.throttled_time
    if kind_of(task.error_dialog) is not None:
        until = now + NOT_YET
    step = release_throttled(task.status, until, _number(_UNUSED, task_id), now)
    if step is None:
        claims.release_task(task_id, fence)
        return False
    task_moves.resume_throttled(task, fence, by=ME, reason=step.reason.detail)
    return True


def _number(expression: str, task_id: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {expression} FROM jedi_tasks t WHERE t.jeditaskid = %s", [task_id])  # noqa: S608
        return int(cursor.fetchone()[0] or 0)
