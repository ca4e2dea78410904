"""Jobs whose pilot is known to be gone: they fail at once, and are not waited for until their heartbeat is overdue."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction

from jedisite.database.sql import hot_cursor, texts
from tasks_app.domain.job_timeouts import LOST_HEARTBEAT
from tasks_app.domain.killcodes import killed_with
from tasks_app.domain.states import JOB_AT_PILOT, JobStatus
from tasks_app.outcomes.job_outcome import Outcome
from tasks_app.outcomes.outcomes import book

ME = "local_workers"


@transaction.atomic
def fail_jobs_of(workers: Mapping[tuple[str, str], str], *, by: str = ME) -> int:
    """Fail the jobs that workers, given as (worker, queue), have left, each with the sentence of its worker.

    Jobs that were told to stop end as their kill says; those whose last report is here end by that. Returns how many.
    """
    pairs = sorted(workers)
    with hot_cursor() as cursor:
        cursor.execute(
            """SELECT j.pandaid, j.jeditaskid, j.workerid, j.computingsite,
                      j.commandtopilot IS NOT DISTINCT FROM 'tobekilled', j.taskbuffererrorcode
                 FROM jobs j JOIN unnest(%s::text[], %s::text[]) w (worker, site)
                   ON j.computingsite = w.site AND j.workerid = w.worker
                WHERE j.jobstatus = ANY(%s::text[]) ORDER BY j.pandaid FOR UPDATE OF j""",
            [texts(worker for worker, _ in pairs), texts(site for _, site in pairs), texts(sorted(JOB_AT_PILOT))],
        )
        outcomes = []
        for job, task, worker, site, told, error in cursor.fetchall():
            if told:
                killed = killed_with(error)
                outcomes.append(Outcome(job, task, killed.status, by=by, sub_status=killed.sub_status))
            else:
                component, code = LOST_HEARTBEAT
                outcomes.append(Outcome(job, task, JobStatus.FAILED, component, code, workers[worker, site], by=by))
        return book(cursor, outcomes) if outcomes else 0
