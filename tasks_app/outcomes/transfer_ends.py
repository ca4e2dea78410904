"""Ends of transfers for which jobs wait: copied inputs release jobs, gathered outputs end them, and failures fail them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from django.db import transaction
from psycopg.types.json import Json

from jedisite.agents.passes import kick
from jedisite.database.sql import hot_cursor, numbers, texts
from tasks_app.ddm.replica_removal import forget_replicas, remove_places
from tasks_app.domain.states import JOB_FINAL, JOB_QUEUED, JobStatus
from tasks_app.domain.transfer_states import TransferKind, TransferStatus
from tasks_app.lifecycle.job_moves import move_some
from tasks_app.outcomes.job_kills import kill_codes
from tasks_app.outcomes.job_outcome import Outcome
from tasks_app.outcomes.outcomes import book
from tasks_app.transfers import requesting, settling
from tasks_app.transfers.settling import EndedRule

ME = "mover"
NOT_COPIED, NOT_GATHERED = 200, 202
"""ddm errors: an input could not be brought to the queue, an output not to its destination."""
_ENDS = ", ".join(f"'{status}'" for status in sorted(JOB_FINAL))


def settle(limit: int = 500) -> int:
    """Act upon the ends of copies and gatherings. Returns how many there were."""
    return _settle(TransferKind.COPY, limit) + _settle(TransferKind.GATHER, limit)


def _settle(kind: TransferKind, limit: int) -> int:
    with transaction.atomic(), hot_cursor() as cursor:
        rules = settling.ended(cursor, kind, limit)
        if not rules:
            return 0
        of_jobs = [one for one in rules if one.job_id is not None]
        states = _lock_jobs(cursor, of_jobs)
        if kind == TransferKind.COPY:
            _release(cursor, [one for one in of_jobs if one.status == TransferStatus.DONE], states)
        else:
            _report(cursor, [one for one in of_jobs if one.job_id in states], states)
        waiting = [one for one in of_jobs if _waits(one, states)]
        failures = [_failure(one) for one in waiting if one.status == TransferStatus.FAILED]
        stopped = [one for one in waiting if kind == TransferKind.GATHER and one.status == TransferStatus.CANCELLED]
        book(cursor, [*failures, *_stopped(cursor, stopped)])
        if kind == TransferKind.GATHER:
            # After the logs of what ended have come into the catalogue: these stay.
            _remove_copies(
                cursor, [one for one in rules if one.status != TransferStatus.DONE or one.job_id not in states]
            )
        settling.settled(cursor, [one.id for one in rules])
        return len(rules)


def _lock_jobs(cursor: psycopg.Cursor[Any], rules: Sequence[EndedRule]) -> dict[int | None, tuple[str, bool]]:
    """State of each job, and whether it was told to stop; of those that are open."""
    cursor.execute(
        f"""SELECT pandaid, jobstatus, commandtopilot IS NOT DISTINCT FROM 'tobekilled' FROM jobs
             WHERE pandaid = ANY(%s::bigint[]) AND jobstatus NOT IN ({_ENDS}) ORDER BY pandaid FOR UPDATE""",  # noqa: S608
        [numbers(sorted({one.job_id for one in rules if one.job_id is not None}))],
    )
    return {job: (status, told) for job, status, told in cursor.fetchall()}


def _waits(rule: EndedRule, states: dict[int | None, tuple[str, bool]]) -> bool:
    status = states.get(rule.job_id, ("", False))[0]
    return status == JobStatus.TRANSFERRING if rule.kind == TransferKind.GATHER else status in JOB_QUEUED


def _release(
    cursor: psycopg.Cursor[Any], rules: Sequence[EndedRule], states: dict[int | None, tuple[str, bool]]
) -> None:
    """Jobs read their input where it is now, and may be handed out; those of a paused task are held back."""
    job_of = {one.id: one.job_id for one in rules if one.job_id in states}
    if not job_of:
        return
    files = settling.arrived(cursor, job_of)
    cursor.execute(
        """UPDATE job_files f SET surl = n.url
             FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[]) n (job, scope, lfn, url)
            WHERE f.pandaid = n.job AND f.type = 'input' AND f.scope = n.scope AND f.lfn = n.lfn""",
        [
            numbers(job_of[f.rule_id] for f in files),
            texts(f.scope for f in files),
            texts(f.lfn for f in files),
            texts(f.url for f in files),
        ],
    )
    jobs = sorted(job for job in job_of.values() if job is not None)
    cursor.execute(
        """SELECT j.pandaid FROM jobs j JOIN jedi_tasks t USING (jeditaskid)
            WHERE j.pandaid = ANY(%s::bigint[]) AND t.status = 'paused'""",
        [numbers(jobs)],
    )
    held = {job for (job,) in cursor.fetchall()}
    reason = "its input has been copied to the queue"
    free = [job for job in jobs if job not in held]
    move_some(cursor, free, JobStatus.ASSIGNED, JobStatus.ACTIVATED, by=ME, reason=reason)
    move_some(cursor, sorted(held), JobStatus.ASSIGNED, JobStatus.THROTTLED, by=ME, reason=reason)


def _report(
    cursor: psycopg.Cursor[Any], rules: Sequence[EndedRule], states: dict[int | None, tuple[str, bool]]
) -> None:
    """Jobs whose outputs have arrived report them again, at their new place."""
    rows = []
    arrived = {one.id: dict[str, str]() for one in rules}
    for file in settling.arrived(cursor, arrived):
        arrived[file.rule_id][file.lfn] = file.url
    for one in rules:
        if states[one.job_id][0] == JobStatus.TRANSFERRING and one.status == TransferStatus.DONE:
            moved = {
                lfn: {**file, "surl": arrived[one.id].get(lfn, file.get("surl"))} for lfn, file in one.report.items()
            }
            rows.append((one.job_id, one.task_id, "finished", moved))
    if not rows:
        return
    cursor.executemany(
        """INSERT INTO job_output_report (pandaid, jeditaskid, attemptnr, jobstatus, data)
           SELECT j.pandaid, %s, coalesce(j.attemptnr, 0), %s, %s FROM jobs j WHERE j.pandaid = %s ON CONFLICT DO NOTHING""",
        [(task, status, Json(data), job) for job, task, status, data in rows],
    )
    kick("adder")


def _remove_copies(cursor: psycopg.Cursor[Any], rules: Sequence[EndedRule]) -> None:
    """What was to be gathered, of jobs that make nothing after all: in no catalogue, and nobody knows of it."""
    cursor.execute(
        """SELECT q.scope, q.lfn, q.source, q.destination FROM transfer_requests q
            WHERE q.rule_id = ANY(%s::bigint[]) AND NOT EXISTS (
                  SELECT 1 FROM catalogue_files f WHERE f.lfn = q.lfn AND f.scope = q.scope)""",
        [numbers(one.id for one in rules)],
    )
    rows = cursor.fetchall()
    if rows:
        forget_replicas([("", scope, lfn) for scope, lfn, _, _ in rows])
        remove_places([(scope, lfn, at) for scope, lfn, *ends in rows for at in ends])


def _failure(rule: EndedRule) -> Outcome:
    """How a job ends whose files did not arrive."""
    assert rule.job_id is not None
    code = NOT_GATHERED if rule.kind == TransferKind.GATHER else NOT_COPIED
    return Outcome(rule.job_id, rule.task_id, JobStatus.FAILED, "ddm", code, rule.error, by=ME)


def _stopped(cursor: psycopg.Cursor[Any], rules: Sequence[EndedRule]) -> list[Outcome]:
    """Jobs that were told to stop while their outputs were gathered end as they were told."""
    if not rules:
        return []
    killed = kill_codes(cursor, [one.job_id for one in rules if one.job_id is not None])
    found = []
    for one in rules:
        assert one.job_id is not None
        if code := killed.get(one.job_id):
            found.append(Outcome(one.job_id, one.task_id, code.status, by=ME, sub_status=code.sub_status))
        else:
            found.append(Outcome(one.job_id, one.task_id, JobStatus.FAILED, by=ME))
    return found


_UNWANTED = f"""
SELECT r.id FROM transfer_rules r LEFT JOIN jobs j ON j.pandaid = r.pandaid
 WHERE r.status IN ('queued', 'active') AND r.pandaid IS NOT NULL
   AND (j.pandaid IS NULL OR j.jobstatus IN ({_ENDS}) OR (j.jobstatus = 'transferring' AND j.commandtopilot = 'tobekilled'))
 ORDER BY r.id LIMIT %s
"""  # noqa: S608 - states of ours


def cancel_unwanted(limit: int = 1000) -> int:
    """Rules of jobs that have ended, or were told to stop, are cancelled. Returns how many."""
    with transaction.atomic(), hot_cursor() as cursor:
        cursor.execute(_UNWANTED, [limit])
        rules = [rule for (rule,) in cursor.fetchall()]
        return requesting.cancel(cursor, rules, "its job has ended") if rules else 0
