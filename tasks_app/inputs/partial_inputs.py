"""Which tasks may have partial files, of which an output has some events only, and whose a retry processes again."""

from __future__ import annotations

from collections.abc import Iterable

from tasks_app.domain.states import FileStatus
from tasks_app.models import File, Task
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.params.splitrule import SplitRule


def has_partial(task: Task) -> bool:
    """Whether files of a task may become partial."""
    rule = SplitRule.parse(task.split_rule)
    return bool(task.event_service) and (rule.flag("AP") or rule.flag("FP"))


def is_tried_again(task: Task) -> bool:
    """Whether a retry processes what was given up of partial files. Not where ranges count over all files of a job: alone, a
    file would have other numbers."""
    rule = SplitRule.parse(task.split_rule)
    return has_partial(task) and (rule.flag("IF") or rule.get_int("NF") == 1)


def with_partial(tasks: Iterable[Task]) -> set[int]:
    """Those of these tasks that have partial files which a retry processes again. One query at most."""
    ids = [task.id for task in tasks if is_tried_again(task)]
    rows = File.objects.filter(task_id__in=ids, type__in=INPUT_TYPES, status=FileStatus.PARTIAL, keep_track=1)
    return set(rows.order_by().values_list("task_id", flat=True).distinct()) if ids else set()
