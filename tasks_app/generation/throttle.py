"""Throttling in the job generator: once a pass, one decision for each work queue or share, label and resource type.

Only work queues with a share, and global shares that are throttled, take part: an installation that has neither counts
nothing here. Decisions are kept for people to read, and tasks that get no jobs for one of them say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

import psycopg
from django.db import transaction

from brokerage_app.grid.configured import configuration
from brokerage_app.models import Queue, ThrottleRecord
from brokerage_app.policy.configuration import Configuration
from brokerage_app.policy.throttle import (
    WHOLE_QUEUES,
    Allowance,
    JobCounts,
    Levels,
    Situation,
    Standby,
    core_class,
    explain,
    limits_of,
    parse_standby,
    throttle,
    total_walltime_s,
    with_standby,
)
from brokerage_app.vocabulary import codes
from jedisite import refusals
from jedisite.database.sql import hot_cursor, texts
from tasks_app.counts import statistics
from tasks_app.domain.states import JOB_OPEN, TASK_GENERATING
from tasks_app.domain.users_work import users_tasks
from tasks_app.generation.groups import CONCERNS, GROUPS, Group, Queues, Throttle, columns, key_of, known_queues
from tasks_app.models import Task

# ruff: noqa: S608 - every piece is a constant of this module
WRITTEN_ANEW: Final = timedelta(minutes=1)
"""A decision that stays the same is written again after this time, for its numbers."""
FORGOTTEN: Final = timedelta(days=7)
NOTES: Final = 5000
SAYS: Final = "Throttled: "
"""How the sentence of a task begins that gets no jobs for a decision of the throttle."""


_MINE = f"{key_of('{row}')} = ANY(%(keys)s::text[])"
# Users' own tasks are never urgent.
_WAITING = f"""
SELECT coalesce(t.vo, ''), coalesce(t.prodsourcelabel, ''), {key_of("t")}, coalesce(t.resource_type, ''),
       max(coalesce(t.currentpriority, 0)) FILTER (WHERE NOT {users_tasks("t")})
  FROM jedi_tasks t WHERE t.status = ANY(%(statuses)s) AND {_MINE.replace("{row}", "t")} AND {{has_work}}
 GROUP BY 1, 2, 3, 4
"""
_COUNTS = f"""
SELECT c.prodsourcelabel, {key_of("c")}, c.resource_type,
       coalesce(sum(c.njobs) FILTER (WHERE c.jobstatus = 'running'), 0),
       coalesce(sum(c.njobs) FILTER (WHERE c.jobstatus IN ('assigned', 'activated', 'sent', 'starting')), 0),
       coalesce(sum(c.njobs) FILTER (WHERE c.jobstatus IN ('pending', 'defined')), 0),
       coalesce(sum(c.njobs) FILTER (WHERE c.jobstatus = 'waiting'), 0)
  FROM job_counts c WHERE {_MINE.replace("{row}", "c")} GROUP BY 1, 2, 3
"""
_QUEUED = "j.jobstatus IN ('assigned', 'activated', 'sent', 'starting', 'pending', 'defined')"
# By priority first, so that the jobs of the highest can be told apart.
_DETAILS = f"""
WITH each AS (
    SELECT coalesce(j.prodsourcelabel, '') AS label, {key_of("j")} AS queue, coalesce(j.resource_type, '') AS resource_type,
           j.currentpriority AS priority,
           count(*) FILTER (WHERE {_QUEUED} OR j.jobstatus = 'waiting') AS not_running,
           coalesce(sum(j.maxwalltime) FILTER (WHERE {_QUEUED} AND j.maxwalltime > 0), 0) AS walltime,
           count(*) FILTER (WHERE {_QUEUED} AND j.maxwalltime > 0) AS with_walltime,
           count(*) FILTER (WHERE {_QUEUED} AND coalesce(j.maxwalltime, 0) <= 0) AS without
      FROM jobs j WHERE j.jobstatus = ANY(%(open)s) AND {_MINE.replace("{row}", "j")}
     GROUP BY 1, 2, 3, 4),
ranked AS (SELECT *, max(priority) OVER (PARTITION BY label, queue, resource_type) AS highest FROM each)
SELECT label, queue, resource_type, sum(walltime), sum(with_walltime), sum(without), max(highest),
       coalesce(sum(not_running) FILTER (WHERE priority = highest), 0)
  FROM ranked GROUP BY 1, 2, 3
"""

Kind = tuple[str, str, str]
"""(label, queue, resource type) of jobs: a queue or share belongs to one organisation."""


@dataclass(frozen=True, slots=True)
class Detail:
    """What is asked of jobs only where their number is a reason to stop."""

    walltime_s: float | None
    highest_priority: int | None
    not_running_highest: int


@dataclass(frozen=True, slots=True)
class Seen:
    """The groups of tasks that wait, with the highest priority of those that may be urgent, and the jobs that there are."""

    waiting: Mapping[Group, int | None]
    jobs: Mapping[Kind, JobCounts]
    standby: Sequence[tuple[Standby, int]] = ()
    details: Mapping[Kind, Detail] = field(default_factory=dict)


def decide(now: datetime, has_work: str) -> Throttle:
    """Decide for all groups whose tasks have input left (`has_work`: SQL on the row `t`), and keep what was decided."""
    config = configuration()
    queues = known_queues()
    off = _switched_off(config)
    if not queues.names and not off:
        return Throttle(queues)
    allowances = _decide(queues, config, has_work) if queues.names else {}
    found = Throttle(queues, allowances, off)
    changed = _keep(allowances, now)
    if changed or off or any(allowance.code for allowance in allowances.values()):
        _say(found, has_work)
    return found


def _switched_off(config: Configuration) -> tuple[str, ...]:
    """VOs with tasks whose jobs are not to be made (JOB_SUBMISSION)."""
    if not any(row.key == "JOB_SUBMISSION" for row in config.rows):
        return ()
    vos = Task.objects.filter(status__in=TASK_GENERATING).values_list("vo", flat=True).distinct()
    names = {vo or "" for vo in vos}
    return tuple(sorted(vo for vo in names if config.get("jobgen", "JOB_SUBMISSION", vo=vo) is False))


def _decide(queues: Queues, config: Configuration, has_work: str) -> dict[Group, Allowance]:
    values = {
        **queues.values,
        "keys": texts(queues.names),
        "statuses": sorted(TASK_GENERATING),
        "open": sorted(JOB_OPEN),
    }
    with hot_cursor() as cursor:
        cursor.execute(_WAITING.format(has_work=has_work), values)
        waiting = {Group(*row[:4]): row[4] for row in cursor.fetchall()}
        if not waiting:
            return {}
        statistics.refresh()
        cursor.execute(_COUNTS, values)
        jobs = {row[:3]: JobCounts(*map(int, row[3:])) for row in cursor.fetchall()}
        seen = Seen(waiting, jobs, _standby(cursor, queues))
        found = {group: _throttle(group, seen, queues, config) for group in sorted(waiting)}
        stopped = {group.queue for group, allowance in found.items() if allowance.code}
        if stopped:
            cursor.execute(_DETAILS, {**values, "keys": texts(sorted(stopped))})
            details = {
                row[:3]: Detail(total_walltime_s(float(row[3]), int(row[4]), int(row[5])), row[6], int(row[7]))
                for row in cursor.fetchall()
            }
            seen = replace(seen, details=details)
    return found | {
        group: _throttle(group, seen, queues, config) for group in sorted(waiting) if group.queue in stopped
    }


def _throttle(group: Group, seen: Seen, queues: Queues, config: Configuration) -> Allowance:
    """The decision for a group. Without details of its jobs, no task counts as urgent and no job as short."""
    name = queues.names[group.queue]
    limits = limits_of(config, group.label, name, group.resource_type, group.vo)
    return throttle(_situation(group, name, seen), limits)


def _situation(group: Group, name: str, seen: Seen) -> Situation:
    cores = core_class(group.resource_type)
    mine = {kind[2]: counts for kind, counts in seen.jobs.items() if kind[:2] == group[1:3]}
    slots = [(s, starting) for s, starting in seen.standby if s.queue in (name, group.queue.removeprefix("queue:"))]

    def counts(types: Iterable[str]) -> JobCounts:
        wanted = set(types)
        found = sum((mine[t] for t in wanted if t in mine), JobCounts())
        return with_standby(found, [s for s in slots if s[0].resource_type in wanted])

    types = {*mine, group.resource_type, *(s.resource_type for s, _ in slots)}
    own = [group.resource_type] if name not in WHOLE_QUEUES else sorted(types)
    details = [d for t in own if (d := seen.details.get((group.label, group.queue, t))) is not None]
    highest = max((d.highest_priority for d in details if d.highest_priority is not None), default=None)
    of_class = [t for t in types if core_class(t) == cores] if cores else [group.resource_type]
    urgent = (
        [p for g, p in seen.waiting.items() if p is not None and g[:3] == group[:3] and g.resource_type in own]
        if seen.details
        else []
    )
    return Situation(
        name,
        group.label,
        group.resource_type,
        Levels(counts([group.resource_type]), counts(of_class), counts(types)),
        walltime_s=details[0].walltime_s if len(details) == 1 else None,
        waiting_priority=max(urgent, default=None),
        highest_priority=highest,
        not_running_highest=sum(d.not_running_highest for d in details if d.highest_priority == highest),
    )


def _standby(cursor: psycopg.Cursor[Any], queues: Queues) -> list[tuple[Standby, int]]:
    """Slots of queues in status standby, with the jobs of their kind that are starting there."""
    found: list[tuple[Standby, int]] = []
    for queue in Queue.objects.filter(status="standby"):
        for standby in parse_standby(_switch(queue, "nStandby")):
            cursor.execute(
                f"""SELECT count(*) FROM jobs j WHERE j.jobstatus = 'starting' AND j.computingsite = %(site)s
                       AND coalesce(j.resource_type, '') = %(type)s AND {key_of("j")} = ANY(%(of)s::text[])""",
                {
                    "site": queue.name,
                    "type": standby.resource_type,
                    "of": texts([f"share:{standby.queue}", f"queue:{standby.queue}"]),
                    **queues.values,
                },
            )
            row = cursor.fetchone()
            found.append((standby, int(row[0]) if row else 0))
    return found


def _switch(queue: Queue, name: str) -> str:
    """A switch of a queue: of its own parameters, else of its list of further switches."""
    params = queue.data.get("params")
    if isinstance(params, dict) and name in params:
        return str(params[name] or "")
    pairs = (word.strip().partition("=") for word in queue.catchall.split(","))
    return next((value for key, _, value in pairs if key == name), "")


@transaction.atomic
def _keep(allowances: Mapping[Group, Allowance], now: datetime) -> bool:
    """Write the decisions that are new or whose numbers are old. Returns whether one stops other tasks than before."""
    if not allowances:
        return False
    kept = {Group(r.vo, r.label, r.queue, r.resource_type): r for r in ThrottleRecord.objects.all()}
    changed, rows = False, []
    for group, allowance in allowances.items():
        old = kept.get(group)
        same = old is not None and (old.code, old.min_priority) == (allowance.code, allowance.min_priority)
        changed = changed or (not same and (old is not None or bool(allowance.code)))
        if old is None or not same or now - old.at >= WRITTEN_ANEW:
            rows.append(
                ThrottleRecord(
                    **group._asdict(),
                    at=now,
                    since=old.since if old is not None and same else now,
                    passed=allowance.passed,
                    max_jobs=allowance.max_jobs,
                    min_priority=allowance.min_priority,
                    lack_of_jobs=allowance.lack_of_jobs,
                    code=allowance.code,
                    detail=allowance.detail,
                    advice=allowance.advice,
                    lines=explain(allowance),
                )
            )
    if rows:
        columns = [
            "at",
            "since",
            "passed",
            "max_jobs",
            "min_priority",
            "lack_of_jobs",
            "code",
            "detail",
            "advice",
            "lines",
        ]
        ThrottleRecord.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=list(Group._fields), update_fields=columns
        )
        ThrottleRecord.objects.filter(at__lt=now - FORGOTTEN).delete()
    return changed


_NOTE = f"""
WITH wanted AS (
    SELECT t.jeditaskid, g.note FROM jedi_tasks t LEFT JOIN {GROUPS} ON {CONCERNS}
     WHERE t.status = ANY(%(statuses)s) AND t.lockedby IS NULL AND {{has_work}}
       AND CASE WHEN coalesce(t.vo, '') = ANY(%(off)s::text[]) THEN t.errordialog IS DISTINCT FROM %(is_off)s
                WHEN g.note IS NULL THEN starts_with(t.errordialog, %(says)s)
                ELSE NOT starts_with(coalesce(t.errordialog, ''), g.title) END
     ORDER BY t.jeditaskid LIMIT %(limit)s FOR UPDATE OF t SKIP LOCKED)
UPDATE jedi_tasks t
   SET errordialog = CASE WHEN coalesce(t.vo, '') = ANY(%(off)s::text[]) THEN %(is_off)s ELSE wanted.note END
  FROM wanted WHERE t.jeditaskid = wanted.jeditaskid
"""


def _say(found: Throttle, has_work: str) -> None:
    """Tasks that are stopped say so, with the numbers of the moment in which it began; others do not any more."""
    off = f"{refusals.get(codes.GENERATION_OFF).title}: JOB_SUBMISSION is false"
    with transaction.atomic(), hot_cursor() as cursor:
        cursor.execute(
            _NOTE.format(has_work=has_work),
            {
                **found.queues.values,
                **columns(found.refused()),
                "statuses": sorted(TASK_GENERATING),
                "off": texts(found.off),
                "is_off": off,
                "says": SAYS,
                "limit": NOTES,
            },
        )
