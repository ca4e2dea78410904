"""Kills of single jobs by people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import psycopg
from django.db import transaction

from jedisite import audit
from jedisite.database.sql import hot_cursor, numbers
from jedisite.identity.callers import Caller, Right
from jedisite.vocabulary.words import plural
from tasks_app.domain import range_jobs
from tasks_app.domain.killcodes import Kill, KilledJob, When, kill_code, kill_result, may_kill
from tasks_app.domain.states import JOB_FINAL, JobStatus
from tasks_app.outcomes.endings import KillOrder, kill_jobs

ANALYSIS = frozenset({"user", "panda"})


class _Row(NamedTuple):
    job_id: int
    task_id: int | None
    status: str
    label: str
    event_service: bool
    owner: str
    group: str | None
    site: str


def _rows(cursor: psycopg.Cursor[Any], job_ids: Sequence[int], lock: str = "") -> list[_Row]:
    """The jobs that are there, in the order of their ids; `lock` is a clause of ours."""
    cursor.execute(
        f"""SELECT pandaid, jeditaskid, jobstatus, coalesce(prodsourcelabel, ''), {range_jobs.is_of_ranges()},
                   coalesce(produsername, ''), workinggroup, coalesce(computingsite, '')
              FROM jobs WHERE pandaid = ANY(%s::bigint[]) ORDER BY pandaid {lock}""",  # noqa: S608 - a constant
        [numbers(sorted(set(job_ids)))],
    )
    return [_Row(*row) for row in cursor.fetchall()]


def _may(row: _Row, caller: Caller, code: int | None) -> bool:
    owner = row.owner == caller.name or row.group in caller.manages
    return may_kill(code, owner=owner, production_role=caller.may(Right.COMMAND_ANY), analysis=row.label in ANALYSIS)


@transaction.atomic
def kill_by_hand(job_ids: Sequence[int], caller: Caller, code: int | None = None, *, why: str = "") -> list[bool]:
    """Kill those of the jobs that the caller may kill with this code; of each, in their order, whether it is killed.

    Jobs that are not there, have ended, or may not be killed are left alone. Queued jobs end now; pilots are told to stop.
    """
    production = caller.may(Right.COMMAND_ANY)
    with hot_cursor() as cursor:
        reason = f"{kill_code(code).meaning} ({caller.name})" + (f": {why}" if why else "")
        orders = [
            KillOrder(
                row.job_id,
                row.task_id,
                KilledJob(JobStatus(row.status), row.label, row.event_service),
                kill_code(code).code,
                reason[:500],
            )
            for row in _rows(cursor, job_ids, "FOR UPDATE")
            if row.status not in JOB_FINAL and _may(row, caller, code)
        ]
        kill_jobs(cursor, orders, by=caller.name[:128], production_role=production)
    killed = {order.job_id for order in orders}
    return [job_id in killed for job_id in job_ids]


def code_for(caller: Caller) -> Kill:
    """The code with which people of this kind kill on the pages."""
    return Kill.PRODUCTION_ROLE if caller.may(Right.COMMAND_ANY) else Kill.USER


@dataclass(frozen=True, slots=True)
class KillPlan:
    """What a kill would do. `refused` has the ids of jobs that it leaves alone, by why."""

    at_once: tuple[int, ...]
    at_next_call: tuple[int, ...]
    tasks: int
    sites: int
    owners: dict[str, int]
    refused: dict[str, list[int]]

    @property
    def ids(self) -> list[int]:
        return sorted((*self.at_once, *self.at_next_call))


def plan_kill(job_ids: Sequence[int], caller: Caller) -> KillPlan:
    """What a kill of these jobs by this caller would do now. One query."""
    code, production = code_for(caller), caller.may(Right.COMMAND_ANY)
    with hot_cursor() as cursor:
        rows = _rows(cursor, job_ids)
    found: dict[When, list[_Row]] = {When.NOW: [], When.NEXT_HEARTBEAT: []}
    refused: dict[str, list[int]] = {}
    for row in rows:
        job = KilledJob(JobStatus(row.status), row.label, row.event_service)
        when = kill_result(code, job, production_role=production).when
        if when is When.NEVER:
            refused.setdefault(f"is {row.status} already", []).append(row.job_id)
        elif not _may(row, caller, code):
            refused.setdefault(f"belongs to {row.owner or 'nobody'}; you may not kill it", []).append(row.job_id)
        else:
            found[when].append(row)
    gone = sorted(set(job_ids) - {row.job_id for row in rows})
    if gone:
        refused["does not exist, or ended long ago"] = gone
    hit = [row for some in found.values() for row in some]
    return KillPlan(
        tuple(row.job_id for row in found[When.NOW]),
        tuple(row.job_id for row in found[When.NEXT_HEARTBEAT]),
        len({row.task_id for row in hit}),
        len({row.site for row in hit}),
        dict(Counter(row.owner for row in hit).most_common()),
        refused,
    )


@transaction.atomic
def kill_for_a_reason(job_ids: Sequence[int], caller: Caller, reason: str) -> list[int]:
    """Kill as `kill_by_hand` does, with an entry in the audit trail for the act and for each job. Returns the killed."""
    ids = sorted(set(job_ids))
    done = kill_by_hand(ids, caller, code_for(caller), why=reason)
    killed = [job_id for job_id, is_killed in zip(ids, done, strict=True) if is_killed]
    hit = f"{len(killed)} of {plural(len(ids), 'job')}"
    act = audit.record(caller.name, "bulk kill", "jobs", hit, reason=reason, details={"ids": ids})
    audit.record_many(caller.name, "kill", "job", killed, reason=reason, details={"bulk": act.pk})
    return killed
