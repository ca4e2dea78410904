"""How many attempts files get that have none left, when their task is tried again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jedisite.vocabulary.words import plural
from tasks_app.models import Dataset, Task, TaskParams
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.params.splitrule import SplitRule

DEFAULT_ATTEMPTS = 3


def attempts_of(rule: SplitRule, attempts: Any, failures: Any) -> int:
    """How often a new file of a task is tried: `maxAttempt`, and no more often than it may fail (`maxFailure`)."""
    if rule.flag("DR"):
        return 1
    most = int(attempts or DEFAULT_ATTEMPTS)
    return min(most, int(failures)) if failures else most


def added(task_ids: Iterable[int]) -> dict[int, int]:
    """For each task as many as it gives a new file, see `attempts_of`. Two queries."""
    ids = list(task_ids)
    rules = dict(Task.objects.filter(pk__in=ids).values_list("id", "split_rule"))
    limits = TaskParams.objects.filter(pk__in=ids).values_list("pk", "params__maxAttempt", "params__maxFailure")
    given = {number: (most, failures) for number, most, failures in limits}
    return {
        number: attempts_of(SplitRule.parse(rule), *given.get(number, (None, None))) for number, rule in rules.items()
    }


def used_up_in(task_ids: Iterable[int]) -> set[int]:
    """Those of these tasks that have an input file with no attempt left. One query: such a file counts as failed."""
    spent = Dataset.objects.filter(task_id__in=list(task_ids), type__in=INPUT_TYPES, files_failed__gt=0)
    return set(spent.values_list("task_id", flat=True).distinct())


def none_used_up(task_id: int) -> str:
    return f"task {task_id} has no file that has used up its attempts: all that failed are tried again without a retry"


def added_to(task_id: int) -> int:
    return added([task_id])[task_id]


def more(numbers: Iterable[int]) -> str:
    """So many more attempts, of one task or of many: "2 more attempts", "1 to 5 more attempts"."""
    least, most = min(found := set(numbers)), max(found)
    return plural(most, "more attempt") if least == most else f"{least} to {most} more attempts"
