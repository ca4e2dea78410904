"""Which tasks at work are measured anew from their finished jobs."""

from __future__ import annotations

from datetime import datetime

from django.db import connection

from tasks_app.models.task import SCOUTS_SKIPPED
from tasks_app.scouts.rules import scouts


def to_measure(now: datetime) -> str:
    """SQL of tasks `t` that are to be measured."""
    checked_before = (now - scouts.CHECK_EVERY).isoformat()
    return f"""t.walltimeunit IS NULL AND (t.assessmenttime IS NULL OR t.assessmenttime <= '{checked_before}'::timestamptz)
           AND EXISTS (SELECT 1 FROM jobs j WHERE j.jeditaskid = t.jeditaskid AND j.jobstatus = 'finished')"""  # noqa: S608


def ask_again() -> int:
    """Running tasks whose finished jobs have passed a mark since the last report are to be measured anew: their unit
    of walltime is cleared. Returns how many."""
    most = scouts.MEASURE_AGAIN_AT[-1]
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT t.jeditaskid, coalesce(r.finishedjobs, 0),
                      (SELECT count(*) FROM (SELECT 1 FROM jobs j WHERE j.jeditaskid = t.jeditaskid
                                                AND j.jobstatus = 'finished' LIMIT %(most)s) done)
                 FROM jedi_tasks t LEFT JOIN LATERAL (
                      SELECT finishedjobs FROM scout_reports s WHERE s.jeditaskid = t.jeditaskid ORDER BY s.id DESC LIMIT 1) r
                      ON true
                WHERE t.status = 'running' AND t.walltimeunit IS NOT NULL AND t.walltimeunit <> %(skipped)s
                  AND coalesce(r.finishedjobs, 0) < %(most)s""",
            {"most": most, "skipped": SCOUTS_SKIPPED},
        )
        due = [task for task, before, now in cursor.fetchall() if scouts.measure_again(before, now)]
        cursor.execute(
            """UPDATE jedi_tasks SET walltimeunit = NULL WHERE jeditaskid IN (
                   SELECT jeditaskid FROM jedi_tasks WHERE jeditaskid = ANY(%s) AND status = 'running'
                    ORDER BY jeditaskid FOR UPDATE SKIP LOCKED)""",
            [due],
        )
        return cursor.rowcount
