"""Queues that hold far more jobs of a share than they start: how many too many, and closing them (fast rebrokerage).

Only for shares with a limit of their own (FAST_REBRO_THRESHOLD_NQUEUE_<share>). The oldest jobs that no pilot has are
closed; their files return, and the next jobs of them avoid the queue for some hours if they can go elsewhere. Jobs that
are waited for by others (builds, merging), tasks that forbid it, and queues that are told their number of slots stay.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from django.db.models import Q
from django.db.models.functions import Now

from brokerage_app.models import HarvesterSlots, WorkQueue
from brokerage_app.policy.configuration import Configuration
from brokerage_app.policy.workqueues import RESOURCE
from jedisite.database.sql import hot_cursor, texts
from jedisite.database.sql import numbers as as_array
from tasks_app.domain import range_jobs
from tasks_app.domain.killcodes import KilledJob
from tasks_app.domain.states import JobStatus
from tasks_app.outcomes.endings import KillOrder, kill_jobs
from tasks_app.upkeep.overdue import BUILD, MERGE, ONLY_HERE, STAYS, surroundings
from tasks_app.upkeep.rules.overload import FastLimits, FastRebrokerage, ShareAtQueue, fast_rebrokerage

# ruff: noqa: S608 - every piece is a constant of this module
ME = "rebrokerage"
_COUNTS = """
SELECT j.gshare, j.computingsite, coalesce(max(j.vo), ''), count(*) FILTER (WHERE j.jobstatus <> 'running'),
       count(*) FILTER (WHERE j.jobstatus = 'running')
  FROM jobs j WHERE j.jobstatus IN ('defined', 'assigned', 'activated', 'sent', 'starting', 'running')
   AND j.gshare IS NOT NULL AND j.computingsite IS NOT NULL AND coalesce(j.workqueue_id, -1) <> ALL(%s::int[])
 GROUP BY 1, 2
"""
_MAY_GO = f"""j.jobstatus IN ('defined', 'assigned', 'activated') AND NOT {BUILD} AND NOT {MERGE} AND NOT {STAYS}
   AND NOT {ONLY_HERE} AND coalesce(j.workqueue_id, -1) <> ALL(%(resource)s::int[])"""
_OLDEST = f"""
SELECT o.place, found.pandaid
  FROM unnest(%(shares)s::text[], %(queues)s::text[], %(excess)s::int[]) WITH ORDINALITY o (share, queue, excess, place)
 CROSS JOIN LATERAL (SELECT j.pandaid FROM jobs j WHERE j.computingsite = o.queue AND j.gshare = o.share AND {_MAY_GO}
                      ORDER BY j.pandaid LIMIT o.excess) found
 ORDER BY found.pandaid LIMIT %(limit)s
"""
_LOCK = f"""
SELECT j.pandaid, j.jeditaskid, j.jobstatus, coalesce(j.prodsourcelabel, ''), {range_jobs.is_of_ranges("j.")}
  FROM jobs j WHERE j.pandaid = ANY(%(ids)s::bigint[]) AND {_MAY_GO} ORDER BY j.pandaid FOR UPDATE OF j SKIP LOCKED
"""


def is_configured(config: Configuration) -> bool:
    return any(row.key.startswith("FAST_REBRO_THRESHOLD_NQUEUE") for row in config.rows)


def resource_work_queues() -> list[int]:
    """Work queues of resources, whose jobs are left alone."""
    return list(WorkQueue.objects.filter(function=RESOURCE).values_list("id", flat=True))


def overloads(config: Configuration, resource: Sequence[int]) -> list[FastRebrokerage]:
    told = HarvesterSlots.objects.filter(slots__gte=0).filter(Q(expires=None) | Q(expires__gt=Now()))
    slots = set(told.values_list("queue", flat=True))
    exempt = set(surroundings().exempt)
    with hot_cursor() as cursor:
        cursor.execute(_COUNTS, [as_array(resource)])
        rows = cursor.fetchall()
    everywhere: dict[str, int] = defaultdict(int)
    for share, _, _, queued, _ in rows:
        everywhere[share] += queued
    found = (
        fast_rebrokerage(
            ShareAtQueue(share, queue, queued, running, everywhere[share], queue in slots), _limits(config, share, vo)
        )
        for share, queue, vo, queued, running in sorted(rows)
        if queue not in exempt
    )
    return [step for step in found if step is not None]


def _limits(config: Configuration, share: str, vo: str) -> FastLimits:
    return FastLimits(
        config.get("rebroker", "FAST_REBRO_THRESHOLD_NQNR_RATIO", vo=vo),
        config.get("rebroker", "FAST_REBRO_THRESHOLD_NQUEUE_FRAC", vo=vo),
        config.get("rebroker", "FAST_REBRO_THRESHOLD_NQUEUE", share, vo=vo),
    )


def oldest_in_excess(
    found: Sequence[FastRebrokerage], resource: Sequence[int], limit: int
) -> dict[int, FastRebrokerage]:
    """The oldest jobs that are too many, up to `limit`, each with the step that closes it."""
    with hot_cursor() as cursor:
        cursor.execute(_OLDEST, {**_columns(found), "resource": as_array(resource), "limit": limit})
        return {job: found[place - 1] for place, job in cursor.fetchall()}


def _columns(found: Sequence[FastRebrokerage]) -> dict[str, Any]:
    return {
        "shares": texts(step.share for step in found),
        "queues": texts(step.queue for step in found),
        "excess": as_array(step.excess for step in found),
    }


def close_excess(cursor: psycopg.Cursor[Any], chosen: Mapping[int, FastRebrokerage], resource: Sequence[int]) -> int:
    cursor.execute(_LOCK, {"ids": as_array(sorted(chosen)), "resource": as_array(resource)})
    orders = [
        KillOrder(job, task, KilledJob(JobStatus(status), label, events), chosen[job].kill, chosen[job].reason.detail)
        for job, task, status, label, events in cursor.fetchall()
    ]
    return kill_jobs(cursor, orders, by=ME).ended
