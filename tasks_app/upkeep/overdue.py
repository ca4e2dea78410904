"""Jobs that are over their time-outs, as SQL: the conditions of the table, and what they need to know of queues and tasks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from brokerage_app.grid.describing import NO_CHANNEL
from brokerage_app.models import Queue
from brokerage_app.vocabulary.snapshot import SILENT_AFTER
from jedisite.database.sql import hot_cursor
from tasks_app.configured import timeout_limits
from tasks_app.domain import range_jobs
from tasks_app.domain.job_timeouts import (
    LIGHT_PROCESSING,
    QUEUE_ASLEEP,
    TASK_ASLEEP,
    TIMEOUTS,
    URGENT,
    URGENT_EVENTS,
    Do,
    Priority,
    QueueView,
    TimeoutRule,
)
from tasks_app.domain.source_labels import ANALYSIS_LABELS, TESTED_LABELS, Labels
from tasks_app.domain.states import JOB_FINAL, JOB_OPEN

# ruff: noqa: S608 - every piece is a constant of this module
ONCE_IN = timedelta(hours=12)
"""For so long jobs that a task gets at a silent queue again, after others were taken back, stay: no other queue took them."""


@dataclass(slots=True)
class Surroundings:
    """What a pass knows of queues, and where tasks have got something done lately."""

    queues: dict[str, QueueView]
    workflows: dict[str, str]
    active: dict[tuple[int, str], datetime] = field(default_factory=dict)

    @property
    def exempt(self) -> list[str]:
        return [name for name, q in self.queues.items() if q.is_exempt]

    @property
    def closed(self) -> list[str]:
        return [name for name, q in self.queues.items() if q.closed]

    @property
    def silent(self) -> list[str]:
        return [name for name, q in self.queues.items() if q.silent]

    def asleep(self, now: datetime) -> list[str]:
        return [
            name
            for name, q in self.queues.items()
            if q.closed or (q.last_start is not None and now - q.last_start >= QUEUE_ASLEEP)
        ]


def look_around(rules: list[TimeoutRule], now: datetime, *, early: float = 0) -> Surroundings:
    """The queues; and, for those jobs that depend on it, when their queues started a job and where their tasks are active.

    With `early`, also for jobs of whose limit that part is still to come.
    """
    around = surroundings()
    names = {rule.name for rule in rules}
    with hot_cursor() as cursor:
        if at_sleeping := [name for name in ("urgent_inactive", "light_inactive") if name in names]:
            old = " OR ".join(f"({_old(name, around, early)})" for name in at_sleeping)
            cursor.execute(_LAST_STARTS.replace("{old}", f"({old})"), {"now": now})
            for name, started in cursor.fetchall():
                if name in around.queues:
                    around.queues[name] = replace(around.queues[name], last_start=started)
        if "silent_queue" in names:
            cursor.execute(_SILENT, {"now": now, "silent": SILENT_AFTER})
            for (name,) in cursor.fetchall():
                if name in around.queues:
                    around.queues[name] = replace(around.queues[name], silent=True)
        if "analysis" in names:
            values = {"now": now, "since": now - TASK_ASLEEP}
            cursor.execute(_ACTIVE_TASKS.replace("{old}", _old("analysis", around, early)), values)
            around.active = {(task, site): at for task, site, at in cursor.fetchall()}
    return around


def surroundings() -> Surroundings:
    """The queues as the information system describes them."""
    queues = list(Queue.objects.only("name", "status", "catchall", "data", "transfer_days_high", "transfer_days_low"))
    return Surroundings(
        {queue.name: queue_view(queue) for queue in queues},
        {queue.name: str(queue.data.get("workflow") or "") for queue in queues},
    )


def queue_view(queue: Queue) -> QueueView:
    words = {word.strip().split("=")[0] for word in queue.catchall.split(",")}
    return QueueView(
        queue.name,
        queue.status,
        no_reassign="disableReassign" in words,
        transfer_high_days=queue.transfer_days_high,
        transfer_low_days=queue.transfer_days_low,
        no_channel=bool(queue.data.get(NO_CHANNEL)),
    )


def _words(values: Collection[str]) -> str:
    """Our own words as a list in SQL."""
    return ", ".join(f"'{value}'" for value in sorted(values))


_ANALYSIS = _words(ANALYSIS_LABELS)
_TESTED = _words(TESTED_LABELS)
_LABELS = {
    Labels.ANY: "TRUE",
    Labels.PRODUCTION: f"j.prodsourcelabel IN ({_TESTED})",
    Labels.OTHER: f"coalesce(j.prodsourcelabel, '') NOT IN ({_TESTED})",
    Labels.ANALYSIS: f"j.prodsourcelabel IN ({_ANALYSIS})",
    Labels.NOT_ANALYSIS: f"coalesce(j.prodsourcelabel, '') NOT IN ({_ANALYSIS})",
}
_PRIORITY = {
    Priority.ANY: "TRUE",
    Priority.URGENT: f"j.currentpriority >= {URGENT}",
    Priority.NORMAL: f"j.currentpriority < {URGENT}",
}
_SINCE = {
    "created": "j.creationtime",
    "status": "coalesce(j.statechangetime, j.creationtime)",
    "heartbeat": """(CASE WHEN j.jobstatus = 'sent' THEN greatest(j.heartbeat_at, j.statechangetime)
                      ELSE coalesce(j.heartbeat_at, j.statechangetime, j.creationtime) END)""",
}
BUILD = "(j.jeditaskid IS NULL OR coalesce(j.prodsourcelabel, '') = 'panda')"
"""Build jobs, by their label, and jobs of no task."""
MERGE = "coalesce(j.processingtype, '') = 'pmerge'"
EVENTS = range_jobs.is_of_ranges("j.")
JUMBO = f"coalesce(j.eventservice = {range_jobs.JUMBO}, false)"
BY_CHANNEL = range_jobs.is_by_channel("j.")
ORPHAN = f"""({MERGE} AND NOT EXISTS (
    SELECT 1 FROM jedi_job_retry_history h JOIN jobs p ON p.pandaid = h.oldpandaid AND p.jobstatus = 'merging'
     WHERE h.newpandaid = j.pandaid AND h.relationtype = 'merge'))"""
REPORT = "EXISTS (SELECT 1 FROM job_output_report r WHERE r.pandaid = j.pandaid)"
# Of each job its own task is asked, by its number. After EXISTS the server may read all tasks that there ever were, with their
# whole parameters, when it looks at many jobs.
ONLY_HERE = """coalesce((
    SELECT (t.site <> '' AND strpos(t.site, ',') = 0)
           OR CASE jsonb_typeof(p.sites) WHEN 'array' THEN p.sites ELSE jsonb_build_array(btrim(p.sites #>> '{}', ' ,')) END
              = jsonb_build_array(j.computingsite)
      FROM jedi_tasks t
      LEFT JOIN LATERAL (SELECT p.taskparams -> 'includedSite' AS sites FROM jedi_taskparams p
                          WHERE p.jeditaskid = t.jeditaskid OFFSET 0) p ON true
     WHERE t.jeditaskid = j.jeditaskid), false)"""
"""Jobs of tasks that name one site, by `site` or `includedSite`: no other queue takes them."""
BOUND = f"""({ONLY_HERE}
   OR EXISTS (SELECT 1 FROM jobs b WHERE b.jeditaskid = j.jeditaskid AND b.computingsite = j.computingsite
                 AND b.jobstatus = 'closed' AND b.jobsubstatus = 'toreassign'
                 AND b.endtime > clock_timestamp() - interval '{int(ONCE_IN.total_seconds())} seconds'
                 AND b.endtime <= j.creationtime))"""
"""The same, and jobs that were made for the queue after others of their task were taken back from there."""
STAYS = "coalesce((SELECT t.splitrule ~ '(^|,)DI=' FROM jedi_tasks t WHERE t.jeditaskid = j.jeditaskid), false)"
# What `also` of a rule says, as SQL. It may let through too much: the decision has the last word.
_ALSO = {
    "orphan_merge": ORPHAN,
    "build_defined": BUILD,
    "urgent_inactive": "j.computingsite = ANY(%(asleep)s::text[])",
    "light_inactive": f"""j.computingsite = ANY(%(asleep)s::text[])
        AND j.processingtype IN ({_words(LIGHT_PROCESSING)})""",
    "silent_queue": f"j.computingsite = ANY(%(silent)s::text[]) AND NOT {BUILD} AND NOT {MERGE}",
    "no_channel": f"{BY_CHANNEL} AND j.computingsite = ANY(%(no_channel)s::text[])",
    "analysis_closed": f"j.computingsite = ANY(%(closed)s::text[]) AND NOT {BUILD}",
    "analysis": f"""NOT {BUILD} AND NOT EXISTS (
        SELECT 1 FROM unnest(%(tasks)s::bigint[], %(sites)s::text[]) a (task, site)
         WHERE a.task = j.jeditaskid AND a.site = j.computingsite)""",
    "waiting": f"NOT {EVENTS}",
    "events": f"{EVENTS} AND NOT {JUMBO} AND ({MERGE} OR j.currentpriority >= {URGENT_EVENTS})",
    "holding_analysis": f"NOT {REPORT}",
    "own_transfer": "j.jobsubstatus IS NOT NULL",
    "transferring": f"(j.currentpriority < {URGENT} OR j.prodsourcelabel IN ({_ANALYSIS}))",
}

# Only queues and tasks of jobs that are old enough are asked about, as all jobs are too many to look at. Of jobs that
# have ended, an index has the last start.
_LAST_STARTS = f"""
WITH old AS MATERIALIZED (SELECT DISTINCT j.computingsite AS site FROM jobs j WHERE {{old}} AND j.computingsite IS NOT NULL)
SELECT old.site, greatest(
           (SELECT max(j.starttime) FROM jobs j
             WHERE j.computingsite = old.site AND j.starttime <= %(now)s AND j.jobstatus IN ({_words(JOB_OPEN)})),
           (SELECT max(j.starttime) FROM jobs j
             WHERE j.computingsite = old.site AND j.starttime <= %(now)s AND j.jobstatus IN ({_words(JOB_FINAL)})))
  FROM old"""
# What is kept of a queue may be a minute old: its own calls are asked anew, so that none is emptied whose pilots are back.
_CALLED = "s.hour > %(now)s - interval '2 hours' AND s.lastgetjob > %(now)s - %(silent)s::interval"
_SILENT = f"""
SELECT a.computingsite FROM queue_activity a WHERE a.silent_since IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM sitedata s WHERE s.site = a.computingsite AND {_CALLED})
   AND EXISTS (SELECT 1 FROM sitedata s JOIN queues q ON q.name = s.site
                WHERE s.site <> a.computingsite AND {_CALLED} AND q.status IN ('online', 'standby'))"""
# The ends that the system itself makes are no sign of life of a queue.
_ACTIVE_TASKS = """
WITH old AS MATERIALIZED (SELECT DISTINCT j.jeditaskid FROM jobs j WHERE {old} AND j.jeditaskid IS NOT NULL)
SELECT j.jeditaskid, j.computingsite, max(greatest(j.starttime, j.endtime)) FROM old JOIN jobs j USING (jeditaskid)
 WHERE j.computingsite IS NOT NULL AND j.starttime IS NOT NULL
   AND j.jobstatus NOT IN ('closed', 'failed', 'cancelled', 'starting')
   AND greatest(j.starttime, j.endtime) > %(since)s GROUP BY 1, 2"""


def condition(rule: TimeoutRule, around: Surroundings, *, also: bool = True, early: float = 0) -> str:
    """SQL on the row `j` that holds for the jobs over a rule at %(now)s; our own constants and a number of seconds.

    With `early`, already when that part of the limit is still to come.
    """
    least = _limit(rule, around)
    parts = [
        f"j.jobstatus IN ({_words(rule.statuses)})",
        _LABELS[rule.labels],
        _PRIORITY[rule.priority],
        f"{_SINCE[rule.since]} <= %(now)s::timestamptz - {least} * {1 - early}",
    ]
    if rule.do == Do.KILL:
        parts.append("j.commandtopilot IS DISTINCT FROM 'tobekilled'")
    if also and rule.name in _ALSO:
        parts.append(_ALSO[rule.name])
    return " AND ".join(parts)


def _limit(rule: TimeoutRule, around: Surroundings) -> str:
    """SQL of the limit of a rule for the row `j`; where queues set it themselves, the shortest of all."""
    name = f"job.{rule.name}"
    if rule.name.startswith("transferring"):
        days = (d for q in around.queues.values() for d in (q.transfer_high_days, q.transfer_low_days) if d)
        least = min([timeout_limits.limit(name), *(timedelta(days=d) for d in days)])
        return f"interval '{least.total_seconds()} seconds'"
    suffixes = sorted({suffix for suffix, _ in timeout_limits.variants(name) if suffix})
    if rule.name == "analysis":
        conditions = [(group, f"j.workinggroup = {timeout_limits.sql_text(group)}") for group in suffixes]
    else:
        # Jobs at queues whose workflow has no limit of its own have that of their kind.
        conditions = [(workflow, _at_workflow(workflow, around)) for workflow in suffixes]
        kinds = (("analysis", _LABELS[Labels.ANALYSIS]), ("production", _LABELS[Labels.NOT_ANALYSIS]))
        conditions += [(kind, where) for kind, where in kinds if kind in suffixes]
    return timeout_limits.limit_sql(name, conditions, "j.vo")


def _at_workflow(workflow: str, around: Surroundings) -> str:
    queues = ", ".join(
        timeout_limits.sql_text(queue) for queue, of in sorted(around.workflows.items()) if of == workflow
    )
    return f"j.computingsite IN ({queues})" if queues else "FALSE"


def values_of(around: Surroundings, now: datetime) -> dict[str, Any]:
    """The parameters of `condition`."""
    pairs = sorted(around.active)
    return {
        "now": now,
        "asleep": around.asleep(now),
        "closed": around.closed,
        "silent": around.silent,
        "no_channel": [name for name, queue in around.queues.items() if queue.no_channel],
        "exempt": around.exempt,
        "tasks": [task for task, _ in pairs],
        "sites": [site for _, site in pairs],
    }


def _old(name: str, around: Surroundings, early: float) -> str:
    """SQL for the jobs that are old enough for a rule that needs more to be known."""
    rule = next(rule for rule in TIMEOUTS if rule.name == name)
    return condition(rule, around, also=False, early=early)
