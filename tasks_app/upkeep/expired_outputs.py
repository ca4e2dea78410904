"""Datasets that tasks made and whose lifetime is over."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef

from tasks_app.ddm import data_management
from tasks_app.ddm.base import SITE
from tasks_app.domain.states import TASK_FINAL
from tasks_app.models import CatalogueDataset, Dataset


@transaction.atomic
def delete_expired(now: datetime, limit: int) -> list[str]:
    """Delete closed datasets with their files, but for those that a task still reads. Returns their names."""
    readers = Dataset.objects.filter(name=OuterRef("name"), type="input").exclude(task__status__in=list(TASK_FINAL))
    expired = CatalogueDataset.objects.filter(~Exists(readers), expires__lt=now, open=False, made_by_task__isnull=False)
    names = [row.name for row in expired.order_by("id").select_for_update(skip_locked=True)[:limit]]
    data_management().delete(names, by=SITE)
    return names
