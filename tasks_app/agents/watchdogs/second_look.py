"""Watchdog: tasks at work are measured anew from their finished jobs: the first ones, and when 5 and 100 have finished."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from django.db import connection
from django.utils import timezone

from jedisite.agents.passes import owner
from jedisite.agents.registry import Pass, agent
from tasks_app.domain.states import TaskStatus
from tasks_app.lifecycle import claims
from tasks_app.models.task import SCOUTS_SKIPPED
from tasks_app.scouts.rules import scouts
from tasks_app.scouts.scouting import look_again

ME = "second_look"
LIMIT = 100
MEASURED = (TaskStatus.SCOUTING, TaskStatus.RUNNING)


@agent("second_look", every="30s", title="Measures tasks again as more of their jobs finish")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Ask for a new measurement where enough jobs have finished, and measure what was asked for."""
    if not claims.states_in_use(MEASURED):
        return Pass()
    now = now or timezone.now()
    asked = _ask_again()
    claimed = claims.claim_tasks(
        owner(),
        MEASURED,
        limit,
        condition=_to_measure(now),
        even_waiting=True,
        agent=ME,
    )
    measured = claims.for_each(claimed, partial(look_again, by=ME, now=now), by=ME)
    return Pass(measured, f"{asked} to be measured again" if asked else "", more=len(claimed) == limit)


def _to_measure(now: datetime) -> str:
    checked_before = (now - scouts.CHECK_EVERY).isoformat()
    return f"""t.walltimeunit IS NULL AND (t.assessmenttime IS NULL OR t.assessmenttime <= '{checked_before}'::timestamptz)
           AND EXISTS (SELECT 1 FROM jobs j WHERE j.jeditaskid = t.jeditaskid AND j.jobstatus = 'finished')"""  # noqa: S608


def _ask_again() -> int:
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
