"""Tasks that are nearly complete: which they are, and priority 900 and the share Express for them and their jobs."""

from __future__ import annotations

from dataclasses import replace

from django.db import connection, transaction

from brokerage_app.grid import installed_policy
from tasks_app.configured import site_limits
from tasks_app.domain.states import JOB_OPEN, TASK_FINAL
from tasks_app.domain.throttling import BOOST_PRIORITY, BOOST_SHARE, BoostLimits, BoostView, boost
from tasks_app.domain.users_work import is_users, users_tasks
from tasks_app.lifecycle import claims, task_moves
from tasks_app.models import Task

ME = "boost"
_OPEN = ", ".join(f"'{status}'" for status in sorted(JOB_OPEN))
_ENDS = ", ".join(f"'{status}'" for status in sorted(TASK_FINAL))
_MASTERS = """FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.masterid IS NULL
    AND d.type IN ('input', 'pseudo_input') AND d.status NOT IN ('removed', 'broken')"""
_CANDIDATE = f"""(t.currentpriority < {BOOST_PRIORITY} OR ({{with_share}} AND t.gshare IS DISTINCT FROM '{BOOST_SHARE}'
                    AND NOT {users_tasks("t")}))
    AND (SELECT sum(d.nfilesfinished + d.nfilesfailed) * 100 >= {{percent}} * sum(d.nfiles) AND sum(d.nfiles) > 0
                AND bool_and(d.state IS DISTINCT FROM 'mutable') {_MASTERS})
    AND NOT EXISTS (SELECT 1 FROM jedi_tasks p WHERE p.jeditaskid = t.parent_tid AND p.jeditaskid <> t.jeditaskid
                       AND p.status NOT IN ({_ENDS}))"""  # noqa: S608 - constants
# Jobs to do: those that are open, and those that the files make that are in none, at the present number of files a job.
_VIEW = f"""
SELECT f.files, f.done, j.open + ceil(f.unused * j.jobs / greatest(f.used, 1)::numeric)::bigint
  FROM jedi_tasks t
 CROSS JOIN LATERAL (SELECT coalesce(sum(d.nfiles), 0) AS files, coalesce(sum(d.nfilesfinished + d.nfilesfailed), 0) AS done,
                            coalesce(sum(d.nfilestobeused - d.nfilesused), 0) AS unused,
                            coalesce(sum(d.nfilesused), 0) AS used {_MASTERS}) f
 CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE j.jobstatus IN ({_OPEN})) AS open, count(*) AS jobs
                       FROM jobs j WHERE j.jeditaskid = t.jeditaskid) j
 WHERE t.jeditaskid = %s
"""  # noqa: S608 - constants


def limits_in_force() -> BoostLimits:
    """The limits that are configured; without a share where the installation has none for hurried tasks."""
    given = BoostLimits(site_limits.number("BOOST_DONE_PERCENT") or 0, int(site_limits.number("BOOST_JOBS_BELOW") or 0))
    return given if _has_express() else replace(given, share=None)


def may_be_hurried(given: BoostLimits) -> str:
    """The condition in SQL on tasks that are worth a look."""
    return _CANDIDATE.format(percent=float(given.done_percent), with_share=given.share is not None)


def _has_express() -> bool:
    """Where shares are configured, the share for hurried tasks has to be one of those that tasks can have."""
    tree = installed_policy.share_tree()
    return not tree or tree.is_leaf(BOOST_SHARE)


@transaction.atomic
def hurry(task_id: int, fence: int, *, given: BoostLimits) -> bool:
    task = Task.objects.get(pk=task_id)
    if is_users(task.prod_source_label, task.task_type):
        given = replace(given, share=None)  # Express is a share of production
    with connection.cursor() as cursor:
        cursor.execute(_VIEW, [task_id])
        files, done, to_do = map(int, cursor.fetchone())
    view = BoostView(task.status, files, done, to_do, task.current_priority or 0, task.gshare)
    step = boost(view, given)
    if step is None:
        claims.release_task(task_id, fence)
        return False
    task_moves.note_task(
        task_id, fence, by=ME, reason=step.reason.detail, current_priority=step.priority, gshare=step.share
    )
    hurry_jobs(task_id, step.priority or 0, step.share)
    return True


def hurry_jobs(task_id: int, priority: int, share: str | None = None) -> None:
    """Jobs that are queued or at work follow their task; scouts and others with a higher priority keep theirs."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""WITH locked AS (SELECT pandaid FROM jobs WHERE jeditaskid = %s AND jobstatus IN ({_OPEN})
                                 ORDER BY pandaid FOR UPDATE)
                UPDATE jobs j SET currentpriority = greatest(j.currentpriority, %s), gshare = coalesce(%s, j.gshare)
                  FROM locked WHERE j.pandaid = locked.pandaid""",  # noqa: S608 - constants
            [task_id, priority, share],
        )
