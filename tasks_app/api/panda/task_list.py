"""Tasks as PanDA's clients list them: filters, numbers of input files, and the state that pbook groups by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import Q, Sum

from jedisite.identity.people import accounts_named
from tasks_app.api.panda.panda_names import TASK, rows_told
from tasks_app.api.panda.wire import BadCallError
from tasks_app.domain.super_status import STATES_OF
from tasks_app.models import Dataset
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.models.task import TaskQuerySet

LONGEST_VALUE = 1000
MOST_TASKS = 5000
"""Tasks that one call lists."""
MOST_ALTERNATIVES = 50

_NUMBERS = ("jediTaskID", "reqID", "parent_tid", "coreCount", "taskPriority", "currentPriority", "eventService")
_TEXTS = (
    "status",
    "taskName",
    "userName",
    "prodSourceLabel",
    "workingGroup",
    "vo",
    "taskType",
    "processingType",
    "cloud",
    "site",
    "nucleus",
    "campaign",
    "gshare",
    "resource_type",
    "countryGroup",
    "requestType",
    "framework",
    "container_name",
)
FILTERS = frozenset({*_NUMBERS, *_TEXTS, "superStatus"})


def filtered(given: Mapping[str, Any]) -> Q:
    """Tasks by attributes, each a value, or several with `|` between. Raises BadCallError, which names the attribute.

    In texts `*` (also `.*`) stands for anything. A userName is an account's name or a full name, in any case of letters.
    """
    found = Q()
    for name, value in given.items():
        if name not in FILTERS:
            raise BadCallError(
                f"filters: tasks cannot be filtered by {str(name)[:50]!r}; known: {', '.join(sorted(FILTERS))}"
            )
        if not isinstance(value, str | int) or isinstance(value, bool) or len(str(value)) > LONGEST_VALUE:
            raise BadCallError(f"filters: {name} must be a text of at most {LONGEST_VALUE} characters")
        values = str(value).split("|")
        if len(values) > MOST_ALTERNATIVES:
            raise BadCallError(f"filters: {name} has {len(values)} values, the limit is {MOST_ALTERNATIVES}")
        found &= _one_of(name, values)
    return found


def _one_of(name: str, values: list[str]) -> Q:
    if name == "superStatus":
        return Q(status__in=[status for value in values for status in STATES_OF.get(value, ())])
    if name in _NUMBERS:
        numbers = [int(value) for value in values if value.isascii() and value.isdecimal() and len(value) < 19]
        if len(numbers) < len(values):
            raise BadCallError(f"filters: {name} must be a number, not {'|'.join(values)[:50]!r}")
        return Q(**{f"{TASK[name]}__in": numbers})
    if name == "userName":
        values = [*values, *accounts_named(value for value in values if "*" not in value)]
    exact = [value for value in values if "*" not in value]
    found = Q(**{f"{TASK[name]}__in": exact})
    for value in set(values) - set(exact):
        found |= Q(**{f"{TASK[name]}__wild": value.replace(".*", "*")})
    return found


def told_tasks(tasks: TaskQuerySet) -> list[dict[str, Any]]:
    """Tasks as PanDA's clients read them, with the files of their inputs. Two queries for any number of tasks."""
    found = list(rows_told(tasks, TASK))
    files = _files_of(task["jediTaskID"] for task in found)
    for task in found:
        task.update(files.get(task["jediTaskID"], _counts(0, 0, 0, 0)))
    return found


def _files_of(task_ids: Iterable[int]) -> dict[int, dict[str, int]]:
    counted = (
        Dataset.objects.filter(task_id__in=list(task_ids), type__in=INPUT_TYPES, master_id__isnull=True)
        .values_list("task_id")
        .annotate(Sum("files"), Sum("files_finished"), Sum("files_failed"), Sum("files_missing"))
        .order_by()
    )
    return {task_id: _counts(*map(int, counts)) for task_id, *counts in counted}


def _counts(files: int, finished: int, failed: int, missing: int) -> dict[str, int]:
    """Numbers of files, and shares in per cent, rounded down: 100 means all."""
    return {
        "nFiles": files,
        "nFilesFinished": finished,
        "nFilesFailed": failed,
        "nFilesMissing": missing,
        "pctFinished": finished * 100 // files if files else 0,
        "pctFailed": failed * 100 // files if files else 0,
    }
