"""Invariants of logs and messages: they name the states that there are, and no message or mail is left behind.

As (name, sentence, query), see `flow_invariants`.
"""

from __future__ import annotations

import json

from tasks_app.domain.states import JOB_FINAL
from tasks_app.messaging.production_systems import ME
from tasks_app.messaging.rules.prodsys import MIRRORED

_JOB_ENDS = ", ".join(f"'{status}'" for status in sorted(JOB_FINAL))
_WORDS = json.dumps(dict(MIRRORED))
STALE_AFTER = "10 minutes"
"""Claims are freed after five minutes by a watchdog that looks twice a minute."""

# ruff: noqa: S608 - every piece is a constant of this module
ROWS: tuple[tuple[str, str, str], ...] = (
    (
        "task_state_is_logged",
        "The last entry of a task's log names its state.",
        """
        SELECT t.jeditaskid, t.status, l.status AS logged FROM jedi_tasks t LEFT JOIN LATERAL (
               SELECT status FROM tasks_statuslog l WHERE l.jeditaskid = t.jeditaskid ORDER BY l.id DESC LIMIT 1) l ON true
         WHERE l.status IS DISTINCT FROM t.status AND t.modificationtime > clock_timestamp() - interval '60 days'""",
    ),
    (
        "task_state_is_told",
        "The last message about a task names its state.",
        """
        SELECT t.jeditaskid, t.status, m.payload ->> 'status' AS told FROM jedi_tasks t CROSS JOIN LATERAL (
               SELECT payload FROM messages_out m WHERE m.jeditaskid = t.jeditaskid AND m.kind = 'task_status'
                ORDER BY m.id DESC LIMIT 1) m
         WHERE m.payload ->> 'status' IS DISTINCT FROM t.status""",
    ),
    (
        "messages_go_out",
        f"No message and no mail is older than {STALE_AFTER} without an attempt to send it.",
        f"""
        SELECT 'message' AS what, id, created FROM messages_out
         WHERE position IS NULL AND created < clock_timestamp() - interval '{STALE_AFTER}'
        UNION ALL
        SELECT 'mail', id, created FROM notifications WHERE sent IS NULL AND not_sent = '' AND attempts = 0
           AND created < clock_timestamp() - interval '{STALE_AFTER}'""",
    ),
    (
        "messages_come_in",
        f"Every message that arrived more than {STALE_AFTER} ago was tried; a processed message has no error, a parked one has.",
        f"""
        SELECT id, message_id, attempts, processed, parked, error FROM messages_in
         WHERE (processed IS NULL AND parked IS NULL AND attempts = 0
                AND received < clock_timestamp() - interval '{STALE_AFTER}')
            OR (processed IS NOT NULL AND (error <> '' OR attempts = 0)) OR (parked IS NOT NULL AND error = '')""",
    ),
    (
        "production_systems_are_served",
        f"Every row of T_TASK that was imported is a task, one that was refused says why, and no command that a task has answered"
        f" is without its answer for {STALE_AFTER}.",
        f"""
        SELECT 'task' AS what, d.taskid AS id, d.status, d.error FROM t_task d
         WHERE (d.imported IS NOT NULL AND NOT EXISTS (SELECT 1 FROM jedi_tasks t WHERE t.jeditaskid = d.taskid))
            OR (d.imported IS NULL AND d.status <> 'waiting' AND d.error = '')
        UNION ALL
        SELECT 'command', p.id, p.comm_status, p.comm_answer FROM prodsys_comm p
         WHERE (p.comm_status = 'refused' AND p.comm_answer = '') OR (p.comm_status = 'given' AND NOT EXISTS (
               SELECT 1 FROM task_commands c WHERE c.id = p.comm_command
                  AND (c.comm_ended IS NULL OR c.comm_ended > clock_timestamp() - interval '{STALE_AFTER}')))""",
    ),
    (
        "production_systems_are_told",
        "T_TASK says what the last message said that was read of the task.",
        f"""
        SELECT d.taskid, d.status, m.word FROM t_task d JOIN messages_out_readers r ON r.name = '{ME}'
         CROSS JOIN LATERAL (
               SELECT '{_WORDS}'::jsonb ->> (m.payload ->> 'status') AS word FROM messages_out m
                WHERE m.jeditaskid = d.taskid AND m.kind = 'task_status' AND m.position <= r.position
                  AND '{_WORDS}'::jsonb ? (m.payload ->> 'status') ORDER BY m.position DESC LIMIT 1) m
         WHERE d.imported IS NOT NULL AND m.word <> d.status""",
    ),
    (
        "job_state_is_logged",
        "The log of a job names its state, and its final state once.",
        f"""
        SELECT j.pandaid, j.jobstatus, l.times FROM jobs j CROSS JOIN LATERAL (
               SELECT count(*) AS times FROM jobs_statuslog l WHERE l.pandaid = j.pandaid AND l.jobstatus = j.jobstatus) l
         WHERE (l.times = 0 OR (j.jobstatus IN ({_JOB_ENDS}) AND l.times > 1))
           AND j.modificationtime > clock_timestamp() - interval '60 days'""",
    ),
)
