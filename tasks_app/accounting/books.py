"""What decides how a task ends, read from the database: the counts of its inputs, its goal and flags, its parent."""

from __future__ import annotations

from django.db.models import Sum

from tasks_app.accounting.final import Books
from tasks_app.models import Dataset, Task
from tasks_app.models.dataset import INPUT_TYPES, MADE_TYPES
from tasks_app.params.splitrule import SplitRule
from tasks_app.states import DatasetStatus, TaskStatus

PRODUCTION_LABELS = frozenset({"managed", "test"})


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
    rule = SplitRule.parse(task.split_rule)
    passed = task.status == TaskStatus.PASSED
    return Books(
        files=sums["files"] or 0,
        finished=sums["finished"] or 0,
        parent=parent,
        mutable=masters.filter(state="mutable", type="input").exists(),
        events=sums["events"] or 0,
        events_used=sums["events_used"] or 0,
        goal=task.goal,
        fail_unreached=rule.flag("FG") and not passed,
        use_exhausted=rule.flag("UX") and is_production(task),
        passed=passed,
        # Without what preprocessing was to find, nobody knows whether the input is empty.
        allow_empty=rule.flag("AE") and rule.get_int("UP") != 1,
        reads_parent=parent in (None, TaskStatus.DONE) or reads_parent(task),
    )


def reads_parent(task: Task) -> bool:
    """Whether the parent task makes an input of this one: a dataset, or what lies in the container that is read."""
    made = Dataset.objects.filter(task_id=task.parent_id, type__in=MADE_TYPES).values_list("name", "container_name")
    read = Dataset.objects.filter(task=task, type="input").values_list("name", "container_name")
    ours, theirs = ({name.rstrip("/") for row in rows for name in row if name} for rows in (read, made))
    return not ours.isdisjoint(theirs)


def _parent_status(task: Task) -> str | None:
    """Status of the parent task; None without one, or when it is gone."""
    if not task.parent_id or task.parent_id == task.id:
        return None
    return Task.objects.filter(pk=task.parent_id).values_list("status", flat=True).first()
