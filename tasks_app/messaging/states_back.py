"""What became of imported tasks and commands is written back into T_TASK and PRODSYS_COMM, from the feed of the outbox.

Each change of a task is in the outbox since its transaction. What is read of the feed, what is written of it and the position up
to which it was read are one statement: whoever is killed leaves all of it done, or all of it to be done.
"""

from __future__ import annotations

import json
from typing import Final

from django.db import connection

from tasks_app.domain.states import JobStatus
from tasks_app.lifecycle.outbox import TASK_STATUS
from tasks_app.messaging.production_systems import ME
from tasks_app.messaging.rules import prodsys
from tasks_app.models import FeedReader

_JOBS_DONE: Final = " + ".join(
    f"(SELECT count(*) FROM {jobs} j WHERE j.jeditaskid = d.taskid AND j.jobstatus = '{JobStatus.FINISHED}')"  # noqa: S608
    for jobs in ("jobs", "jobs_archive")
)
_WRITE: Final = f"""
WITH reader AS (SELECT name, position FROM messages_out_readers WHERE name = %(me)s FOR UPDATE SKIP LOCKED),
part AS (SELECT m.position, m.jeditaskid, m.kind, m.created, %(words)s::jsonb ->> (m.payload ->> 'status') AS word
           FROM messages_out m JOIN reader r ON m.position > r.position ORDER BY m.position LIMIT %(limit)s),
last AS (SELECT DISTINCT ON (jeditaskid) jeditaskid, word, created FROM part
          WHERE kind = %(kind)s AND word IS NOT NULL ORDER BY jeditaskid, position DESC),
written AS (UPDATE t_task d
   SET status = l.word, timestamp = l.created, current_priority = t.currentpriority,
       error = CASE WHEN l.word = ANY(%(told)s) THEN left(coalesce(t.errordialog, ''), 4000) ELSE '' END,
       start_time = CASE WHEN l.word = ANY(%(started)s) THEN coalesce(d.start_time, l.created) ELSE d.start_time END,
       total_done_jobs = CASE WHEN l.word = ANY(%(ended)s) THEN {_JOBS_DONE} ELSE d.total_done_jobs END
  FROM last l JOIN jedi_tasks t ON t.jeditaskid = l.jeditaskid
 WHERE d.taskid = l.jeditaskid AND d.imported IS NOT NULL RETURNING d.taskid),
moved AS (UPDATE messages_out_readers r SET position = (SELECT max(position) FROM part)
  FROM reader WHERE r.name = reader.name AND EXISTS (SELECT 1 FROM part))
SELECT (SELECT count(*) FROM part), (SELECT count(*) FROM written)
"""  # noqa: S608 - constants
_COMMANDS: Final = """
UPDATE prodsys_comm p SET comm_status = c.comm_status, comm_answer = c.comm_answer,
       comm_cmd = CASE c.comm_status WHEN 'refused' THEN c.comm_cmd || ' failed' ELSE p.comm_cmd END
  FROM task_commands c WHERE c.id = p.comm_command AND p.id = ANY(ARRAY(
       SELECT g.id FROM prodsys_comm g JOIN task_commands t ON t.id = g.comm_command AND t.comm_status IN ('done', 'refused')
        WHERE g.comm_status = 'given' ORDER BY g.id FOR UPDATE OF g SKIP LOCKED))
"""


def write_states(limit: int) -> tuple[int, int]:
    """Read up to `limit` messages of the feed. Returns how many were read, and how many rows of T_TASK were written."""
    FeedReader.objects.get_or_create(name=ME)
    with connection.cursor() as cursor:
        cursor.execute(
            _WRITE,
            {
                "me": ME,
                "limit": limit,
                "words": json.dumps(dict(prodsys.MIRRORED)),
                "kind": TASK_STATUS,
                "started": list(prodsys.STARTED),
                "ended": prodsys.ENDED,
                "told": prodsys.TOLD_WHY,
            },
        )
        read, written = cursor.fetchone()
        return int(read), int(written)


def write_answers() -> int:
    """Write what the tasks said to commands that they were given. Returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(_COMMANDS)
        return int(cursor.rowcount)
