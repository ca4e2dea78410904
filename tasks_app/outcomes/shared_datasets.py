"""Datasets to which several tasks write: whoever ends first leaves them to the others."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Q

from tasks_app.domain.states import TASK_FINAL
from tasks_app.models import Dataset
from tasks_app.models.dataset import MADE_TYPES


def at_work(task_id: int, names: Collection[str]) -> set[str]:
    """Those of these datasets to which another task that has not ended writes."""
    return _of_others(task_id, names, ~Q(task__status__in=list(TASK_FINAL)))


def shared_with_others(task_id: int, names: Collection[str]) -> set[str]:
    """Those of these datasets to which another task writes, or has written."""
    return _of_others(task_id, names, ~Q(task__status__in=list(TASK_FINAL)) | Q(files_finished__gt=0))


def _of_others(task_id: int, names: Collection[str], which: Q) -> set[str]:
    others = Dataset.objects.filter(which, name__in=list(names), type__in=MADE_TYPES).exclude(task_id=task_id)
    return set(others.values_list("name", flat=True))
