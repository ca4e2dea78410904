"""Facts for the rules, from the database: each a statement or two over small tables, or over an index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection
from django.db.models import Count

from brokerage_app.grid import installed_policy
from brokerage_app.grid.full_storage import full_storage
from jedisite.agents import agent_state
from jedisite.models import Agent
from tasks_app.attention.rules.attention_facts import (
    AgentFact,
    BacklogFact,
    ClosedFact,
    GridFact,
    RateFact,
    ShareFact,
    SiteFact,
    StorageFact,
    TaskFact,
    TroubleFact,
)
from tasks_app.attention.rules.site_rules import HOLDS, IDLE_AFTER, NEWLY, SPIKE_FAILED, SPIKE_PERCENT, TAKES_JOBS
from tasks_app.attention.rules.task_rules import ASKS_AFTER, STUCK_AFTER
from tasks_app.domain.states import (
    JOB_AT_PILOT,
    JOB_FINAL,
    JOB_OPEN,
    JOB_QUEUED,
    TASK_FINAL,
    TASK_SEEKS_INPUT,
    TaskStatus,
)
from tasks_app.domain.turns import AGENT_OF
from tasks_app.models import Task
from tasks_app.models.task import SINCE

TROUBLE_SEEN: Final = timedelta(minutes=15)
"""For so long after its time a subject that was left aside counts as one that will be tried again."""
CALLS_H: Final = 1
"""For how long no pilot must have asked for a job. Calls are counted by the hour: those of the hour in which it began count."""
MOST_TASKS: Final = 2000
"""Tasks of a kind that are looked at in one pass, the ones with the oldest state first."""
_PEOPLE: Final = (TaskStatus.PAUSED, TaskStatus.STAGING)
"""Held by a person, or by another system, whose rule is another one."""
MOVING: Final = sorted(str(s) for s in TaskStatus if s not in TASK_FINAL and s not in ASKS_AFTER and s not in _PEOPLE)
_WAIT_FOR_JOBS: Final = [*MOVING, str(TaskStatus.PENDING)]
_HAVE_RUN: Final = sorted((JOB_OPEN - JOB_QUEUED) | JOB_FINAL)
MOST_ENDS: Final = 10_000
"""Entries of the log of states in which the last job that ran is looked for, the latest ones."""
_WORKING: Final = sorted(str(s) for s in JOB_OPEN - JOB_QUEUED)
SHARE_WINDOW: Final = timedelta(hours=24)
LEAST_SAMPLES: Final = 12
"""Samples of a share, an hour's, without which its mean says nothing."""


def _rows(statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


_AWAITS_FILES: Final = """(
    EXISTS (SELECT 1 FROM jedi_datasets g WHERE g.jeditaskid = t.jeditaskid AND g.type = 'input' AND g.masterid IS NULL
               AND g.state = 'mutable')
    AND NOT EXISTS (SELECT 1 FROM jedi_datasets g WHERE g.jeditaskid = t.jeditaskid AND g.type IN ('input', 'pseudo_input')
                       AND g.masterid IS NULL AND g.nfilestobeused > g.nfilesused)
    AND NOT EXISTS (SELECT 1 FROM jobs o WHERE o.jeditaskid = t.jeditaskid AND o.jobstatus = ANY(%(open)s)))"""
"""Whether a task `t` has done with the files that its growing input has, and waits for more."""

# What a task did last is seen at its datasets: both making jobs and booking their outcomes write there.
_STUCK = f"""
SELECT t.jeditaskid, coalesce(t.taskname, ''), t.username, t.status, greatest(t.since, d.at),
       coalesce(CASE WHEN v.chosen = '[]'::jsonb THEN v.sentence END, nullif(t.errordialog, ''), ''),
       (SELECT count(*) FROM (SELECT 1 FROM jobs j WHERE j.jeditaskid = t.jeditaskid AND j.jobstatus = ANY(%(queued)s)
                               LIMIT 100000) q)
  FROM (SELECT jeditaskid, taskname, username, status, errordialog, parent_tid,
               coalesce(statechangetime, modificationtime) AS since FROM jedi_tasks
         WHERE status = ANY(%(moving)s) AND coalesce(statechangetime, modificationtime) < %(before)s
         ORDER BY since, jeditaskid LIMIT %(most)s) t
  LEFT JOIN LATERAL (SELECT max(modificationtime) AS at FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid) d ON true
  LEFT JOIN LATERAL (SELECT chosen, sentence FROM verdicts v WHERE v.jeditaskid = t.jeditaskid
                      ORDER BY id DESC LIMIT 1) v ON true
 WHERE (d.at IS NULL OR d.at < %(before)s)
   AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.jeditaskid = t.jeditaskid AND j.jobstatus = ANY(%(working)s))
   AND NOT {_AWAITS_FILES}
   AND NOT EXISTS (SELECT 1 FROM periodic_tasks p WHERE p.jeditaskid = t.jeditaskid AND p.ended IS NULL)
   AND NOT EXISTS (SELECT 1 FROM jedi_tasks p WHERE p.jeditaskid = t.parent_tid AND p.jeditaskid <> t.jeditaskid
                      AND p.status <> ALL(%(final)s))
"""  # noqa: S608 - constants


def stuck_tasks(now: datetime) -> list[TaskFact]:
    """Open tasks that need no decision, have no running job, and have made no progress for STUCK_AFTER."""
    values = {
        "moving": MOVING,
        "queued": sorted(JOB_QUEUED),
        "working": _WORKING,
        "before": now - STUCK_AFTER,
        "most": MOST_TASKS,
        "final": sorted(TASK_FINAL),
        "open": sorted(JOB_OPEN),
    }
    return [
        TaskFact(task, name, user, status, since, reason, queued)
        for task, name, user, status, since, reason, queued in _rows(_STUCK, values)
    ]


_ASKING = f"""
SELECT t.jeditaskid, coalesce(t.taskname, ''), t.username, t.status,
       {SINCE} AS since, coalesce(t.errordialog, '')
  FROM jedi_tasks t WHERE t.status = ANY(%(asking)s) ORDER BY since, t.jeditaskid LIMIT %(most)s
"""  # noqa: S608 - constants


def asking_tasks() -> list[TaskFact]:
    """Tasks in states that need a decision of a person."""
    rows = _rows(_ASKING, {"asking": sorted(ASKS_AFTER), "most": MOST_TASKS})
    return [TaskFact(*row) for row in rows]


# The past of a site is read only where the last hour is bad.
_RATES = """
SELECT h.site, h.finished, h.failed, h.wasted, w.finished, w.failed, d.finished, d.failed
  FROM (SELECT site, sum(finished)::int AS finished, sum(failed)::int AS failed, sum(wasted_core_s)::bigint AS wasted
          FROM samples WHERE site <> '' AND gshare = '' AND at > %(now)s - interval '1 hour' AND at <= %(now)s GROUP BY site
        UNION ALL
        SELECT '', sum(finished)::int, sum(failed)::int, sum(wasted_core_s)::bigint
          FROM samples WHERE site = '' AND gshare = '' AND at > %(now)s - interval '1 hour' AND at <= %(now)s) h,
       LATERAL (SELECT coalesce(sum(finished), 0)::int AS finished, coalesce(sum(failed), 0)::int AS failed FROM samples s
                 WHERE s.site = h.site AND s.gshare = '' AND s.at > %(now)s - interval '7 days 1 hour'
                   AND s.at <= %(now)s - interval '7 days') w,
       LATERAL (SELECT coalesce(sum(finished), 0)::int AS finished, coalesce(sum(failed), 0)::int AS failed FROM samples s
                 WHERE s.site = h.site AND s.gshare = '' AND s.at > %(now)s - interval '25 hours'
                   AND s.at <= %(now)s - interval '1 hour') d
 WHERE h.failed >= %(failed)s AND 100.0 * h.failed / (h.failed + h.finished) >= %(percent)s
"""


def failure_rates(now: datetime) -> list[RateFact]:
    """Sites, and the grid, where the last hour was bad, with the same hour last week and the day before."""
    rows = _rows(_RATES, {"now": now, "failed": SPIKE_FAILED, "percent": SPIKE_PERCENT})
    return [RateFact(*row) for row in rows]


_SITES = """
SELECT q.name, q.status, c.activated, c.at_pilots, a.pilots_3h, coalesce(a.batch_jobs, 0), a.laststart,
       CASE WHEN a.laststart IS NULL AND NOT EXISTS (SELECT 1 FROM sitedata s WHERE s.site = q.name AND s.getjob > 0)
            THEN (SELECT j.statechangetime FROM jobs j WHERE j.computingsite = q.name AND j.jobstatus = 'activated'
                   ORDER BY j.pandaid LIMIT 1) END,
       a.silent_since, l.at
  FROM queues q
  JOIN (SELECT computingsite, coalesce(sum(njobs) FILTER (WHERE jobstatus = 'activated'), 0)::int AS activated,
               coalesce(sum(njobs) FILTER (WHERE jobstatus = ANY(%(pilot)s)), 0)::int AS at_pilots
          FROM job_counts GROUP BY 1) c ON c.computingsite = q.name
  LEFT JOIN queue_activity a ON a.computingsite = q.name
  LEFT JOIN (SELECT site, max(lastgetjob) AS at FROM sitedata GROUP BY 1) l ON l.site = q.name
 WHERE c.activated > 0
"""


def sites_with_work() -> list[SiteFact]:
    return [SiteFact(*row) for row in _rows(_SITES, {"pilot": sorted(JOB_AT_PILOT)})]


_GRID = """
SELECT coalesce(sum(njobs) FILTER (WHERE jobstatus = ANY(%(queued)s)), 0)::int,
       coalesce(sum(njobs) FILTER (WHERE jobstatus = 'activated'), 0)::int,
       coalesce(sum(njobs) FILTER (WHERE jobstatus = ANY(%(pilot)s)), 0)::int,
       (SELECT coalesce(max(at) FILTER (WHERE running_jobs > 0 OR queued_jobs = 0), min(at)) FROM samples
         WHERE site = '' AND gshare = '' AND at > %(now)s - interval '1 day' AND at <= %(now)s AND queued_jobs IS NOT NULL),
       (SELECT coalesce(max(at) FILTER (WHERE running_jobs > 0), min(at)) FROM samples
         WHERE site = '' AND gshare = '' AND at > %(now)s - interval '1 day' AND at <= %(now)s),
       (SELECT coalesce(sum(getjob), 0)::int FROM sitedata WHERE hour >= date_trunc('hour', %(now)s - %(hours)s))
  FROM job_counts
"""

# Tasks that wait for their input, for their parents, or for the next time of a periodic one, wait for no job.
_IDLE_TASKS = f"""
SELECT count(*), min(since) FROM (
    SELECT {SINCE} AS since FROM jedi_tasks t
     WHERE t.status = ANY(%(waiting)s) AND {SINCE} < %(before)s
       AND NOT (t.status = 'pending' AND coalesce(t.oldstatus, '') = ANY(%(seek)s))
       AND NOT {_AWAITS_FILES}
       AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.jeditaskid = t.jeditaskid AND j.jobstatus = ANY(%(open)s))
       AND NOT EXISTS (SELECT 1 FROM periodic_tasks p WHERE p.jeditaskid = t.jeditaskid AND p.ended IS NULL)
       AND NOT EXISTS (SELECT 1 FROM jedi_tasks p WHERE p.jeditaskid = t.parent_tid AND p.jeditaskid <> t.jeditaskid
                          AND p.status <> ALL(%(final)s))
     LIMIT %(most)s) w
"""  # noqa: S608 - constants


# Samples lie minutes apart, and a job may begin and end in between: the log of states since then says the rest. What a job
# that has ended waits for afterwards is not counted: the pilot said when it ended.
_RAN_LAST = """
SELECT max(least(l.modificationtime, coalesce(j.endtime, l.modificationtime)))
  FROM (SELECT pandaid, modificationtime FROM jobs_statuslog
         WHERE modificationtime > %(since)s AND modificationtime <= %(now)s AND jobstatus = ANY(%(ran)s)
         ORDER BY modificationtime DESC LIMIT %(most)s) l
  JOIN jobs j USING (pandaid) WHERE j.starttime IS NOT NULL
"""


def grid(now: datetime) -> GridFact:
    """What is queued and runs at all sites together, since when nothing runs, and whether pilots call."""
    values = {
        "queued": sorted(JOB_QUEUED),
        "pilot": sorted(JOB_AT_PILOT),
        "now": now,
        "hours": timedelta(hours=CALLS_H),
    }
    ((queued, activated, at_pilots, idle_since, ran_last, calls),) = _rows(_GRID, values)
    tasks, oldest = 0, None
    if not at_pilots:
        waiting = {
            "waiting": _WAIT_FOR_JOBS,
            "before": now - IDLE_AFTER,
            "open": sorted(JOB_OPEN),
            "final": sorted(TASK_FINAL),
            "most": MOST_TASKS,
            "seek": sorted(TASK_SEEKS_INPUT),
        }
        ((tasks, oldest),) = _rows(_IDLE_TASKS, waiting)
    if not queued and ran_last is not None and oldest is not None:
        idle_since = max(ran_last, oldest)
    if (queued or tasks) and not at_pilots and idle_since is not None:
        ((ran,),) = _rows(_RAN_LAST, {"since": idle_since, "now": now, "ran": _HAVE_RUN, "most": MOST_ENDS})
        idle_since = max(idle_since, ran or idle_since)
    return GridFact(queued, activated, at_pilots, idle_since, calls, CALLS_H, tasks)


# A queue may go from one closed status to another: what counts is when it took jobs last.
_CLOSED = """
SELECT q.name, coalesce(o.old, ''), q.status, o.at, coalesce(l.by, ''), coalesce(l.reason, ''),
       coalesce(c.jobs, 0), coalesce(c.queued, 0)
  FROM queues q
  LEFT JOIN queue_status_log l ON l.queue = q.name AND l.ended_at IS NULL
  LEFT JOIN LATERAL (SELECT c.old, c.at FROM queue_status_log c
                      WHERE c.queue = q.name AND c.old = ANY(%(takes)s) AND c.new <> ALL(%(takes)s)
                      ORDER BY c.id DESC LIMIT 1) o ON true
  LEFT JOIN (SELECT computingsite, sum(njobs)::int AS jobs,
                    coalesce(sum(njobs) FILTER (WHERE jobstatus = ANY(%(queued)s)), 0)::int AS queued
               FROM job_counts GROUP BY 1) c ON c.computingsite = q.name
 WHERE q.status <> ALL(%(takes)s) AND (o.at > %(since)s OR (q.status = ANY(%(holds)s) AND c.queued > 0))
"""


def closed_queues(now: datetime) -> list[ClosedFact]:
    """Queues that take no jobs, as far as that began lately or they hold queued jobs."""
    values = {
        "takes": sorted(TAKES_JOBS),
        "holds": sorted(HOLDS),
        "queued": sorted(JOB_QUEUED),
        "since": now - NEWLY,
    }
    return [ClosedFact(*row) for row in _rows(_CLOSED, values)]


def full_stores() -> list[StorageFact]:
    found = (one for one in full_storage() if not one.is_away)
    return [StorageFact(one.name, one.site, one.lack, one.queues, one.updated) for one in found]


# Seen by this site, or met by the last job.
_AWAY = """
SELECT e.name, e.site_name, e.closed_why, CASE WHEN s.away <> '' THEN s.looked_at ELSE coalesce(t.last, e.updated) END,
       ARRAY(SELECT q.name FROM queues q WHERE q.status IN ('online', 'standby') AND (q.storage_id = e.name OR EXISTS (
                 SELECT 1 FROM panda_ddm_relation r WHERE r.panda_site_name = q.name AND r.ddm_endpoint_name = e.name))
              ORDER BY q.name)
  FROM storage_endpoints e LEFT JOIN storage_folders s ON s.ddm_endpoint_name = e.name
  LEFT JOIN storage_troubles t ON t.ddm_endpoint_name = e.name
 WHERE e.closed_until IS NOT NULL AND e.closed_reads ORDER BY e.name
"""


def away_stores() -> list[StorageFact]:
    """Storages that are closed since their folder is away."""
    return [
        StorageFact(name, site, f"The folder of the storage {name} is away: {why}", tuple(queues), at)
        for name, site, why, at, queues in _rows(_AWAY, {})
    ]


def queues_by_status() -> dict[str, int]:
    return dict(_rows("SELECT status, count(*)::int FROM queues GROUP BY 1", {}))


_SHARES = """
SELECT gshare, avg(running_hs)::float8, avg(queued_hs)::float8 FROM samples
 WHERE site = '' AND gshare <> '' AND at > %(since)s AND running_hs IS NOT NULL GROUP BY 1 HAVING count(*) >= %(least)s
"""


def shares_of_a_day(now: datetime) -> list[ShareFact]:
    """Leaves of the tree with their means over the last day, as far as there are samples."""
    rows = _rows(_SHARES, {"since": now - SHARE_WINDOW, "least": LEAST_SAMPLES})
    running = {name: hs for name, hs, _ in rows}
    queued = {name: hs for name, _, hs in rows}
    tree = installed_policy.share_tree()
    usage = tree.usage(running, queued)
    return [
        ShareFact(
            leaf.name, tree.percents[leaf.name], usage[leaf.name].executing, usage[leaf.name].target, queued[leaf.name]
        )
        for leaf in tree.leaves
        if leaf.name in running
    ]


def agents(now: datetime) -> list[AgentFact]:
    rows = agent_state.rows(Agent.objects.all(), now)
    paused = [row.agent.name for row in rows if row.agent.paused]
    pauses, tasks = agent_state.pauses(paused), _tasks_of(paused)
    return [
        AgentFact(
            row.agent.name,
            row.agent.title,
            row.agent.paused,
            row.late,
            row.late_s,
            row.agent.errors_in_a_row,
            row.agent.last_error,
            row.agent.last_ended_at,
            pause=pauses[row.agent.name].words if row.agent.name in pauses else "",
            paused_at=pauses[row.agent.name].at if row.agent.name in pauses else None,
            tasks=tasks[row.agent.name],
        )
        for row in rows
    ]


def _tasks_of(agents: Sequence[str]) -> Counter[str]:
    """How many tasks are in states in which one of these agents works on them. One query; none without agents."""
    found: Counter[str] = Counter()
    statuses = [status for status, agent in AGENT_OF.items() if agent in agents]
    if statuses:
        by_status = Task.objects.filter(status__in=statuses).order_by().values_list("status").annotate(n=Count("id"))
        for status, n in by_status:
            found[AGENT_OF[status]] += n
    return found


# An agent that does not look at the subject any more has no trouble with it.
_TROUBLES = """
SELECT x.agent, x.kind, x.subject, x.failures, x.since, x.error, t.jeditaskid, coalesce(t.taskname, ''), coalesce(t.username, '')
  FROM agent_troubles x
  LEFT JOIN jobs j ON x.kind = 'job' AND j.pandaid = x.subject
  LEFT JOIN jedi_tasks t ON t.jeditaskid = coalesce(x.jeditaskid, j.jeditaskid)
 WHERE x.next_try > %(seen)s ORDER BY x.since, x.id LIMIT %(most)s
"""


def troubles(now: datetime) -> list[TroubleFact]:
    """Tasks and jobs that agents have put aside after an unexpected error."""
    return [TroubleFact(*row) for row in _rows(_TROUBLES, {"seen": now - TROUBLE_SEEN, "most": MOST_TASKS})]


_BACKLOGS = """
SELECT (SELECT count(*) FROM django_q_ormq WHERE lock <= %(now)s),
       (SELECT extract(epoch FROM %(now)s - min(lock))::float8 FROM django_q_ormq WHERE lock <= %(now)s),
       (SELECT count(*) FROM (SELECT 1 FROM job_output_report LIMIT 100001) r),
       (SELECT extract(epoch FROM %(now)s - min(timestamp))::float8
          FROM (SELECT timestamp FROM job_output_report ORDER BY pandaid LIMIT 1000) r)
"""


def backlogs(now: datetime) -> list[BacklogFact]:
    """Passes that wait for a worker of django-q2, and reports of pilots that wait for the adder."""
    ((passes, passes_s, reports, reports_s),) = _rows(_BACKLOGS, {"now": now})
    return [
        BacklogFact("passes", "agent passes wait for a worker process", passes, passes_s or 0.0, "/agents/"),
        BacklogFact("reports", "pilot reports wait to be recorded", reports, reports_s or 0.0, "/agents/"),
    ]
