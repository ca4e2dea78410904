"""Kills of single jobs by people."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from jedisite.identity import Caller, Right
from jedisite.sql import hot_cursor, numbers
from tasks_app.accounting.endings import KillOrder, kill_jobs
from tasks_app.accounting.killcodes import KilledJob, kill_code, may_kill
from tasks_app.states import JOB_FINAL, JobStatus

ANALYSIS = frozenset({"user", "panda"})


def _is_owner(caller: Caller, owner: str, working_group: str | None) -> bool:
    """Whether a job is the caller's own, or one of a group that the caller manages."""
    return owner == caller.name or working_group in caller.manages


@transaction.atomic
def kill_by_hand(job_ids: Sequence[int], caller: Caller, code: int | None = None) -> list[bool]:
    """Kill those of the jobs that the caller may kill with this code; of each, in their order, whether it is killed.

    Jobs that are not there, have ended, or may not be killed are left alone. Queued jobs end now; pilots are told to stop.
    """
    production = caller.may(Right.COMMAND_ANY)
    with hot_cursor() as cursor:
        cursor.execute(
            """SELECT pandaid, jeditaskid, jobstatus, coalesce(prodsourcelabel, ''), coalesce(eventservice, 0) > 0,
                      coalesce(produsername, ''), workinggroup
                 FROM jobs WHERE pandaid = ANY(%s::bigint[]) ORDER BY pandaid FOR UPDATE""",
            [numbers(sorted(set(job_ids)))],
        )
        reason = f"{kill_code(code).meaning} ({caller.name})"
        orders = [
            KillOrder(job_id, task_id, KilledJob(JobStatus(status), label, event_service), kill_code(code).code, reason)
            for job_id, task_id, status, label, event_service, owner, group in cursor.fetchall()
            if status not in JOB_FINAL
            and may_kill(
                code, owner=_is_owner(caller, owner, group), production_role=production, analysis=label in ANALYSIS
            )
        ]
        kill_jobs(cursor, orders, by=caller.name[:128], production_role=production)
    killed = {order.job_id for order in orders}
    return [job_id in killed for job_id in job_ids]
