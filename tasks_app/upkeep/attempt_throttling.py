"""Tasks whose files need many attempts: which are to be throttled, which go on, and how one is.

Tasks that are throttled for their user (`type=` in the dialog) belong to `user_limits.py`, unless nothing is left to hold.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import connection

from jedisite.database.sql import sql_time
from tasks_app.domain.states import JOB_OPEN
from tasks_app.domain.throttling import ATTEMPTS_A_STEP, release_throttled, throttle_by_attempts
from tasks_app.lifecycle import claims, task_moves
from tasks_app.models import Task
from tasks_app.upkeep.rules.usercaps import kind_of

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


TO_THROTTLE = f"t.numthrottled IS NOT NULL AND {_LARGEST} >= {ATTEMPTS_A_STEP} * (t.numthrottled + 1) AND {_UNUSED} > 0"
"""SQL of running tasks `t` whose files have used enough attempts."""
_BY_USER = "position('type=' in coalesce(t.errordialog, '')) > 0"


def to_release(now: datetime) -> str:
    """SQL of throttled tasks `t` whose time is over, or that have nothing left to hold."""
    return f"((coalesce(t.throttledtime <= {sql_time(now)}, true) AND NOT {_BY_USER}) OR {_UNUSED} <= 0)"


def throttle(task_id: int, fence: int, *, by: str, now: datetime) -> bool:
    """Throttle a claimed task, if it is to be. Returns whether it was."""
    task = Task.objects.get(pk=task_id)
    step = throttle_by_attempts(task.status, _number(_LARGEST, task_id), task.num_throttled, now)
    if step is None or step.until is None:
        claims.release_task(task_id, fence)
        return False
    task_moves.throttle_task(
        task_id, fence, by=by, reason=step.reason.detail, until=step.until, now=now, num_throttled=step.num_throttled
    )
    return True


def release(task_id: int, fence: int, *, by: str, now: datetime) -> bool:
    """Let a claimed task go on, if its time is over. Returns whether it was."""
    task = Task.objects.get(pk=task_id)
    until = task.throttled_time
    if kind_of(task.error_dialog) is not None:
        until = now + NOT_YET
    step = release_throttled(task.status, until, _number(_UNUSED, task_id), now)
    if step is None:
        claims.release_task(task_id, fence)
        return False
    task_moves.resume_throttled(task, fence, by=by, reason=step.reason.detail)
    return True


def _number(expression: str, task_id: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {expression} FROM jedi_tasks t WHERE t.jeditaskid = %s", [task_id])  # noqa: S608
        return int(cursor.fetchone()[0] or 0)
