"""Stores what harvester instances and pilots report about workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from psycopg.types.numeric import Int8

from jedisite.database.sql import hot_cursor, numbers, texts
from tasks_app.dispatch.harvester_instances import check_in
from tasks_app.models.worker import INSTANCE_LENGTH, WORKER_ENDED

COLUMNS: dict[str, str] = {
    "batchid": "text",
    "queuename": "text",
    "ncore": "int",
    "nodeid": "text",
    "submittime": "timestamptz",
    "starttime": "timestamptz",
    "endtime": "timestamptz",
    "jobtype": "text",
    "resourcetype": "text",
    "nativeexitcode": "int",
    "nativestatus": "text",
    "diagmessage": "text",
    "njobs": "int",
    "computingelement": "text",
    "submissionhost": "text",
    "harvesterhost": "text",
    "errorcode": "int",
    "minramcount": "bigint",
}
"""What an instance may say of a worker, with types. What it does not say leaves the column as it is."""


@dataclass(frozen=True, slots=True)
class WorkerNews:
    """`about` is by column; `jobs` are those that were handed to the worker by its instance."""

    worker_id: int
    status: str
    site: str
    about: Mapping[str, Any] = field(default_factory=dict)
    jobs: Sequence[int] = ()


# A worker that has ended does not come back to life: news may arrive late.
# ruff: noqa: S608 - every piece is a constant of this module
_UPDATE = f"""
INSERT INTO harvester_workers AS w (harvesterid, workerid, status, computingsite, {", ".join(COLUMNS)}, lastupdate)
SELECT %(harvester)s, given.*, clock_timestamp()
  FROM unnest(%(worker)s::bigint[], %(status)s::text[], %(site)s::text[],
              {", ".join(f"%({name})s::{kind}[]" for name, kind in COLUMNS.items())}) given (worker)
 ORDER BY worker
    ON CONFLICT (harvesterid, workerid) DO UPDATE
   SET status = CASE WHEN w.status = ANY(%(ended)s) AND excluded.status <> ALL(%(ended)s) THEN w.status ELSE excluded.status END,
       computingsite = excluded.computingsite, lastupdate = excluded.lastupdate,
       {", ".join(f"{name} = coalesce(excluded.{name}, w.{name})" for name in COLUMNS)}
"""
_JOBS = """
INSERT INTO harvester_rel_jobs_workers (harvesterid, workerid, pandaid)
SELECT %(harvester)s, g.worker, g.job FROM unnest(%(worker)s::bigint[], %(job)s::bigint[]) g (worker, job)
 WHERE EXISTS (SELECT 1 FROM jobs j WHERE j.pandaid = g.job) ORDER BY g.worker, g.job
    ON CONFLICT DO NOTHING
"""
_HIGHEST = "UPDATE harvester_instances SET max_workerid = greatest(max_workerid, %(highest)s) WHERE harvester_id = %(harvester)s"


@transaction.atomic
def update_workers(harvester: str, news: Sequence[WorkerNews], *, by: str) -> None:
    """Store an instance's reports on its workers; of several reports on one worker, the last. Raises ForeignInstanceError."""
    check_in(harvester, by=by)
    last = {one.worker_id: one for one in news}
    if not last:
        return
    pairs = [(one.worker_id, job) for one in last.values() for job in one.jobs]
    with hot_cursor() as cursor:
        cursor.execute(_UPDATE, {"harvester": harvester, "ended": list(WORKER_ENDED), **_arrays(list(last.values()))})
        if pairs:
            given = {"worker": numbers(worker for worker, _ in pairs), "job": numbers(job for _, job in pairs)}
            cursor.execute(_JOBS, {"harvester": harvester, **given})
        cursor.execute(_HIGHEST, {"harvester": harvester, "highest": max(last)})


def _arrays(news: list[WorkerNews]) -> dict[str, str]:
    found = {
        "worker": numbers(one.worker_id for one in news),
        "status": texts(one.status for one in news),
        "site": texts(one.site for one in news),
    }
    for name in COLUMNS:
        values = [one.about.get(name) for one in news]
        found[name] = texts(None if value is None else str(value) for value in values)
    return found


_HANDED = """
INSERT INTO harvester_rel_jobs_workers (harvesterid, workerid, pandaid)
SELECT %s, %s, unnest(%s::bigint[]) ON CONFLICT DO NOTHING
"""


def handed_to(harvester: str, worker: str, jobs: Sequence[int]) -> None:
    """Store which jobs a worker got; its instance may report the worker later. A worker without a number is not stored."""
    if worker.isascii() and worker.isdecimal() and len(worker) < 19:
        with hot_cursor() as cursor:
            cursor.execute(_HANDED, [harvester[:INSTANCE_LENGTH], Int8(int(worker)), numbers(jobs)])


_PILOT = """
UPDATE harvester_workers
   SET pilotstatus = CASE WHEN pilotendtime IS NOT NULL AND NOT %(ended)s THEN pilotstatus ELSE %(status)s END,
       pilotstarttime = coalesce(pilotstarttime, CASE WHEN %(started)s THEN clock_timestamp() END),
       pilotendtime = coalesce(pilotendtime, CASE WHEN %(ended)s THEN clock_timestamp() END),
       nodeid = coalesce(nullif(%(node)s, ''), nodeid), lastupdate = clock_timestamp()
 WHERE harvesterid = %(harvester)s AND workerid = %(worker)s AND (%(site)s = '' OR computingsite = %(site)s)
"""
_FIRST = """
INSERT INTO harvester_workers (harvesterid, workerid, status, computingsite, nodeid, pilotstatus, pilotstarttime, pilotendtime)
SELECT harvester_id, %(worker)s, 'running', %(site)s, nullif(%(node)s, ''), %(status)s,
       CASE WHEN %(started)s THEN clock_timestamp() END, CASE WHEN %(ended)s THEN clock_timestamp() END
  FROM harvester_instances WHERE harvester_id = %(harvester)s
    ON CONFLICT DO NOTHING
"""
PILOT_STARTED = "started"
PILOT_ENDED = ("finished", "failed")


def pilot_status(harvester: str, worker_id: int, status: str, *, site: str = "", node: str = "") -> bool:
    """Store the status that a pilot reports. `site`: the queue of the pilot's token; "" is any.

    A worker that its instance has not told of yet is taken as running. Returns whether it was noted: not for an instance
    that never reported, and not for a worker of another queue.
    """
    given = {
        "harvester": harvester,
        "worker": Int8(worker_id),
        "status": status[:80],
        "site": site,
        "node": node[:200],
        "started": status == PILOT_STARTED,
        "ended": status in PILOT_ENDED,
    }
    with hot_cursor() as cursor:
        for statement in (_PILOT, _FIRST) if site else (_PILOT,):
            cursor.execute(statement, given)
            if cursor.rowcount:
                return True
    return False
