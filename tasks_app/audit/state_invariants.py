"""Invariants of states: moves that the tables allow, reasons of tasks that rest, places of what is made.

As (name, sentence, query), see `flow_invariants`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tasks_app.domain.states import JOB_MOVES, TASK_FINAL, TASK_MOVES

_TASK_ENDS = ", ".join(f"'{status}'" for status in sorted(TASK_FINAL))

# ruff: noqa: S608 - every piece is a constant of this module


def _pairs(moves: Mapping[Any, Iterable[str]]) -> str:
    return ", ".join(f"('{old}', '{new}')" for old, nexts in moves.items() for new in sorted(nexts))


ROWS: tuple[tuple[str, str, str], ...] = (
    (
        "task_moves_are_allowed",
        "Every change of a task's state in the log of the last day is allowed by the table of moves.",
        f"""
        SELECT l.jeditaskid, l.oldstatus, l.status, l.actor FROM tasks_statuslog l
         WHERE l.modificationtime > clock_timestamp() - interval '1 day' AND l.oldstatus <> l.status
           AND (l.oldstatus, l.status) NOT IN (VALUES {_pairs(TASK_MOVES)})""",
    ),
    (
        "job_moves_are_allowed",
        "Every change of a job's state in the log of the last hour is allowed by the table of moves.",
        f"""
        SELECT l.pandaid, l.old, l.jobstatus, l.actor FROM (
               SELECT pandaid, jobstatus, actor, lag(jobstatus) OVER (PARTITION BY pandaid ORDER BY id) AS old
                 FROM jobs_statuslog WHERE modificationtime > clock_timestamp() - interval '1 hour') l
         WHERE l.old <> l.jobstatus AND (l.old, l.jobstatus) NOT IN (VALUES {_pairs(JOB_MOVES)})""",
    ),
    (
        "waiting_task_says_why",
        "A task that is pending, throttled or exhausted has a sentence that explains why.",
        """
        SELECT jeditaskid, status, oldstatus FROM jedi_tasks
         WHERE status IN ('pending', 'throttled', 'exhausted') AND coalesce(errordialog, '') = ''""",
    ),
    (
        "metadata_mark_of_complete_tasks",
        "Only a task that is done or finished has the mark by which catalogues of metadata find complete ones.",
        """
        SELECT jeditaskid, status, amiflag FROM jedi_tasks WHERE amiflag = 'READY' AND status NOT IN ('done', 'finished')""",
    ),
    (
        "forecast_of_working_task",
        "Only a task that makes jobs has an expected end, with the time at which it was worked out.",
        """
        SELECT jeditaskid, status, ttcpredicted, ttcpredictiondate FROM jedi_tasks
         WHERE (ttcpredicted IS NULL) <> (ttcpredictiondate IS NULL)
            OR (ttcpredicted IS NOT NULL AND status NOT IN ('ready', 'scouting', 'running'))""",
    ),
    (
        "failure_rate_is_percent",
        "The failure rate of a task is between 0 and 100.",
        "SELECT jeditaskid, failurerate FROM jedi_tasks WHERE failurerate NOT BETWEEN 0 AND 100",
    ),
    (
        "serial_within_its_limit",
        "No template of file names has given a number above its highest.",
        "SELECT jeditaskid, outtempid, serialnr, maxserialnr FROM jedi_output_template WHERE serialnr - 1 > maxserialnr",
    ),
    (
        "output_is_in_its_container",
        "A dataset that a task has made for a container is in that container.",
        """
        SELECT d.jeditaskid, d.datasetid, d.datasetname, d.containername FROM jedi_datasets d
          JOIN catalogue_datasets c ON c.name = d.datasetname AND c.made_by_task = d.jeditaskid
          JOIN catalogue_datasets b ON b.name = rtrim(d.containername, '/') || '/'
         WHERE d.type IN ('output', 'log')
           AND NOT EXISTS (SELECT 1 FROM catalogue_members m
                            WHERE m.from_cataloguedataset_id = b.id AND m.to_cataloguedataset_id = c.id)""",
    ),
    (
        "schedule_counts_its_records",
        "A schedule has counted the inputs that it made, and its input stays open as long as the schedule lasts.",
        f"""
        SELECT p.jeditaskid, p.records, d.nfiles, p.ended, d.state, t.status FROM periodic_tasks p
          JOIN jedi_tasks t USING (jeditaskid)
          JOIN jedi_datasets d ON d.jeditaskid = p.jeditaskid AND d.type = 'pseudo_input' AND d.masterid IS NULL
         WHERE p.records <> d.nfiles OR (p.ended IS NULL AND d.state <> 'mutable' AND t.status NOT IN ({_TASK_ENDS}))""",
    ),
)
