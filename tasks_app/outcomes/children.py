"""What the end of a task means for the tasks that read what it makes."""

from __future__ import annotations

from collections.abc import Collection

from django.db import connection, transaction

from jedisite.agents.passes import kick
from tasks_app.domain.final import final_verdict, without_parent
from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.inputs.makers import reads_parent
from tasks_app.inputs.readers import wake_readers_of_tasks
from tasks_app.lifecycle import task_moves
from tasks_app.models import Task
from tasks_app.outcomes.books import books_of
from tasks_app.outcomes.dataset_endings import call_done

REJECTS_CHANGES = TASK_FINAL | {
    TaskStatus.PREPARED,
    TaskStatus.TOBROKEN,
    TaskStatus.TOABORT,
    TaskStatus.ABORTING,
    TaskStatus.PASSED,
}
"""A task in one of these states is ending or has ended: what becomes of its parent changes nothing (lifecycle 3.2)."""


def settle_children(task_id: int, status: str, *, by: str) -> int:
    """In the transaction that ends a task: its descendants end with it, or go on. Returns how many are aborted.

    Without the outputs of a task that is failed, broken or aborted, nothing below it can be complete. Otherwise the
    children that wait, or that read a growing dataset, are looked at now. So are all other tasks that read what it makes.

    Tasks are locked before datasets, as everybody does who locks both, and all datasets by one statement.
    """
    aborted, completed = 0, list[int]()
    if status in (TaskStatus.FAILED, TaskStatus.BROKEN, TaskStatus.ABORTED):
        aborted = abort_descendants(task_id, status, by=by)
    else:
        wake_children([task_id])
    if status == TaskStatus.DONE:
        completed = complete_children(task_id, by=by)
    call_done(completed)
    wake_readers_of_tasks([task_id, *completed])
    return aborted


@transaction.atomic
def abort_descendants(task_id: int, status: str, *, by: str) -> int:
    """Send every descendant that can still change to its end. Returns how many.

    Below a task that has ended by itself nothing is touched: what it made is there. Rows are locked from the parent
    down, and in the order of ids on each level, as everybody does who locks several tasks.
    """
    aborted, parents = 0, [task_id]
    while parents:
        living = (
            Task.objects.select_for_update()
            .filter(parent_id__in=parents)
            .exclude(pk__in=parents)
            .exclude(status__in=REJECTS_CHANGES)
            .order_by("id")
        )
        parents = []
        for child in living:
            reason = f"the parent task {child.parent_id} is {status if child.parent_id == task_id else 'aborted'}"
            task_moves.move_task(child.id, TaskStatus.TOABORT, by=by, reason=reason, error_dialog=reason)
            parents.append(child.id)
        aborted += len(parents)
    return aborted


@transaction.atomic
def complete_children(task_id: int, *, by: str) -> list[int]:
    """Children that are finished only since this task was not done, and read nothing of it, are done by now, and so on below.

    Those that are about to end are waited for: they end by what this task is then. Returns the tasks that are done by now;
    their datasets are left to the caller.
    """
    ending = (TaskStatus.FINISHED, TaskStatus.PREPARED, TaskStatus.PASSED)
    completed, parents = list[int](), [task_id]
    while parents:
        below = (
            Task.objects.select_for_update().filter(parent_id__in=parents, status__in=ending).exclude(pk__in=parents)
        )
        parents = []
        for child in below.order_by("id"):
            if child.status != TaskStatus.FINISHED or reads_parent(child):
                continue
            if final_verdict(books_of(child)).status == TaskStatus.DONE:
                reason = f"its parent task {child.parent_id} is now done, and all of its files were processed"
                left = without_parent(child.error_dialog)
                task_moves.move_task(child.id, TaskStatus.DONE, by=by, reason=reason, error_dialog=left)
                parents.append(child.id)
        if parents:
            wake_children(parents)
        completed += parents
    return completed


def wake_children(task_ids: Collection[int]) -> None:
    """Children that wait for these tasks are looked at now; their inputs are woken by `wake_readers_of_tasks`.

    One that an agent is about to set aside is waited for: see `moves.set_aside`.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """UPDATE jedi_tasks SET next_check_at = clock_timestamp() WHERE jeditaskid IN (
                   SELECT jeditaskid FROM jedi_tasks WHERE parent_tid = ANY(%s) AND jeditaskid <> parent_tid
                      AND status IN ('pending', 'registered', 'staged', 'rerefine', 'defined')
                    ORDER BY jeditaskid FOR UPDATE)""",
            [list(task_ids)],
        )
    kick("pending", "refiner", "feeder")
