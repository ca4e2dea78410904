"""What the broker of analysis has to know of the user and the task besides the task's needs: read once for a pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final

from brokerage_app.cases.analysis_settings import AnalysisFacts, Ended
from brokerage_app.grid import installed_policy
from brokerage_app.models.classes import AnalysisUser, SiteClassRecord, TaskClassRecord
from brokerage_app.policy import classes
from brokerage_app.policy.classes import SiteClass, TaskClass
from brokerage_app.policy.configuration import Configuration
from brokerage_app.policy.shares import ShareTree
from brokerage_app.policy.userthrottle import SHARE_WITH_CLASSES, Quota, ShareState, UserUsage
from jedisite.database.sql import hot_cursor
from tasks_app.domain.retry_rules import SITE_ENDS
from tasks_app.domain.states import JOB_OPEN, JOB_QUEUED, JobStatus
from tasks_app.domain.task_commands import TaskCommand
from tasks_app.domain.users_work import users_jobs
from tasks_app.models import Task

Who = tuple[str, str]
"""A user and "", or "" and a working group, whose jobs count for the group."""
NOBODY: Final = UserUsage()
QUOTA_VALID: Final = timedelta(hours=1)

# Jobs that wait for a pilot, or to be allowed to; what waits for its library or its files counts too.
_USAGE = f"""
SELECT CASE WHEN coalesce(workinggroup, '') = '' THEN coalesce(produsername, '') ELSE '' END, coalesce(workinggroup, ''),
       count(*) FILTER (WHERE jobstatus = 'running'), count(*) FILTER (WHERE jobstatus = ANY(%(queued)s)),
       coalesce(sum(greatest(coalesce(corecount, 1), 1)) FILTER (WHERE jobstatus = 'running'), 0)::int,
       coalesce(sum(greatest(coalesce(corecount, 1), 1)) FILTER (WHERE jobstatus = ANY(%(queued)s)), 0)::int
  FROM jobs j WHERE jobstatus = ANY(%(open)s) AND {users_jobs("j")} GROUP BY 1, 2
"""  # noqa: S608 - a constant
QUEUED: Final = sorted(JOB_QUEUED | {JobStatus.SENT, JobStatus.STARTING})
# Failures count that the pilot reports but for those that the site has ended, and closed jobs that were taken back from the
# queue. Those of before somebody had the task tried or run again say nothing of how it fares now.
_ENDED = """
SELECT computingsite, count(*) FILTER (WHERE jobstatus = 'finished'),
       count(*) FILTER (WHERE jobstatus = 'failed' AND coalesce(piloterrorcode, 0) > 0 AND piloterrorcode <> ALL(%s)),
       count(*) FILTER (WHERE jobstatus = 'closed' AND jobsubstatus = 'toreassign')
  FROM jobs WHERE jeditaskid = %s AND jobstatus IN ('finished', 'failed', 'closed') AND statechangetime > %s
   AND computingsite IS NOT NULL
   AND creationtime > coalesce((SELECT max(comm_ended) FROM task_commands
                                 WHERE comm_task = %s AND comm_cmd = ANY(%s) AND comm_status = 'done'), '-infinity')
 GROUP BY 1
"""
SITE_ENDED: Final = [one.error_code for one in SITE_ENDS if one.error_source == "pilot"]
ANEW: Final = [TaskCommand.RETRY.value, TaskCommand.INCEXEC.value]
# Power that executes and that is queued, in HS, by share.
_POWER = """
SELECT coalesce(j.gshare, ''),
       coalesce(sum(greatest(coalesce(j.corecount, 1), 1) * coalesce(nullif(q.core_power, 0), 10))
                FILTER (WHERE j.jobstatus IN ('sent', 'running')), 0)::float8,
       coalesce(sum(greatest(coalesce(j.corecount, 1), 1) * coalesce(nullif(q.core_power, 0), 10))
                FILTER (WHERE j.jobstatus = 'activated'), 0)::float8
  FROM jobs j LEFT JOIN queues q ON q.name = j.computingsite
 WHERE j.jobstatus IN ('sent', 'running', 'activated') GROUP BY 1
"""


class AnalysisUsers:
    """The users of analysis, their shares and classes, as one pass of the job generator sees them.

    Each part is read when a task asks for it first, and not again; jobs that the pass makes are counted on.
    """

    def __init__(self, configuration: Configuration, now: datetime) -> None:
        self._configuration, self._now = configuration, now
        self._made: dict[Who, tuple[int, int]] = {}

    def facts(self, task: Task) -> AnalysisFacts:
        who = who_of(task)
        user, group = who
        return AnalysisFacts(
            who=f"the group {group}" if group else f"the user {user}",
            is_group=bool(group),
            usage=self._usage_of(who, task.vo or ""),
            quotas=self._quotas(task),
            share=self._share_of(task),
            task_class=self._class_of(task),
            site_classes=self._site_classes,
            ended=self._ended(task),
        )

    def made(self, task: Task, jobs: int, cores: int) -> None:
        """So many jobs were made, with so many cores altogether."""
        had = self._made.get(who_of(task), (0, 0))
        self._made[who_of(task)] = had[0] + jobs, had[1] + cores

    def _usage_of(self, who: Who, vo: str) -> UserUsage:
        of = "GROUP" if who[1] else "USER"
        caps = [self._configuration.get("prio_mgr", f"CAP_RUNNING_{of}_{what}", vo=vo) for what in ("JOBS", "CORES")]
        if caps == [None, None]:
            return NOBODY
        usage = self._usage.get(who, NOBODY)
        jobs, cores = self._made.get(who, (0, 0))
        return replace(usage, queued_jobs=usage.queued_jobs + jobs, queued_cores=usage.queued_cores + cores)

    @cached_property
    def _usage(self) -> Mapping[Who, UserUsage]:
        with hot_cursor() as cursor:
            cursor.execute(_USAGE, {"queued": QUEUED, "open": sorted(JOB_OPEN)})
            return {
                (user, group): UserUsage(running, queued, cores, waiting)
                for user, group, running, queued, cores, waiting in cursor
            }

    def _user(self, name: str, valid: timedelta) -> AnalysisUser | None:
        return AnalysisUser.objects.filter(user=name, updated__gt=self._now - valid).first()

    @cached_property
    def _site_classes(self) -> Mapping[str, SiteClass]:
        found = SiteClassRecord.objects.filter(updated__gt=self._now - classes.SITES_VALID)
        return {queue: SiteClass(value) for queue, value in found.values_list("queue", "site_class")}

    def _class_of(self, task: Task) -> TaskClass | None:
        found = TaskClassRecord.objects.filter(task_id=task.id, updated__gt=self._now - classes.TASKS_VALID).first()
        return TaskClass(found.task_class) if found is not None else None

    def _quotas(self, task: Task) -> tuple[Quota, ...]:
        """The global quota of the user; it counts as not to be checked where the size is not known, or too old."""
        limit = self._configuration.get("anal_jobbroker", "USER_DISK_QUOTA", vo=task.vo or "")
        if not limit:
            return ()
        row = self._user(task.user or "", QUOTA_VALID)
        if row is None or row.disk_gb is None:
            return (Quota(problem=f"the size of the datasets of {task.user} is not known yet"),)
        return (Quota(row.disk_gb, float(limit)),)

    def _share_of(self, task: Task) -> ShareState:
        name = task.gshare or ""
        if name != SHARE_WITH_CLASSES or not self._tree.is_leaf(name):
            return ShareState()
        of_share, of_branch = self._percents
        row = self._user(task.user or "", classes.USERS_VALID)
        return ShareState(of_share, of_branch, float(row.slots_hi) if row is not None else None)

    @cached_property
    def _tree(self) -> ShareTree:
        return installed_policy.share_tree()

    @cached_property
    def _percents(self) -> tuple[float, float]:
        """Usage of the share with classes in percent of its target, and that of its branch, corrected for idle ones."""
        with hot_cursor() as cursor:
            cursor.execute(_POWER)
            rows = list(cursor)
        usage = self._tree.usage({name: power for name, power, _ in rows}, {name: power for name, _, power in rows})
        top = SHARE_WITH_CLASSES
        while (above := self._tree.shares[top].parent) is not None:
            top = above
        if not usage[SHARE_WITH_CLASSES].executing:
            return 0.0, 0.0
        return 100 * usage[SHARE_WITH_CLASSES].ratio, 100 * self._tree.branches(usage)[top].equivalent

    def _ended(self, task: Task) -> dict[str, Ended]:
        hours = float(self._configuration.get("anal_jobbroker", "TW_DONE_JOB_STAT", vo=task.vo or ""))
        with hot_cursor() as cursor:
            cursor.execute(_ENDED, [SITE_ENDED, task.id, self._now - timedelta(hours=hours), task.id, ANEW])
            return {queue: Ended(*counts) for queue, *counts in cursor}


def who_of(task: Task) -> Who:
    return ("", task.working_group) if task.working_group else (task.user or "", "")
