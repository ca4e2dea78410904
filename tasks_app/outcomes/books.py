"""What decides how a task ends, read from the database: the counts of its inputs, its goal and flags, its parent."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import QuerySet, Sum

from jedisite.database.sql import hot_cursor
from tasks_app.domain import short_jobs
from tasks_app.domain.final import PRODUCTION_LABELS, Books, Maker
from tasks_app.domain.states import DatasetStatus, TaskStatus
from tasks_app.inputs import file_groups, makers
from tasks_app.inputs.file_groups import has_whole_groups
from tasks_app.inputs.makers import reads_parent
from tasks_app.inputs.missing_files import missing_of, total, why_missing
from tasks_app.inputs.partial_inputs import has_partial
from tasks_app.inputs.removed_files import all_removed
from tasks_app.models import Dataset, Task, TaskParams, TaskStatusLog
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.outcomes import end_hooks
from tasks_app.params.splitrule import SplitRule


def is_production(task: Task) -> bool:
    """Whether the rules of production tasks hold for this one."""
    return task.task_type == "prod" or task.prod_source_label in PRODUCTION_LABELS


def books_of(task: Task) -> Books:
    """The books of a task, removed datasets left out.

    A task that was told to finish has its verdict relaxed: it is neither exhausted nor failed for its goal (lifecycle
    3.3: finish drops FG before it passes the task).
    """
    masters = Dataset.objects.filter(task=task, type__in=INPUT_TYPES, master_id=None).exclude(
        status=DatasetStatus.REMOVED
    )
    sums = masters.aggregate(
        files=Sum("files"),
        finished=Sum("files_finished"),
        events=Sum("events"),
        events_used=Sum("events_used"),
    )
    parent = _parent_status(task)
    growing = masters.filter(state="mutable", type="input").exists()
    missing = total(missing_of(masters).values())
    files, finished = (sums["files"] or 0) + missing.files, sums["finished"] or 0
    rule = SplitRule.parse(task.split_rule)
    passed = task.status == TaskStatus.PASSED
    return Books(
        files=files,
        finished=finished,
        parent=parent,
        mutable=growing,
        events=(sums["events"] or 0) + missing.events,
        events_used=sums["events_used"] or 0,
        goal=task.goal,
        fail_unreached=rule.flag("FG") and not passed,
        use_exhausted=rule.flag("UX") and is_production(task),
        passed=passed,
        allow_empty=_may_be_empty(rule),
        reads_parent=parent in (None, TaskStatus.DONE) or reads_parent(task),
        missing=why_missing(task.id, missing, whole_groups=has_whole_groups(rule)) if missing.files else "",
        removed="" if files else all_removed([task.id]).get(task.id, ""),
        given_up=_given_up(task.id) if has_partial(task) else 0,
        left_out=_left_out(task),
        maker=_maker(task, masters)
        if parent in (None, TaskStatus.DONE) and not growing and 0 < files == finished
        else None,
    )


def _given_up(task_id: int) -> int:
    """Events that were given up of files that were processed without them."""
    with hot_cursor() as cursor:
        return sum(end_hooks.given_up(cursor, task_id).values())


def _left_out(task: Task) -> int:
    """Files that this attempt of the task has left out, by its log."""
    notes = TaskStatusLog.objects.filter(task_id=task.id, attempt=task.attempt, reason__contains=short_jobs.MARK)
    return short_jobs.counted(notes.values_list("reason", flat=True))


def with_no_result(tasks: Sequence[Task]) -> list[Task]:
    """Those of these tasks that would end failed now, since nothing was processed of any input. One query."""
    ids = [task.id for task in tasks]
    masters = Dataset.objects.filter(task_id__in=ids, type__in=INPUT_TYPES, master_id=None).exclude(
        status=DatasetStatus.REMOVED
    )
    sums = masters.values_list("task_id").annotate(all=Sum("files"), done=Sum("files_finished"))
    counts = {task_id: (files, finished) for task_id, files, finished in sums}
    found = []
    for task in tasks:
        files, finished = counts.get(task.id, (0, 0))
        rule = SplitRule.parse(task.split_rule)
        if not finished and (files or not _may_be_empty(rule)):
            found.append(task)
    return found


def _may_be_empty(rule: SplitRule) -> bool:
    """Whether a task may be done without a file. Without what preprocessing was to find, nobody knows whether there is one."""
    return rule.flag("AE") and rule.get_int("UP") != 1


def _maker(task: Task, masters: QuerySet[Dataset]) -> Maker | None:
    """The task that made an input of this one and left some of it unmade; None when all that made one are done.

    Of a task whose groups name their files: one that left such a file unmade.
    """
    short = makers.not_done(masters.filter(type="input").values_list("name", flat=True))
    if short is not None and "GB" in SplitRule.parse(task.split_rule):
        raw = TaskParams.objects.filter(pk=task.id).values_list("params", flat=True).first() or {}
        if raw.get("loadXML"):
            lacking = file_groups.lacking_files(raw, task.id)
            found = makers.of_files(lacking)
            short = makers.not_done_of(found) if found or not lacking else short
    if short is None:
        return None
    return Maker(short.how, later=short.ended is not None and short.ended > task.creation_date)


def _parent_status(task: Task) -> str | None:
    """Status of the parent task; None without one, or when it is gone."""
    if not task.parent_id or task.parent_id == task.id:
        return None
    return Task.objects.filter(pk=task.parent_id).values_list("status", flat=True).first()
