"""Ends jobs whose time is over: candidates are found by SQL, `timeout_of` decides, kills and failures are booked."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from functools import partial
from typing import Any

import psycopg

from jedisite.agents import troubles
from jedisite.database.sql import hot_cursor
from tasks_app.configured import timeout_limits
from tasks_app.domain import range_jobs
from tasks_app.domain.job_timeouts import (
    TIMEOUTS,
    Do,
    JobTimeout,
    JobView,
    QueueView,
    TimeoutRule,
    TimeoutSettings,
    timeout_of,
)
from tasks_app.domain.killcodes import KilledJob
from tasks_app.domain.states import JobStatus
from tasks_app.outcomes.endings import KillOrder, kill_jobs
from tasks_app.outcomes.job_outcome import Outcome
from tasks_app.upkeep.overdue import (
    BOUND,
    BUILD,
    BY_CHANNEL,
    EVENTS,
    JUMBO,
    MERGE,
    ORPHAN,
    REPORT,
    STAYS,
    Surroundings,
    condition,
    look_around,
    values_of,
)

# ruff: noqa: S608 - every piece is a constant of this module
BUNCH = 1000
SUB_STATUSES = {"events": range_jobs.TOO_LONG}
"""Of jobs that are killed for being over a rule; without one they have that of the kill code."""


def expire_jobs(rules: Collection[str], now: datetime, *, by: str, limit: int) -> tuple[int, bool]:
    """Kill or fail up to about `limit` jobs that are over one of these rules at `now`.

    Returns how many, and whether more may be. Jobs that somebody else has locked are left for the next pass.
    """
    wanted = [rule for rule in TIMEOUTS if rule.name in rules]
    around = look_around(wanted, now)
    done, after = 0, 0
    while done < limit:
        with hot_cursor() as cursor:
            ids = _candidates(cursor, wanted, around, now, after, by)
            done += troubles.salvage(by, ids, partial(_end, cursor, around=around, now=now, by=by))
        if len(ids) < BUNCH:
            return done, False
        after = ids[-1]
    return done, True


def _candidates(
    cursor: psycopg.Cursor[Any],
    rules: list[TimeoutRule],
    around: Surroundings,
    now: datetime,
    after: int,
    by: str,
) -> list[int]:
    over = " OR ".join(f"({condition(rule, around)})" for rule in rules)
    statuses = sorted({status for rule in rules for status in rule.statuses})
    cursor.execute(
        f"""SELECT j.pandaid FROM jobs j
             WHERE j.jobstatus = ANY(%(statuses)s::text[]) AND j.pandaid > %(after)s AND ({over})
               AND NOT {troubles.left_aside("job", "j.pandaid")}
               AND coalesce(j.computingsite, '') <> ALL(%(exempt)s::text[])
             ORDER BY j.pandaid LIMIT {BUNCH}""",
        {**values_of(around, now), "after": after, "statuses": statuses, "agent": by},
    )
    return [job for (job,) in cursor.fetchall()]


def _end(cursor: psycopg.Cursor[Any], ids: list[int], around: Surroundings, now: datetime, by: str) -> int:
    """Lock the jobs, decide again on what is locked, and book. Reports come before jobs, as the adder locks them."""
    cursor.execute(
        "SELECT pandaid FROM job_output_report WHERE pandaid = ANY(%s) ORDER BY pandaid FOR UPDATE SKIP LOCKED", [ids]
    )
    reports = {job for (job,) in cursor.fetchall()}
    cursor.execute(
        f"""SELECT j.pandaid, j.jeditaskid, j.jobstatus, j.creationtime, coalesce(j.statechangetime, j.creationtime),
                   j.heartbeat_at, coalesce(j.prodsourcelabel, ''), j.currentpriority, coalesce(j.computingsite, ''),
                   {BUILD}, {MERGE}, {EVENTS}, {ORPHAN}, {REPORT}, j.jobsubstatus IS NOT NULL, {STAYS},
                   j.computingsite = ANY(%(silent)s::text[]) AND {BOUND},
                   j.commandtopilot IS NOT DISTINCT FROM 'tobekilled', coalesce(j.vo, ''), coalesce(j.workinggroup, ''),
                   coalesce(j.processingtype, ''), {JUMBO}, {BY_CHANNEL}
              FROM jobs j WHERE j.pandaid = ANY(%(ids)s) ORDER BY j.pandaid FOR UPDATE OF j SKIP LOCKED""",
        {"ids": ids, "silent": around.silent},
    )
    settings: dict[str, TimeoutSettings] = {}
    orders, outcomes, again = [], [], []
    for row in cursor.fetchall():
        task_id, vo, view = row[1], row[VO], _view(row, around)
        if vo not in settings:
            settings[vo] = timeout_limits.job_settings(vo)
        if view.report_waits and view.job_id not in reports:
            continue  # it is being booked at this moment
        found = timeout_of(view, now, settings[vo])
        if found is None:
            continue
        if found.do == Do.KILL and found.kill is not None:
            killed = KilledJob(view.status, view.label, view.event_service)
            orders.append(
                KillOrder(view.job_id, task_id, killed, found.kill, found.reason.detail, SUB_STATUSES.get(found.rule))
            )
        elif found.do == Do.FAIL:
            outcomes.append(_failure(found, task_id, by))
        else:
            again.append(view.job_id)
    if outcomes:
        cursor.execute("DELETE FROM job_output_report WHERE pandaid = ANY(%s)", [[o.job_id for o in outcomes]])
    if again:
        cursor.execute("UPDATE jobs SET heartbeat_at = %s WHERE pandaid = ANY(%s)", [now, again])
    # One booking for both, so that datasets are locked once and in order.
    done = kill_jobs(cursor, orders, by=by, further=outcomes)
    return done.ended + done.told + len(again)


VO = 18
"""The place of the organisation in a row of `_end`."""


def _failure(found: JobTimeout, task_id: int | None, by: str) -> Outcome:
    component, code = found.error or ("jobdispatcher", 0)
    return Outcome(found.job_id, task_id, JobStatus.FAILED, component, code, found.reason.detail, by=by)


def _view(row: tuple[Any, ...], around: Surroundings) -> JobView:
    (
        job_id,
        task_id,
        status,
        created,
        since,
        heartbeat,
        label,
        priority,
        site,
        build,
        merge,
        events,
        orphan,
        report,
        own_stage_out,
        stays,
        bound,
        told,
        _vo,
        group,
        processing_type,
        jumbo,
        by_channel,
    ) = row
    workflow, queue = around.workflows.get(site, ""), around.queues.get(site, QueueView(site))
    return JobView(
        job_id,
        JobStatus(status),
        created,
        since,
        heartbeat,
        label,
        priority,
        workflow,
        queue,
        build=build,
        merge=merge,
        event_service=events,
        orphan_merge=orphan,
        report_waits=report,
        own_stage_out=own_stage_out,
        task_active_at=around.active.get((task_id, site)),
        stays=stays,
        told=told,
        bound=bound,
        working_group=group,
        processing_type=processing_type,
        jumbo=jumbo,
        by_channel=by_channel,
    )
