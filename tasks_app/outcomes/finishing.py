"""Tasks with nothing left to do: prepared, back to the feeder or to scouting; and the final status of those that end."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from django.db import transaction
from django.utils import timezone

from jedisite.database.sql import hot_cursor
from tasks_app.domain.final import error_summary
from tasks_app.domain.states import DatasetStatus, TaskStatus
from tasks_app.failures.error_queries import errors_of, failed_merges
from tasks_app.lifecycle import claims, dataset_moves, task_moves
from tasks_app.models import Dataset, Task
from tasks_app.outcomes import partial_files
from tasks_app.outcomes.books import books_of
from tasks_app.outcomes.children import settle_children
from tasks_app.outcomes.dataset_endings import end_datasets, must_pause
from tasks_app.outcomes.endings import end_jobs, open_jobs
from tasks_app.outcomes.output_check import Findings
from tasks_app.outcomes.rules.task_endings import Ending, ending_of
from tasks_app.outcomes.task_progress import failure_rate_of, progress_of

ME = "post_processor"
JOBS_END_WAIT = timedelta(seconds=5)


def resume_scouting(task_id: int, fence: int) -> None:
    """A command made the task ready while scouts were out; they have ended since."""
    task_moves.move_task(task_id, TaskStatus.SCOUTING, by=ME, reason="the scouts have ended", fence=fence)


def prepare(task_id: int, fence: int) -> None:
    """Every input file of the task is finished or failed for good: it gets its final status next."""
    task_moves.move_task(
        task_id, TaskStatus.PREPARED, by=ME, reason="all input files are finished or failed permanently", fence=fence
    )


@transaction.atomic
def await_more(task_id: int, fence: int) -> None:
    """Give a task back to the feeder, since its input may still grow."""
    reason = "all files so far are processed; the input may still grow"
    task_moves.move_task(task_id, TaskStatus.DEFINED, by=ME, reason=reason, fence=fence)
    growing = Dataset.objects.filter(task_id=task_id, type="input", state="mutable", status=DatasetStatus.READY)
    dataset_moves.move(growing, DatasetStatus.TOUPDATE)


@transaction.atomic
def finish(task_id: int, fence: int) -> None:
    """Give a task its final status, close its output datasets, and wake its child tasks."""
    task = Task.objects.select_for_update().get(pk=task_id)
    if task.fence != fence:
        raise claims.LostClaimError(f"the claim on task {task_id} is gone")
    if open_jobs(task_id):
        # A task can break while jobs of it are open: they end first.
        end_jobs(task_id, by=ME, reason=f"the task is {task.status}")
        if open_jobs(task_id):
            claims.release_task(task_id, fence, wait=JOBS_END_WAIT)
            return
    with hot_cursor() as cursor:
        partial_files.conclude(cursor, task)
    ended = ending_of(task.status, task.error_dialog or "", partial(books_of, task))
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
        progress=progress_of(task_id),
        failure_rate=failure_rate_of(task_id),
    )
    settle_children(task_id, ended.status, by=ME)


def _exhaust(task: Task, ended: Ending) -> None:
    """The goal was missed, and the task asked to become exhausted in that case. Its datasets stay open."""
    task_moves.move_task(
        task.id, TaskStatus.EXHAUSTED, by=ME, reason=ended.reason, error_dialog=_dialog(task, ended), old_status=None
    )
    settle_children(task.id, ended.status, by=ME)


def _pause(task: Task, ended: Ending, found: Findings) -> None:
    """The outputs differ from the reports of the jobs: the task is paused for a check, and a resume ends it."""
    reason = "its outputs need to be checked: " + "; ".join(found.sentences())
    task_moves.move_task(
        task.id,
        TaskStatus.PAUSED,
        by=ME,
        reason=reason,
        end_time=timezone.now(),
        error_dialog=reason,
        old_status=ended.status,
        progress=progress_of(task.id),
        failure_rate=failure_rate_of(task.id),
    )


def _dialog(task: Task, ended: Ending, found: Findings | None = None) -> str | None:
    wrong = "; ".join(found.sentences()) if found and found.needs_people else ""
    return ended.dialog(
        task.error_dialog, wrong, error_summary(errors_of(task.id), ended.status, failed_merges(task.id))
    )
