"""Limits of users and working groups on jobs, cores and volumes: who is over one, and whose tasks and jobs are held back.

There are caps on jobs and cores only where they are set; on volumes always.

Near a cap no new jobs are made of the user's tasks for two hours, and longer while they stay near it; at the cap queued
jobs are held back too. The dialog of a task so throttled bears its kind (`type=jobs`), by which it is released again.
Jobs of a working group count for the group, all others for their user.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction
from django.db.models import Q

from brokerage_app.policy.userthrottle import Caps
from jedisite.agents.passes import owner
from tasks_app.configured import site_limits, timeout_limits
from tasks_app.domain.states import JOB_OPEN, TASK_GENERATING
from tasks_app.domain.users_work import users_jobs, users_tasks
from tasks_app.lifecycle import claims, task_moves
from tasks_app.lifecycle.job_moves import move_free_jobs
from tasks_app.models import Task
from tasks_app.upkeep.overdue import MERGE
from tasks_app.upkeep.rules.usercaps import Kind, UserLoad, dialog, kind_of, over, queue_step, still_over

ME = "user_caps"
JOBS = 5000
GB = 10**9
_OPEN = ", ".join(f"'{status}'" for status in sorted(JOB_OPEN))
_MINE = f"""{users_tasks("t")} AND NOT EXISTS (
    SELECT 1 FROM jobs j WHERE j.jeditaskid = t.jeditaskid AND j.jobstatus IN ({_OPEN}) AND {MERGE})"""  # noqa: S608
"""Tasks of users; those that are merging are left alone, since that makes room."""

Who = tuple[str, str]
"""(user, working group); one of the two is empty."""


@dataclass(frozen=True, slots=True)
class UserLimits:
    """Caps on jobs and cores of users (False) and groups (True), and the most GB by kind; None is no limit."""

    caps: Mapping[bool, Caps]
    most_gb: Mapping[Kind, float | None]


def limits_in_force() -> UserLimits:
    caps = {
        group: Caps(site_limits.number(f"CAP_RUNNING_{name}_JOBS"), site_limits.number(f"CAP_RUNNING_{name}_CORES"))
        for group, name in ((False, "USER"), (True, "GROUP"))
    }
    return UserLimits(
        caps,
        {
            "prestaging": site_limits.number("USER_PRESTAGE_LIMIT"),
            "transfer": site_limits.number("USER_TRANSFER_LIMIT"),
        },
    )


@dataclass(frozen=True, slots=True)
class UsersWork:
    """Usage by user and by group, and the GB that are on their way for each user, by kind."""

    usage: Mapping[Who, UserLoad]
    volumes: Mapping[Kind, Mapping[str, float]]


def read_work(limits: UserLimits) -> UsersWork:
    """What users have, as far as there is a limit on it."""
    queries: Mapping[Kind, str] = {"prestaging": _STAGING, "transfer": _TRANSFERS}
    volumes = {kind: _volume(query) for kind, query in queries.items() if limits.most_gb[kind] is not None}
    return UsersWork(_usage() if any(c != Caps() for c in limits.caps.values()) else {}, volumes)


def hold_back(work: UsersWork, limits: UserLimits, now: datetime, most: int) -> int:
    """Throttle tasks of whoever is over a limit, hold queued jobs back and let them go. Returns how many there were."""
    items = 0
    for who, usage in work.usage.items():
        cap = limits.caps[usage.group]
        why = over(usage, cap)
        if why:
            items += _throttle(who, "jobs", f"{_name(who)}: {why}", now, most)
        items += _move_jobs(who, queue_step(usage, cap))
    for kind, by_user in work.volumes.items():
        for user in by_user:
            why = _volume_over(user, kind, work, limits)
            items += _throttle((user, ""), kind, f"{user}: {why}", now, most) if why else 0
    return items


def _name(who: Who) -> str:
    return f"group {who[1]}" if who[1] else who[0]


_USAGE = f"""
SELECT CASE WHEN coalesce(workinggroup, '') = '' THEN coalesce(produsername, '') ELSE '' END, coalesce(workinggroup, ''),
       count(*) FILTER (WHERE jobstatus IN ('starting', 'running')),
       count(*) FILTER (WHERE jobstatus IN ('pending', 'defined', 'assigned', 'activated')),
       coalesce(sum(coalesce(actualcorecount, corecount, 1)) FILTER (WHERE jobstatus IN ('starting', 'running')), 0)
  FROM jobs j WHERE jobstatus IN ({_OPEN}) AND {users_jobs("j")} GROUP BY 1, 2
"""  # noqa: S608 - constants
# Files of open tasks of users that are being staged (tasks with IS=1), and inputs of jobs that wait for theirs.
_STAGING = f"""
SELECT t.username, sum(coalesce(c.fsize, 0)) FROM jedi_tasks t
  JOIN jedi_datasets d ON d.jeditaskid = t.jeditaskid AND d.type = 'input'
  JOIN jedi_dataset_contents c ON c.jeditaskid = t.jeditaskid AND c.datasetid = d.datasetid AND c.status = 'staging'
 WHERE {users_tasks("t")} AND t.splitrule ~ '(^|,)IS=1'
   AND t.status NOT IN ('done', 'finished', 'failed', 'aborted', 'broken') GROUP BY 1
"""  # noqa: S608
_TRANSFERS = f"""
SELECT coalesce(produsername, ''), sum(coalesce(inputfilebytes, 0)) FROM jobs j
 WHERE jobstatus = 'assigned' AND {users_jobs("j")} GROUP BY 1
"""  # noqa: S608


def _usage() -> dict[Who, UserLoad]:
    with connection.cursor() as cursor:
        cursor.execute(_USAGE)
        return {
            (user, group): UserLoad(running, queued, int(cores), group=bool(group))
            for user, group, running, queued, cores in cursor.fetchall()
        }


def _volume(query: str) -> dict[str, float]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return {user: float(size) / GB for user, size in cursor.fetchall()}


def _throttle(who: Who, kind: Kind, why: str, now: datetime, limit: int) -> int:
    length = timeout_limits.limit("task.throttled_user")
    reason = dialog(kind, why, length.total_seconds() / 60)
    user, group = who
    mine = Q(working_group=group) if group else Q(user=user) & (Q(working_group=None) | Q(working_group=""))
    ids = list(Task.objects.filter(mine, status__in=TASK_GENERATING).values_list("id", flat=True))
    if not ids:
        return 0
    condition = f"{_MINE} AND t.jeditaskid IN ({', '.join(map(str, ids))})"
    if kind == "prestaging":
        condition += """ AND EXISTS (SELECT 1 FROM jedi_datasets d JOIN jedi_dataset_contents c USING (jeditaskid, datasetid)
                          WHERE d.jeditaskid = t.jeditaskid AND c.status = 'staging')"""
    elif kind == "transfer":
        condition += " AND EXISTS (SELECT 1 FROM jobs j WHERE j.jeditaskid = t.jeditaskid AND j.jobstatus = 'assigned')"
    claimed = claims.claim_tasks(
        owner(), sorted(TASK_GENERATING), limit, condition=condition, even_waiting=True, agent=ME
    )

    def work(task_id: int, fence: int) -> None:
        task_moves.throttle_task(task_id, fence, by=ME, reason=reason, until=now + length, now=now)

    return claims.for_each(claimed, work, by=ME)


def release_or_hold(
    task_id: int,
    fence: int,
    *,
    work: UsersWork,
    limits: UserLimits,
    now: datetime,
) -> bool:
    """A throttled task goes on when its user is well below the limit; else it is held again when its time is over."""
    task = Task.objects.get(pk=task_id)
    kind = kind_of(task.error_dialog)
    why = _still(task, kind or "jobs", work, limits)
    if not why:
        task_moves.resume_throttled(task, fence, by=ME, reason="below the limit again")
        return True
    if task.throttled_time is not None and task.throttled_time > now:
        claims.release_task(task_id, fence, wait=task.throttled_time - now)
        return False
    length = timeout_limits.limit("task.throttled_user")
    reason = dialog(kind or "jobs", why, length.total_seconds() / 60)
    task_moves.note_task(task_id, fence, by=ME, reason=reason, error_dialog=reason, throttled_time=now + length)
    return True


def _still(task: Task, kind: Kind, work: UsersWork, limits: UserLimits) -> str | None:
    if kind == "jobs":
        group = task.working_group or ""
        usage = work.usage.get(("" if group else task.user, group))
        return still_over(usage, limits.caps[bool(group)]) if usage else None
    return _volume_over(task.user, kind, work, limits)


def _volume_over(user: str, kind: Kind, work: UsersWork, limits: UserLimits) -> str | None:
    cap, gb = limits.most_gb[kind], work.volumes.get(kind, {}).get(user, 0.0)
    return f"{gb:g} GB are on the way, the limit is {cap:g}" if cap is not None and gb > cap else None


# Jobs of paused tasks stay as they are.
_JOBS_OF = f"""{users_jobs("j")} AND coalesce(j.workinggroup, '') = %(group)s
    AND (%(group)s <> '' OR coalesce(j.produsername, '') = %(user)s)
    AND NOT EXISTS (SELECT 1 FROM jedi_tasks t WHERE t.jeditaskid = j.jeditaskid AND t.status = 'paused')"""  # noqa: S608


@transaction.atomic
def _move_jobs(who: Who, step: str | None) -> int:
    if step is None:
        return 0
    values = {"user": who[0], "group": who[1]}
    if step == "hold":
        why = f"{_name(who)} has reached the limit on running jobs"
        return move_free_jobs("activated", "throttled", _JOBS_OF, values, by=ME, reason=why, limit=JOBS)
    why = "slots are free again"
    return move_free_jobs("throttled", "activated", _JOBS_OF, values, by=ME, reason=why, limit=JOBS)


@transaction.atomic
def free_forgotten_jobs(work: UsersWork) -> int:
    """Without caps, jobs that were held back under earlier ones are queued again."""
    if work.usage:
        return 0
    which = f"""{users_jobs("j")} AND NOT EXISTS (
        SELECT 1 FROM jedi_tasks t WHERE t.jeditaskid = j.jeditaskid AND t.status = 'paused')"""  # noqa: S608
    return move_free_jobs("throttled", "activated", which, {}, by=ME, reason="the cap no longer applies", limit=JOBS)
