"""Classes of queues by the waits of their jobs, of analysis tasks by what their users run; class S goes to the express share.

The waits are those of merge jobs of users, which have the highest priority of all and so wait for slots only, and of
HammerCloud's test jobs (JEDI documents on classification). What tasks of the class S gain is the share Express Analysis,
where an installation has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from django.db import transaction

from brokerage_app.grid import installed_policy
from brokerage_app.grid.configured import configuration
from brokerage_app.models import Queue
from brokerage_app.policy import classes
from brokerage_app.policy.classes import SiteClass, SiteWaits, TaskClass, TaskClassLimits, Waits
from jedisite.agents import troubles
from jedisite.database.sql import hot_cursor, numbers, texts
from tasks_app.ddm.local_storage import catalogue
from tasks_app.domain.scopes import scope_of_user
from tasks_app.domain.source_labels import ANALYSIS_LABELS
from tasks_app.domain.states import JOB_OPEN, TASK_FINAL
from tasks_app.models import Task
from tasks_app.params.splitrule import SplitRule
from tasks_app.refining.offered import MERGES
from tasks_app.submission import parameter_changes

ME = "classes"
GB: Final = 1024**3
USERS, EXPRESS = "User Analysis", "Express Analysis"
ACTIVE: Final = timedelta(hours=24)
EXPRESS_HOURS: Final = 1
"""Longest jobs of tasks that are put into the express share, unless they state the size of their jobs."""
LOGS: Final = timedelta(days=30)
"""A job that started within classes.HISTORY was queued not longer than this before."""


class Classified(NamedTuple):
    """How many of each were classified, and how many tasks went to the express share."""

    queues: int
    users: int
    tasks: int
    hurried: int


def classify(now: datetime) -> Classified:
    """Classify queues, users and tasks anew, and hurry tasks that are nearly done."""
    no_grid = _no_grid()
    sites = _classify_sites(no_grid, now)
    limits = TaskClassLimits.from_configuration(configuration())
    slots = _slots(sites, no_grid)
    _keep_users(slots, now)
    found = _classify_tasks(slots, limits)
    _keep_tasks(found, now)
    hurried = _hurry(task for task, (of_task, share) in found.items() if of_task is TaskClass.S and share == USERS)
    return Classified(len(sites), len(slots), len(found), hurried)


# --- queues ---

_SAMPLE = f"""(({{job}}.gshare = '{USERS}' AND {{job}}.processingtype = '{MERGES}')
               OR {{job}}.processingtype LIKE 'gangarobot%%')"""
_WAITS = f"""
WITH started AS (
    SELECT pandaid, computingsite, starttime FROM jobs j WHERE starttime > %(since)s AND {_SAMPLE.format(job="j")}
    UNION ALL
    SELECT pandaid, computingsite, starttime FROM jobs_archive j
     WHERE modificationtime > %(since)s AND starttime > %(since)s AND {_SAMPLE.format(job="j")}),
waits AS (
    SELECT s.computingsite, extract(epoch FROM s.starttime - queued.at) AS x,
           power(0.5, extract(epoch FROM %(now)s - s.starttime) / %(half_life)s) AS w
      FROM started s CROSS JOIN LATERAL (
           SELECT max(l.modificationtime) AS at FROM jobs_statuslog l
            WHERE l.pandaid = s.pandaid AND l.jobstatus = 'activated'
              AND l.modificationtime <= s.starttime AND l.modificationtime > %(logs)s) queued
     WHERE queued.at IS NOT NULL AND s.computingsite IS NOT NULL)
SELECT computingsite, sum(w)::float8, sum(w * x)::float8, sum(w * x * x)::float8 FROM waits GROUP BY 1
"""  # noqa: S608 - constants
# Queues to which pilots come with their job have jobs that wait in the batch system: these are starting.
_LONG = f"""
SELECT j.computingsite, count(*), avg(extract(epoch FROM %(now)s - j.creationtime))::float8
  FROM jobs j JOIN unnest(%(queues)s::text[], %(means)s::float8[]) AS m (queue, mean) ON m.queue = j.computingsite
  LEFT JOIN queues q ON q.name = j.computingsite
 WHERE (j.jobstatus IN ('activated', 'sent') OR (j.jobstatus = 'starting' AND q.workflow LIKE '%%push%%'))
   AND j.gshare = '{USERS}' AND j.processingtype = '{MERGES}'
   AND extract(epoch FROM %(now)s - j.creationtime) > m.mean
 GROUP BY 1
"""  # noqa: S608 - constants
_ACTIVE = """
SELECT DISTINCT computingsite FROM jobs WHERE starttime > %(since)s AND prodsourcelabel = ANY(%(labels)s)
UNION
SELECT DISTINCT computingsite FROM jobs_archive
 WHERE modificationtime > %(since)s AND starttime > %(since)s AND prodsourcelabel = ANY(%(labels)s)
"""


def _no_grid() -> frozenset[str]:
    """Queues of clouds and supercomputers: they say nothing of what is usual, and their slots do not count."""
    return frozenset(Queue.objects.exclude(grid_type__in=("GRID", "")).values_list("name", flat=True))


def _classify_sites(no_grid: frozenset[str], now: datetime) -> dict[str, SiteClass]:
    with hot_cursor() as cursor:
        cursor.execute(
            _WAITS,
            {
                "now": now,
                "since": now - classes.HISTORY,
                "logs": now - LOGS,
                "half_life": classes.HALF_LIFE.total_seconds(),
            },
        )
        measured = {queue: Waits(*sums) for queue, *sums in cursor}
        known = {queue: waits for queue, waits in measured.items() if waits.upper_s is not None}
        means = {queue: waits.mean_s or 0.0 for queue, waits in known.items()}
        cursor.execute(
            _LONG, {"now": now, "queues": texts(means), "means": f"{{{','.join(map(repr, means.values()))}}}"}
        )
        long = {queue: (int(count), float(mean)) for queue, count, mean in cursor}
        cursor.execute(_ACTIVE, {"since": now - ACTIVE, "labels": sorted(ANALYSIS_LABELS)})
        active = {queue for (queue,) in cursor}
    views = {
        queue: SiteWaits(
            waits.upper_s or 0.0, *long.get(queue, (0, means[queue])), queue in active, queue not in no_grid
        )
        for queue, waits in known.items()
    }
    found = classes.classify_sites(views)
    _keep_sites(found, views, means, now)
    return found


@transaction.atomic
def _keep_sites(
    found: Mapping[str, SiteClass], views: Mapping[str, SiteWaits], means: Mapping[str, float], now: datetime
) -> None:
    rows = [(queue, found[queue], views[queue], means[queue]) for queue in sorted(found)]
    with hot_cursor() as cursor:
        cursor.execute(
            """INSERT INTO site_classes AS c (computingsite, class, w_mean, w_cl95upp, long_q_n, long_q_mean, active, updated)
               SELECT *, %s FROM unnest(%s::text[], %s::smallint[], %s::float8[], %s::float8[], %s::int[], %s::float8[],
                                        %s::bool[])
                   ON CONFLICT (computingsite) DO UPDATE
                  SET class = excluded.class, w_mean = excluded.w_mean, w_cl95upp = excluded.w_cl95upp,
                      long_q_n = excluded.long_q_n, long_q_mean = excluded.long_q_mean, active = excluded.active,
                      updated = excluded.updated""",
            [
                now,
                [row[0] for row in rows],
                [int(row[1]) for row in rows],
                [row[3] for row in rows],
                [row[2].upper_s for row in rows],
                [row[2].long_queued for row in rows],
                [row[2].long_mean_s for row in rows],
                [row[2].active for row in rows],
            ],
        )
        cursor.execute("DELETE FROM site_classes WHERE updated < %s", [now])


# --- users ---

_RUNNING = """
SELECT produsername, computingsite, sum(greatest(coalesce(actualcorecount, corecount), 1))::int
  FROM jobs WHERE jobstatus = 'running' AND gshare = ANY(%s) AND produsername IS NOT NULL AND computingsite <> ALL(%s)
 GROUP BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class _Slots:
    """Cores of a user that run on queues of each class. Queues that are no grid's do not count."""

    hi: int = 0
    mid: int = 0


def _slots(sites: Mapping[str, SiteClass], no_grid: Iterable[str]) -> dict[str, _Slots]:
    with hot_cursor() as cursor:
        cursor.execute(_RUNNING, [[USERS, EXPRESS], sorted(no_grid)])
        by_user: dict[str, list[tuple[str, int]]] = {}
        for user, queue, cores in cursor:
            by_user.setdefault(user, []).append((queue, cores))
        cursor.execute(_OWNERS, [[USERS, EXPRESS], sorted(TASK_FINAL)])
        owners = {user for (user,) in cursor}
    found = dict.fromkeys(owners, _Slots())
    for user, slots in by_user.items():
        total = classes.slots_by_class(slots, sites)
        found[user] = _Slots(total[SiteClass.HI], total[SiteClass.MID])
    return found


_OWNERS = """
SELECT DISTINCT username FROM jedi_tasks WHERE gshare = ANY(%s) AND status <> ALL(%s) AND username IS NOT NULL
"""


def _keep_users(slots: Mapping[str, _Slots], now: datetime) -> None:
    """Keep what users have; the size of their datasets only where there is a quota for it."""
    users = sorted(slots)
    sizes: dict[str, float] = {}
    if any(row.key == "USER_DISK_QUOTA" for row in configuration().rows):
        scopes = {user: scope_of_user(user) for user in users}
        used = catalogue.disk_usage(scopes.values())
        sizes = {user: used.get(scope, 0) / GB for user, scope in scopes.items()}
    with transaction.atomic(), hot_cursor() as cursor:
        cursor.execute(
            """INSERT INTO analysis_users AS u (produsername, slots_hi, slots_mid, disk_gb, updated)
               SELECT *, %s FROM unnest(%s::text[], %s::int[], %s::int[], %s::float8[])
                   ON CONFLICT (produsername) DO UPDATE
                  SET slots_hi = excluded.slots_hi, slots_mid = excluded.slots_mid, disk_gb = excluded.disk_gb,
                      updated = excluded.updated""",
            [
                now,
                texts(users),
                numbers(slots[user].hi for user in users),
                numbers(slots[user].mid for user in users),
                [sizes.get(user) for user in users],
            ],
        )
        cursor.execute("DELETE FROM analysis_users WHERE updated < %s", [now])


# --- tasks ---

_TASKS = """
SELECT t.jeditaskid, t.username, t.gshare, (100.0 * f.done / greatest(f.files, 1))::float8, coalesce(r.remaining, 0)::int
  FROM jedi_tasks t
 CROSS JOIN LATERAL (
       SELECT coalesce(sum(d.nfiles), 0) AS files, coalesce(sum(d.nfilesfinished + d.nfilesfailed), 0) AS done,
              coalesce(sum(d.nfilestobeused - d.nfilesused), 0) AS unused, coalesce(sum(d.nfilesused), 0) AS used,
              coalesce(bool_or(d.state = 'mutable'), false) AS grows
         FROM jedi_datasets d
        WHERE d.jeditaskid = t.jeditaskid AND d.masterid IS NULL AND d.type IN ('input', 'pseudo_input')
          AND d.status NOT IN ('removed', 'broken')) f
  LEFT JOIN LATERAL (
       SELECT count(*) FILTER (WHERE j.jobstatus = ANY(%(open)s))
              + ceil(f.unused * count(*) / greatest(f.used, 1)::numeric) AS remaining
         FROM jobs j WHERE j.jeditaskid = t.jeditaskid) r
    ON NOT f.grows AND f.files > 0 AND 100 * f.done >= %(percent)s * f.files
 WHERE t.gshare = ANY(%(shares)s) AND t.status <> ALL(%(final)s)
"""


def _classify_tasks(slots: Mapping[str, _Slots], limits: TaskClassLimits) -> dict[int, tuple[TaskClass, str]]:
    """The class and the share of each open task of the shares that have classes."""
    with hot_cursor() as cursor:
        cursor.execute(
            _TASKS,
            {
                "open": sorted(JOB_OPEN),
                "percent": min(limits.percent_a, limits.percent_b),
                "shares": [USERS, EXPRESS],
                "final": sorted(TASK_FINAL),
            },
        )
        rows: list[tuple[int, str | None, str, float, int]] = list(cursor)
    found = {}
    for task_id, user, share, percent, remaining in rows:
        has = slots.get(user or "", _Slots())
        of_user = classes.user_class(has.hi, has.mid, limits)
        found[task_id] = (
            classes.task_class(
                of_user, percent_done=percent, remaining=remaining, express=share == EXPRESS, limits=limits
            ),
            share,
        )
    return found


@transaction.atomic
def _keep_tasks(found: Mapping[int, tuple[TaskClass, str]], now: datetime) -> None:
    ids = sorted(found)
    with hot_cursor() as cursor:
        cursor.execute(
            """INSERT INTO task_classes AS c (jeditaskid, class, updated)
               SELECT *, %s FROM unnest(%s::bigint[], %s::smallint[])
                   ON CONFLICT (jeditaskid) DO UPDATE SET class = excluded.class, updated = excluded.updated""",
            [now, numbers(ids), numbers(int(found[task_id][0]) for task_id in ids)],
        )
        cursor.execute("DELETE FROM task_classes WHERE updated < %s", [now])


def _hurry(tasks: Iterable[int]) -> int:
    """Put tasks that are nearly done into the express share, where there is one. Returns how many."""
    wanted = list(tasks)
    if not wanted or not installed_policy.share_tree().is_leaf(EXPRESS):
        return 0
    return troubles.each(ME, wanted, _into_express)


@transaction.atomic
def _into_express(task_id: int) -> bool:
    """Move a task and its queued jobs; False when it has ended, or was moved by somebody else, in the meantime."""
    task = Task.objects.select_for_update().get(pk=task_id)
    if task.status in TASK_FINAL or task.gshare != USERS:
        return False
    reason = "the task is of class S: nearly done, and its user runs little"
    rule = SplitRule.parse(task.split_rule)
    if not any(code in rule for code in ("NF", "NE", "MW")):
        Task.objects.filter(pk=task_id).update(split_rule=str(rule.having("MW", EXPRESS_HOURS)))
        reason += f", its jobs may take {EXPRESS_HOURS} h"
    parameter_changes.change_share(task_id, EXPRESS, by=ME, reason=reason)
    return True
