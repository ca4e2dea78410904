"""Numbers on jobs that brokers read. Counts of open jobs are filled by one statement, by whoever needs them first; users and
what queues have done lately are the watchdog's.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import psycopg
from django.db import connection, transaction

from brokerage_app.grid import repository
from brokerage_app.models import GridVersion
from brokerage_app.vocabulary.snapshot import SILENT_AFTER, Grid
from jedisite.database.sql import hot_cursor
from tasks_app.domain.states import JOB_AT_PILOT, JOB_OPEN

JOB_COUNTS, ACTIVITY = "job_counts", "queue_activity"
COUNTED = (
    """(SELECT min(nullif(at, '-infinity')) AS at FROM statistics_refreshed WHERE name = ANY(%(counts)s)) counted"""
)
"""One row: when the oldest of these counts saw what it counts; NULL before the first. Beside it stand the counts themselves."""
MANY_JOBS = 20_000
"""Open jobs beyond which they are not counted anew at each call."""
CALLS_KEPT = timedelta(days=7)
_OPEN = ", ".join(f"'{status}'" for status in sorted(JOB_OPEN))
_COUNT = f"""
WITH now AS MATERIALIZED (
    SELECT coalesce(computingsite, '') AS computingsite, coalesce(gshare, '') AS gshare,
           coalesce(workqueue_id, 0) AS workqueue_id, coalesce(resource_type, '') AS resource_type,
           coalesce(prodsourcelabel, '') AS prodsourcelabel, jobstatus, count(*)::int AS njobs,
           sum(greatest(corecount, 1))::int AS ncores
      FROM jobs WHERE jobstatus = ANY(ARRAY[{_OPEN}]) GROUP BY 1, 2, 3, 4, 5, 6),
gone AS (
    DELETE FROM job_counts c WHERE NOT EXISTS (
        SELECT 1 FROM now n WHERE n.computingsite = c.computingsite AND n.gshare = c.gshare AND n.workqueue_id = c.workqueue_id
           AND n.resource_type = c.resource_type AND n.prodsourcelabel = c.prodsourcelabel AND n.jobstatus = c.jobstatus))
INSERT INTO job_counts AS c (computingsite, gshare, workqueue_id, resource_type, prodsourcelabel, jobstatus, njobs, ncores)
SELECT * FROM now
    ON CONFLICT (computingsite, gshare, workqueue_id, resource_type, prodsourcelabel, jobstatus) DO UPDATE
   SET njobs = excluded.njobs, ncores = excluded.ncores
 WHERE (c.njobs, c.ncores) <> (excluded.njobs, excluded.ncores)
"""  # noqa: S608 - states of ours


def refresh(max_age_s: float = 0.0) -> bool:
    """Count the open jobs anew, unless that was done less than `max_age_s` before this call. Returns whether it counted.

    Several that want it at once wait for one count: whoever finds, when its turn comes, that a count began after it asked,
    takes that. With many open jobs counting takes long, and then rests for five times as long.
    """
    with hot_cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        ((asked,),) = cursor.fetchall()
        _marked(cursor, JOB_COUNTS)
    with transaction.atomic(), hot_cursor() as cursor:
        cursor.execute(
            """SELECT at >= %s - CASE WHEN (SELECT sum(njobs) FROM job_counts) > %s THEN took_ms * interval '5 milliseconds'
                                  ELSE interval '0' END
                 FROM statistics_refreshed WHERE name = %s FOR UPDATE""",
            [asked - timedelta(seconds=max_age_s), MANY_JOBS, JOB_COUNTS],
        )
        if cursor.fetchall() == [(True,)]:
            return False
        cursor.execute("SELECT clock_timestamp()")
        ((began,),) = cursor.fetchall()
        cursor.execute(_COUNT)
        cursor.execute(
            """UPDATE statistics_refreshed SET at = %s, rows = %s,
                      took_ms = extract(epoch FROM clock_timestamp() - %s) * 1000 WHERE name = %s""",
            [began, cursor.rowcount, began, JOB_COUNTS],
        )
    return True


_USERS = f"""
WITH now AS MATERIALIZED (
    SELECT coalesce(computingsite, '') AS computingsite, coalesce(gshare, '') AS gshare,
           coalesce(produsername, '') AS produsername,
           count(*) FILTER (WHERE jobstatus IN ('defined', 'assigned', 'activated', 'sent', 'starting'))::int AS nqueue,
           count(*) FILTER (WHERE jobstatus = 'running')::int AS nrunning
      FROM jobs WHERE jobstatus = ANY(ARRAY[{_OPEN}]) AND processingtype IS DISTINCT FROM 'pmerge'
     GROUP BY 1, 2, 3),
gone AS (
    DELETE FROM user_counts c WHERE NOT EXISTS (
        SELECT 1 FROM now n
         WHERE n.computingsite = c.computingsite AND n.gshare = c.gshare AND n.produsername = c.produsername))
INSERT INTO user_counts AS c (computingsite, gshare, produsername, nqueue, nrunning) SELECT * FROM now
    ON CONFLICT (computingsite, gshare, produsername) DO UPDATE SET nqueue = excluded.nqueue, nrunning = excluded.nrunning
 WHERE (c.nqueue, c.nrunning) <> (excluded.nqueue, excluded.nrunning)
"""  # noqa: S608
# The rate counts jobs that got a slot and did not fail or stop at once. Starts are read from the log of states, by its
# index on time. Pilots: their calls, once some have been counted for three hours, of queues that have been there for so long.
# A queue is quiet whether jobs wait there or not; one that pilots never asked at has been since it was added.
_ACTIVITY = """
WITH starts AS MATERIALIZED (
    SELECT pandaid, computingsite, max(modificationtime) AS at FROM jobs_statuslog
     WHERE jobstatus = 'running' AND modificationtime > least(%(seen)s, %(now)s - interval '365 minutes')
       AND modificationtime <= %(now)s
     GROUP BY pandaid, computingsite),
started AS (
    SELECT s.computingsite, max(s.at) AS last,
           count(*) FILTER (WHERE s.at > %(now)s - interval '365 minutes' AND s.at <= %(now)s - interval '5 minutes'
               AND j.jobstatus IN ('running', 'holding', 'transferring', 'finished', 'cancelled')) / 6.0 AS rate
      FROM starts s LEFT JOIN jobs j USING (pandaid) GROUP BY s.computingsite),
io AS (
    SELECT j.computingsite, avg(t.diskio / greatest(j.corecount, 1)::float) AS kbps
      FROM jobs j JOIN jedi_tasks t USING (jeditaskid)
     WHERE j.jobstatus = 'running' AND t.diskio IS NOT NULL GROUP BY j.computingsite),
moved AS (
    SELECT computingsite, jsonb_object_agg(nucleus, n) AS by_nucleus
      FROM (SELECT computingsite, nucleus, count(*) AS n FROM jobs
             WHERE jobstatus = 'transferring' AND nucleus IS NOT NULL GROUP BY 1, 2) m GROUP BY 1),
called AS (
    SELECT site, sum(getjob + updatejob)::int AS n FROM sitedata WHERE hour > %(now)s - interval '4 hours' GROUP BY site),
counting AS (
    SELECT EXISTS (SELECT 1 FROM sitedata
                    WHERE hour BETWEEN %(now)s - interval '5 hours' AND %(now)s - interval '3 hours') AS long_enough),
added AS MATERIALIZED (SELECT queue, max(at) AS at FROM queue_status_log WHERE old = '' GROUP BY 1),
young AS (SELECT queue FROM added WHERE at > %(now)s - interval '3 hours'),
asked AS MATERIALIZED (SELECT site, max(lastgetjob) AS at FROM sitedata GROUP BY 1),
batch AS (
    SELECT computingsite, sum(n_workers)::int AS n FROM harvester_worker_stats
     WHERE status IN ('running', 'submitted') AND lastupdate > %(now)s - interval '60 minutes' GROUP BY computingsite),
waits AS (
    SELECT c.computingsite FROM job_counts c GROUP BY 1
    HAVING sum(njobs) FILTER (WHERE jobstatus = 'activated') > 0
       AND coalesce(sum(njobs) FILTER (WHERE jobstatus = ANY(%(at_pilots)s)), 0) = 0),
silent AS (
    SELECT w.computingsite, greatest(o.at, l.at) AS since
      FROM waits w
      JOIN queues q ON q.name = w.computingsite AND q.status NOT IN ('offline', 'paused')
      LEFT JOIN batch b ON b.computingsite = w.computingsite
      LEFT JOIN asked l ON l.site = w.computingsite
     CROSS JOIN LATERAL (SELECT coalesce(j.statechangetime, j.creationtime) AS at FROM jobs j
                          WHERE j.computingsite = w.computingsite AND j.jobstatus = 'activated'
                          ORDER BY j.pandaid LIMIT 1) o
     WHERE coalesce(b.n, 0) = 0 AND greatest(o.at, l.at) <= %(now)s - %(silent)s::interval),
quiet AS (
    SELECT q.name, coalesce(l.at, a.at, %(now)s - %(kept)s::interval) AS since
      FROM queues q LEFT JOIN asked l ON l.site = q.name LEFT JOIN added a ON a.queue = q.name
     WHERE coalesce(l.at, a.at, %(now)s - %(kept)s::interval) <= %(now)s - %(silent)s::interval
       AND NOT EXISTS (SELECT 1 FROM harvester_worker_stats h
                        WHERE h.computingsite = q.name AND h.lastupdate > %(now)s - interval '60 minutes')
       AND NOT EXISTS (SELECT 1 FROM job_counts c
                        WHERE c.computingsite = q.name AND c.jobstatus = ANY(%(at_pilots)s) AND c.njobs > 0)),
back AS (
    INSERT INTO grid_versions AS v (part, token, at)
    SELECT %(pilots)s, gen_random_uuid(), clock_timestamp()
     WHERE EXISTS (SELECT 1 FROM queue_activity a JOIN called c ON c.site = a.computingsite WHERE a.pilots_3h = 0 AND c.n > 0)
        ON CONFLICT (part) DO UPDATE SET token = excluded.token, at = excluded.at),
gone AS (DELETE FROM queue_activity a WHERE NOT EXISTS (SELECT 1 FROM queues q WHERE q.name = a.computingsite))
INSERT INTO queue_activity AS a
       (computingsite, laststart, started_per_h, disk_io_kbps, transferring_to, pilots_3h, batch_jobs, silent_since,
        quiet_since, updated)
SELECT q.name, s.last, coalesce(s.rate, 0), io.kbps, coalesce(m.by_nucleus, '{}'),
       CASE WHEN counting.long_enough AND young.queue IS NULL THEN coalesce(c.n, 0) END,
       coalesce(b.n, 0), silent.since, quiet.since, %(now)s
  FROM queues q CROSS JOIN counting LEFT JOIN started s ON s.computingsite = q.name LEFT JOIN io ON io.computingsite = q.name
  LEFT JOIN moved m ON m.computingsite = q.name LEFT JOIN called c ON c.site = q.name
  LEFT JOIN batch b ON b.computingsite = q.name LEFT JOIN young ON young.queue = q.name
  LEFT JOIN silent ON silent.computingsite = q.name LEFT JOIN quiet ON quiet.name = q.name
    ON CONFLICT (computingsite) DO UPDATE
   SET laststart = greatest(a.laststart, excluded.laststart), started_per_h = excluded.started_per_h,
       disk_io_kbps = excluded.disk_io_kbps, transferring_to = excluded.transferring_to, pilots_3h = excluded.pilots_3h,
       batch_jobs = excluded.batch_jobs, silent_since = excluded.silent_since, quiet_since = excluded.quiet_since,
       updated = excluded.updated
"""
_LATE = timedelta(minutes=10)
"""How much later than its time a row of the log may be seen: its transaction took so long."""
_FIRST_LOOK = timedelta(days=7)


def refresh_activity(now: datetime) -> int:
    """Write what each queue has done lately, and each user's jobs. Returns the number of queues. Run twice at once it is
    done once after the other."""
    with transaction.atomic(), hot_cursor() as cursor:
        _marked(cursor, ACTIVITY)
        cursor.execute(
            "SELECT nullif(at, '-infinity') FROM statistics_refreshed WHERE name = %s FOR UPDATE", [ACTIVITY]
        )
        ((last,),) = cursor.fetchall()
        cursor.execute(
            _ACTIVITY,
            {
                "now": now,
                "seen": (last or now - _FIRST_LOOK) - _LATE,
                "at_pilots": sorted(JOB_AT_PILOT),
                "silent": SILENT_AFTER,
                "kept": CALLS_KEPT,
                "pilots": GridVersion.PILOTS,
            },
        )
        queues = cursor.rowcount
        cursor.execute(_USERS)
        cursor.execute("DELETE FROM sitedata WHERE hour < %s", [now - CALLS_KEPT])
        cursor.execute("UPDATE statistics_refreshed SET at = %s, rows = %s WHERE name = %s", [now, queues, ACTIVITY])
    return queues


def _marked(cursor: psycopg.Cursor[Any], name: str) -> None:
    cursor.execute(
        "INSERT INTO statistics_refreshed (name, at, took_ms, rows) VALUES (%s, '-infinity', 0, 0) ON CONFLICT DO NOTHING",
        [name],
    )


def counted_at(*names: str) -> datetime | None:
    """When the oldest of these counts saw what it counts, by default those of open jobs; None before the first. One query.

    Whoever shows both reads this first: what is read after it is not older.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT at FROM {COUNTED}", {"counts": list(names) or [JOB_COUNTS]})  # noqa: S608 - a constant
        found: datetime | None = cursor.fetchone()[0]
    return found


def current_grid(now: datetime, max_age_s: float = 0.0) -> Grid:
    """A snapshot of the grid whose counts of jobs are not older than `max_age_s`. Used by agents, once a pass."""
    refresh(max_age_s)
    return repository.load_grid(now)
