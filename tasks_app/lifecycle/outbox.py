"""The outbox: changes of state become messages in the transaction that makes them. Nothing is sent from here.

The payload has the fields of PanDA's messages (msg_type, taskid or jobid, status, timestamp in seconds), and some more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

import psycopg

from jedisite.agents.registry import REGISTRY
from jedisite.database.sql import numbers
from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.models import Notification, OutMessage, Task

TASKS, JOBS = "jedi.tasks", "jedi.jobs"
TASK_STATUS, JOB_STATUS = "task_status", "job_status"
TOLD_TO_OWNERS = TASK_FINAL | {TaskStatus.EXHAUSTED}


def task_changed(task: Task, old: str | None, *, at: datetime, by: str, reason: str) -> None:
    """Tell that a task is in another state now: everybody who listens, and its owner when it matters to a person."""
    OutMessage.objects.create(
        topic=TASKS,
        kind=TASK_STATUS,
        task_id=task.id,
        owner=task.user,
        payload={
            "msg_type": TASK_STATUS,
            "taskid": task.id,
            "status": task.status,
            "timestamp": int(at.timestamp()),
            "oldstatus": old,
            "attemptnr": task.attempt,
            "username": task.user,
            "by": by,
        },
    )
    if task.status in TOLD_TO_OWNERS or (task.status == TaskStatus.PAUSED and by in REGISTRY):
        Notification.objects.create(task_id=task.id, status=task.status, reason=reason)


def pushing(cursor: psycopg.Cursor, task_ids: Collection[int]) -> list[int]:
    """Those of the tasks that want every change of their jobs to be told (PC of the split rule)."""
    cursor.execute(
        "SELECT jeditaskid FROM jedi_tasks WHERE jeditaskid = ANY(%s::bigint[]) AND splitrule ~ '(^|,)PC=0*[1-9]'",
        [numbers(task_ids)],
    )
    return sorted(task for (task,) in cursor.fetchall())


def jobs_changed(cursor: psycopg.Cursor, job_ids: Iterable[int]) -> int:
    """Tell the present state of these jobs, in the transaction that changed it. Returns how many messages.

    To be called for jobs of tasks that want it only; see `pushing`.
    """
    cursor.execute(
        """INSERT INTO messages_out (topic, kind, jeditaskid, pandaid, username, payload)
           SELECT %s, %s, jeditaskid, pandaid, produsername, jsonb_build_object(
                  'msg_type', %s::text, 'jobid', pandaid, 'taskid', jeditaskid, 'status', jobstatus,
                  'timestamp', extract(epoch FROM clock_timestamp())::bigint, 'computingsite', computingsite,
                  'attemptnr', attemptnr)
             FROM jobs WHERE pandaid = ANY(%s::bigint[]) ORDER BY pandaid""",
        [JOBS, JOB_STATUS, JOB_STATUS, numbers(job_ids)],
    )
    return cursor.rowcount
