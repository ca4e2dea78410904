"""Files that have no attempt left, and how many more they get when their task is tried again."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from django.db import connection

from jedisite.vocabulary.words import plural
from tasks_app.lifecycle.conditions import not_dropped
from tasks_app.models import Dataset, Task, TaskParams
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.params.splitrule import SplitRule

DEFAULT_ATTEMPTS = 3
NONE_LEFT = "(c.attemptnr >= c.maxattempt OR c.failedattempt >= c.maxfailure)"
OF_GROUPS = f"""(%(groups)s::bigint[] IS NULL OR c.boundaryid = ANY(%(groups)s::bigint[]))
       AND {not_dropped("c")}"""
_OF_TASKS = f"""SELECT DISTINCT c.jeditaskid FROM jedi_dataset_contents c
    WHERE c.jeditaskid = ANY(%(tasks)s::bigint[]) AND c.type IN ('input', 'pseudo_input', 'pp_input') AND c.keeptrack = 1
      AND {OF_GROUPS}"""  # noqa: S608 - a condition of ours
_USED_UP = f"{_OF_TASKS} AND c.status = 'ready' AND {NONE_LEFT}"
_LEFT = f"""{_OF_TASKS} AND c.status IN ('ready', 'picked', 'running', 'partial')
    UNION SELECT d.jeditaskid FROM jedi_datasets d
           WHERE d.jeditaskid = ANY(%(tasks)s::bigint[]) AND d.masterid IS NULL AND d.status <> 'removed'
             AND d.type IN ('input', 'pseudo_input', 'pp_input') AND (d.state = 'mutable' OR d.nfiles > d.nfilesused)"""  # noqa: S608


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


def used_up_in(task_ids: Iterable[int], groups: Collection[int] | None = None) -> set[int]:
    """Those of these tasks that have an input file with no attempt left, among the files of these `groups` only where some are
    given. One query: such a file counts as failed."""
    if groups is not None:
        return _found(_USED_UP, task_ids, groups)
    spent = Dataset.objects.filter(task_id__in=list(task_ids), type__in=INPUT_TYPES, files_failed__gt=0)
    return set(spent.values_list("task_id", flat=True).distinct())


def left_in(task_ids: Iterable[int], groups: Collection[int]) -> set[int]:
    """Those of these tasks, which rest, that a retry of some groups of files gives something to do: a file of them, or of the
    whole task one that no job had, or that may still come. One query."""
    return _found(_LEFT, task_ids, groups)


def _found(statement: str, task_ids: Iterable[int], groups: Collection[int]) -> set[int]:
    with connection.cursor() as cursor:
        cursor.execute(statement, {"tasks": list(task_ids), "groups": sorted(groups)})
        return {row[0] for row in cursor.fetchall()}


def none_used_up(task_id: int, groups: Collection[int] | None = None) -> str:
    if groups is not None:
        return f"task {task_id} has no file of the subjobs named that has used up its attempts"
    return f"task {task_id} has no file that has used up its attempts: all that failed are tried again without a retry"


def none_of_these(task_id: int) -> str:
    return f"task {task_id} has no file to try again: none of the subjobs named has failed or was killed"


def added_to(task_id: int) -> int:
    return added([task_id])[task_id]


def more(numbers: Iterable[int]) -> str:
    """So many more attempts, of one task or of many: "2 more attempts", "1 to 5 more attempts"."""
    least, most = min(found := set(numbers)), max(found)
    return plural(most, "more attempt") if least == most else f"{least} to {most} more attempts"
