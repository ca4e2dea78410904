"""Watchdog: datasets that tasks made and that need not be kept any longer are deleted with their files."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from jedisite.agents.registry import Pass, agent
from tasks_app.ddm import data_management
from tasks_app.ddm.base import SITE
from tasks_app.domain.states import TASK_FINAL
from tasks_app.models import CatalogueDataset, Dataset

LIMIT = 20


@agent("expired_datasets", every="10m", title="Deletes outputs whose lifetime is over")
@transaction.atomic
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Delete closed datasets whose time is over, but for those that a task still reads. What users registered stays."""
    readers = Dataset.objects.filter(name=OuterRef("name"), type="input").exclude(task__status__in=list(TASK_FINAL))
    expired = CatalogueDataset.objects.filter(
        ~Exists(readers), expires__lt=now or timezone.now(), open=False, made_by_task__isnull=False
    )
    rows = expired.order_by("id").select_for_update(skip_locked=True)[:limit]
    names = [row.name for row in rows]
    data_management().delete(names, by=SITE)
    return Pass(len(names), ", ".join(names)[:500], more=len(names) == limit)
