"""The post-processor: sees when a task has nothing left to do, and gives it its final status."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.db import connection, transaction
from django.db.models import Sum
from django.utils import timezone

from jedisite.agents.passes import owner
from jedisite.agents.registry import Pass, agent
from tasks_app.domain import refusal_codes
from tasks_app.domain.final import error_summary, final_verdict
from tasks_app.domain.states import DatasetStatus, TaskStatus
from tasks_app.failures.error_queries import errors_of
from tasks_app.generation import prepro
from tasks_app.lifecycle import claims, task_moves
from tasks_app.models import Dataset, Task
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.outcomes.books import books_of
from tasks_app.outcomes.children import settle_children
from tasks_app.outcomes.dataset_endings import end_datasets, must_pause
from tasks_app.outcomes.endings import end_jobs, open_jobs
from tasks_app.outcomes.output_check import Findings
from tasks_app.scouts import scouting

ME = "post_processor"
JOBS_END_WAIT = timedelta(seconds=5)
LIMIT = 100

# A task is complete when each master input is: all of its files finished or failed for good, and no more will come.
_COMPLETE = """
NOT EXISTS (SELECT 1 FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.masterid IS NULL
             AND d.type IN ('input', 'pseudo_input', 'pp_input') AND d.status NOT IN ('removed', 'failed', 'broken')
             AND (d.nfilestobeused > d.nfilesfinished + d.nfilesfailed OR d.state = 'mutable'
                  OR d.status IN ('defined', 'toupdate', 'pending')))
"""
# All that has come so far is done, and more may come: the feeder has it again.
_AWAITS_MORE = """
EXISTS (SELECT 1 FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.masterid IS NULL
           AND d.type = 'input' AND d.state = 'mutable' AND d.status = 'ready')
AND NOT EXISTS (SELECT 1 FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.masterid IS NULL
             AND d.type IN ('input', 'pseudo_input') AND d.status NOT IN ('removed', 'failed', 'broken')
             AND (d.nfilestobeused > d.nfilesfinished + d.nfilesfailed OR d.status IN ('defined', 'toupdate', 'pending')))
"""


# While scouts are out, only a part of the input is released; when that is done, the scouts are judged instead.
_NOT_SCOUTING = f"NOT {scouting.SHARE_IS_OUT} AND NOT (t.status = 'throttled' AND t.oldstatus = 'scouting')"


@agent("post_processor", every="3s", title="Gives tasks without work left their final status")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Judge scouts; move complete tasks to prepared, and prepared, broken or aborted ones to their final status."""
    now = now or timezone.now()
    scouts = claims.claim_tasks(
        owner(), [TaskStatus.SCOUTING], limit, condition=scouting.due(now), even_waiting=True, agent=ME
    )
    items = claims.for_each(scouts, partial(scouting.look_at_scouts, by=ME, now=now), by=ME)
    working = (TaskStatus.RUNNING, TaskStatus.READY, TaskStatus.THROTTLED)
    complete = claims.claim_tasks(owner(), working, limit, condition=f"{_COMPLETE} AND {_NOT_SCOUTING}", agent=ME)
    items += claims.for_each(complete, _prepare, by=ME) + prepro.conclude(limit, by=ME)
    awaiting = claims.claim_tasks(
        owner(),
        (TaskStatus.RUNNING, TaskStatus.READY),
        limit,
        condition=f"{_AWAITS_MORE} AND {_NOT_SCOUTING}",
        agent=ME,
    )
    items += claims.for_each(awaiting, _await_more, by=ME)
    back = claims.claim_tasks(
        owner(), [TaskStatus.READY], limit, condition=f"{_COMPLETE} AND {scouting.SHARE_IS_OUT}", agent=ME
    )
    items += claims.for_each(back, _go_on_scouting, by=ME)
    ending = (TaskStatus.PREPARED, TaskStatus.PASSED, TaskStatus.TOBROKEN, TaskStatus.TOABORT)
    claimed = claims.claim_tasks(owner(), ending, limit, agent=ME)
    items += claims.for_each(claimed, finish, by=ME)
    _book_progress()
    return Pass(items, more=len(claimed) == limit)


def _go_on_scouting(task_id: int, fence: int) -> None:
    """A command made the task ready while scouts were out; they have ended since."""
    task_moves.move_task(task_id, TaskStatus.SCOUTING, by=ME, reason="the scouts have ended", fence=fence)


def _prepare(task_id: int, fence: int) -> None:
    task_moves.move_task(
        task_id, TaskStatus.PREPARED, by=ME, reason="all input files are finished or failed for good", fence=fence
    )


@transaction.atomic
def _await_more(task_id: int, fence: int) -> None:
    reason = "all files that have come so far are processed; the input may still grow"
    task_moves.move_task(task_id, TaskStatus.DEFINED, by=ME, reason=reason, fence=fence)
    growing = Dataset.objects.filter(task_id=task_id, type="input", state="mutable", status=DatasetStatus.READY)
    growing.update(status=DatasetStatus.TOUPDATE)


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a task ends: status, reason, and what of it the task's page is to show besides its errors."""

    status: str
    reason: str
    remark: str = ""


@transaction.atomic
def finish(task_id: int, fence: int) -> None:
    """Give a task its final status, close its output datasets, and let its children know."""
    task = Task.objects.select_for_update().get(pk=task_id)
    if task.fence != fence:
        raise claims.LostClaimError(f"the claim on task {task_id} is gone")
    if open_jobs(task_id):
        # A task can break while jobs of it are open: they end first.
        end_jobs(task_id, by=ME, reason=f"the task is {task.status}")
        if open_jobs(task_id):
            claims.release_task(task_id, fence, wait=JOBS_END_WAIT)
            return
    ended = _verdict(task)
    if ended.status == TaskStatus.EXHAUSTED:
        _exhaust(task, ended)
        return
    now = timezone.now()
    found = end_datasets(task, ended.status, now)
    if must_pause(task, ended.status, found):
        _pause(task, ended, found)
        return
    task_moves.move_task(
        task_id,
        ended.status,
        by=ME,
        reason=ended.reason,
        end_time=now,
        error_dialog=_dialog(task, ended, found),
        old_status=None,
        progress=_progress(task_id),
    )
    settle_children(task_id, ended.status, by=ME)


def _exhaust(task: Task, ended: _Ended) -> None:
    """The goal was missed and the task asked to wait for somebody then. Its datasets stay open."""
    task_moves.move_task(
        task.id, TaskStatus.EXHAUSTED, by=ME, reason=ended.reason, error_dialog=_dialog(task, ended), old_status=None
    )
    settle_children(task.id, ended.status, by=ME)


def _pause(task: Task, ended: _Ended, found: Findings) -> None:
    """The outputs are not what the jobs have reported: somebody looks at them, and a resume ends the task."""
    reason = "its outputs are to be looked at: " + "; ".join(found.sentences())
    task_moves.move_task(
        task.id,
        TaskStatus.PAUSED,
        by=ME,
        reason=reason,
        end_time=timezone.now(),
        error_dialog=reason,
        old_status=ended.status,
        progress=_progress(task.id),
    )


def _dialog(task: Task, ended: _Ended, found: Findings | None = None) -> str | None:
    """The sentence that the page of an ended task shows."""
    if ended.status == TaskStatus.BROKEN:
        return task.error_dialog
    wrong = "; ".join(found.sentences()) if found and found.needs_people else ""
    parts = [part for part in (ended.remark, wrong, error_summary(errors_of(task.id), ended.status)) if part]
    return ". ".join(parts) or (task.error_dialog if ended.status != TaskStatus.DONE else None)


_SHOWN = (refusal_codes.TASK_GOAL_MISSED, refusal_codes.TASK_PARENT_INCOMPLETE, refusal_codes.TASK_PARENT_NOT_DONE)


def _verdict(task: Task) -> _Ended:
    if task.status == TaskStatus.TOBROKEN:
        return _Ended(TaskStatus.BROKEN, task.error_dialog or "")
    if task.status == TaskStatus.TOABORT:
        return _Ended(TaskStatus.ABORTED, task.error_dialog or "killed", task.error_dialog or "")
    verdict = final_verdict(books_of(task))
    remark = verdict.reason.detail if verdict.reason.code in _SHOWN else ""
    if (task.error_dialog or "").startswith(prepro.FAILED):
        remark = task.error_dialog or ""
    return _Ended(verdict.status, verdict.reason.detail, remark)


def _progress(task_id: int) -> int:
    sums = Dataset.objects.filter(task_id=task_id, type__in=INPUT_TYPES, master_id=None).aggregate(
        files=Sum("files_to_be_used"), done=Sum("files_finished")
    )
    return int(100 * (sums["done"] or 0) / sums["files"]) if sums["files"] else 0


def _book_progress() -> None:
    """Per cent done of the running tasks, written only where it has changed and the row is free."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH now AS (
                SELECT d.jeditaskid AS id, (100 * sum(d.nfilesfinished) / greatest(sum(d.nfilestobeused), 1))::int AS progress
                  FROM jedi_datasets d JOIN jedi_tasks t USING (jeditaskid)
                 WHERE t.status IN ('ready', 'running', 'scouting') AND d.masterid IS NULL AND d.type IN ('input', 'pseudo_input')
                 GROUP BY 1),
            free AS (
                SELECT t.jeditaskid, now.progress FROM jedi_tasks t JOIN now ON now.id = t.jeditaskid
                 WHERE t.progress IS DISTINCT FROM now.progress AND now.progress BETWEEN 0 AND 100
                   FOR UPDATE OF t SKIP LOCKED)
            UPDATE jedi_tasks t SET progress = free.progress FROM free WHERE t.jeditaskid = free.jeditaskid
            """
        )
