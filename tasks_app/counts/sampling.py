"""Samples over time are written here: what runs and waits, from the counts of open jobs; what ended, from the log of states.

The log is read by its index on time and jobs by their key, so that a sample costs what ended in a quarter of an hour, and
no job carries an index for it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.db import transaction

from brokerage_app.grid.samples import INTERVAL, ORIGIN
from jedisite.database.sql import hot_cursor
from tasks_app.domain.states import JOB_OPEN, JOB_QUEUED, TASK_FINAL, TaskStatus

LATE: Final = timedelta(minutes=15)
"""How much later than its time an end may be seen, as its transaction took so long: so far back they are counted again."""
LONGEST_GAP: Final = timedelta(days=1)
"""After a pause of the agent, what ended meanwhile is counted for at most this time."""
LONGEST_JOB_S: Final = 30 * 86_400
"""More than that is the fault of a clock."""
IDLE_STATUSES: Final = sorted(str(status) for status in TaskStatus if status not in TASK_FINAL)
"""Tasks in these are counted when they have no open job."""
_QUEUED = ", ".join(f"'{status}'" for status in sorted(JOB_QUEUED))
_OPEN_JOBS = ", ".join(f"'{status}'" for status in sorted(JOB_OPEN))
_OPEN_TASKS = ", ".join(f"'{status}'" for status in IDLE_STATUSES)

_WRITE = f"""
WITH ended AS MATERIALIZED (
    SELECT DISTINCT ON (j.pandaid)
           date_bin(%(interval)s, l.modificationtime, %(origin)s) + %(interval)s AS at,
           coalesce(j.computingsite, '') AS site, coalesce(j.gshare, '') AS gshare, j.jobstatus,
           CASE WHEN j.jobstatus = 'failed' AND j.endtime > j.starttime
                THEN least(extract(epoch FROM j.endtime - j.starttime), {LONGEST_JOB_S}) * greatest(j.corecount, 1)
                ELSE 0 END AS wasted
      FROM jobs_statuslog l JOIN jobs j USING (pandaid)
     WHERE l.modificationtime >= %(since)s AND l.modificationtime < %(until)s
       AND l.jobstatus IN ('finished', 'failed') AND j.jobstatus = l.jobstatus
     ORDER BY j.pandaid, l.id),
flows AS (
    SELECT at, CASE WHEN grouping(site) = 1 THEN '' ELSE site END AS site,
           CASE WHEN grouping(gshare) = 1 THEN '' ELSE gshare END AS gshare,
           count(*) FILTER (WHERE jobstatus = 'finished')::int AS finished,
           count(*) FILTER (WHERE jobstatus = 'failed')::int AS failed, sum(wasted)::bigint AS wasted
      FROM ended GROUP BY at, GROUPING SETS ((), (site), (gshare), (site, gshare))
    HAVING (grouping(site) = 1 OR site <> '') AND (grouping(gshare) = 1 OR gshare <> '')),
open AS (
    SELECT c.computingsite AS site, c.gshare,
           sum(c.njobs) FILTER (WHERE c.jobstatus = 'running') AS jobs,
           sum(c.ncores) FILTER (WHERE c.jobstatus = 'running') AS cores,
           sum(c.ncores * coalesce(q.core_power, 10)) FILTER (WHERE c.jobstatus = 'running') AS hs,
           sum(c.njobs) FILTER (WHERE c.jobstatus IN ({_QUEUED})) AS queued,
           sum(c.ncores * coalesce(q.core_power, 10)) FILTER (WHERE c.jobstatus IN ({_QUEUED})) AS queued_hs
      FROM job_counts c LEFT JOIN queues q ON q.name = c.computingsite GROUP BY 1, 2),
-- Every site and leaf has a row each time, also of zeros; a pair only when it has something.
lines AS (
    SELECT site, gshare, jobs, cores, hs, queued, queued_hs FROM open
    UNION ALL SELECT name, '', 0, 0, 0, 0, 0 FROM queues
    UNION ALL SELECT '', s.name, 0, 0, 0, 0, 0 FROM global_shares s
               WHERE NOT EXISTS (SELECT 1 FROM global_shares c WHERE c.parent = s.name)
    UNION ALL SELECT '', '', 0, 0, 0, 0, 0),
gauges AS (
    SELECT %(at)s::timestamptz AS at, CASE WHEN grouping(site) = 1 THEN '' ELSE site END AS site,
           CASE WHEN grouping(gshare) = 1 THEN '' ELSE gshare END AS gshare,
           coalesce(sum(jobs), 0)::int AS jobs, coalesce(sum(cores), 0)::int AS cores, coalesce(sum(hs), 0)::float8 AS hs,
           coalesce(sum(queued), 0)::int AS queued, coalesce(sum(queued_hs), 0)::float8 AS queued_hs
      FROM lines GROUP BY GROUPING SETS ((), (site), (gshare), (site, gshare))
    HAVING (grouping(site) = 1 OR site <> '') AND (grouping(gshare) = 1 OR gshare <> '')),
idle AS (
    SELECT count(*)::int AS n FROM jedi_tasks t
     WHERE t.status = ANY(ARRAY[{_OPEN_TASKS}])
       AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.jeditaskid = t.jeditaskid AND j.jobstatus = ANY(ARRAY[{_OPEN_JOBS}])))
INSERT INTO samples AS s (at, site, gshare, running_jobs, running_cores, running_hs, queued_jobs, queued_hs, idle_tasks,
                          finished, failed, wasted_core_s)
SELECT at, site, gshare, g.jobs, g.cores, g.hs, g.queued, g.queued_hs,
       CASE WHEN g.site = '' AND g.gshare = '' THEN (SELECT n FROM idle) END,
       coalesce(f.finished, 0), coalesce(f.failed, 0), coalesce(f.wasted, 0)
  FROM gauges g FULL JOIN flows f USING (at, site, gshare)
 ORDER BY at, site, gshare
    ON CONFLICT (site, gshare, at) DO UPDATE
   SET finished = excluded.finished, failed = excluded.failed, wasted_core_s = excluded.wasted_core_s
 WHERE (s.finished, s.failed, s.wasted_core_s) <> (excluded.finished, excluded.failed, excluded.wasted_core_s)
"""  # noqa: S608 - states and numbers of ours


def sample(now: datetime) -> int:
    """Write the samples of the interval that ended last, and count anew what ended shortly before. Returns the rows written.

    Nothing is written when that interval has its samples already. Numbers of the moment are those of now, which is to be
    soon after the interval's end. The very first ones bear their own moment: nobody has looked before.
    """
    until = _whole(now)
    with transaction.atomic(), hot_cursor() as cursor:
        cursor.execute("SELECT max(at) FROM samples WHERE site = '' AND gshare = ''")
        ((last,),) = cursor.fetchall()
        if last is not None and last >= until:
            return 0
        since = max(until - LONGEST_GAP, _whole(last or until - LONGEST_GAP) - LATE)
        at = now if last is None else until
        values = {"interval": INTERVAL, "origin": ORIGIN, "since": since, "until": until, "at": at}
        cursor.execute(_WRITE, values)
        return cursor.rowcount


def _whole(moment: datetime) -> datetime:
    """The end of the interval that ended last."""
    return ORIGIN + INTERVAL * ((moment - ORIGIN) // INTERVAL)


def forget(before: datetime, pairs_before: datetime, limit: int) -> int:
    """Delete up to `limit` old rows of each kind. Returns the number deleted."""
    deleted = 0
    with hot_cursor() as cursor:
        for kind, moment in (
            ("site <> '' AND gshare <> ''", pairs_before),
            ("site <> '' AND gshare = ''", before),
            ("site = '' AND gshare <> ''", before),
            ("site = '' AND gshare = ''", before),
        ):
            cursor.execute(
                f"""DELETE FROM samples WHERE id IN (
                       SELECT id FROM samples WHERE {kind} AND at < %s ORDER BY at LIMIT %s FOR UPDATE SKIP LOCKED)""",  # noqa: S608
                [moment, limit],
            )
            deleted += cursor.rowcount
    return deleted
