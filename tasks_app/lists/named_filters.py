"""Filters of tasks, jobs and the like by queue, work queue and user, names of the past included."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from brokerage_app.models import Queue, WorkQueue
from jedisite.identity import user_names
from jedisite.web.filters_by_name import KnownFilter
from tasks_app.models import Job, JobArchive, Task
from tasks_app.models.job import FINAL_VALUES, OPEN_VALUES


def queue_filter(column: str | None = None, **more: Any) -> KnownFilter:
    """Rows of a queue that there is, or of which there is a job, be it an archived one."""
    return KnownFilter(kind="queue", is_known=_is_queue, names=_queues, field_name=column, max_length=128, **more)


def user_filter(column: str = "user", label: str = "User") -> KnownFilter:
    """Rows of somebody who has an account, or a task."""
    names = user_names.active_users
    return KnownFilter(kind="user", is_known=_is_user, names=names, field_name=column, max_length=128, label=label)


class WorkQueueFilter(KnownFilter):
    """Rows of a work queue, by its name or its number."""

    def __init__(self) -> None:
        super().__init__(
            kind="work queue",
            is_known=_is_work_queue,
            names=_work_queues,
            field_name="work_queue_id",
            max_length=32,
            label="Work queue",
        )

    def filter(self, qs: QuerySet[Any], value: Any) -> QuerySet[Any]:
        if not value:
            return qs
        if value.isascii() and value.isdecimal():
            return qs.filter(work_queue_id=int(value)) if int(value) < 2**31 else qs.none()
        return qs.filter(work_queue_id__in=WorkQueue.objects.filter(name=value).values("id"))


def at_place(**place: str) -> Q:
    """Jobs of a queue or node. Of all states, named as two sets: ended jobs have indexes of their own, open ones are few."""
    return (Q(status__in=FINAL_VALUES) | Q(status__in=OPEN_VALUES)) & Q(**place)


def _is_queue(name: str) -> bool:
    jobs = (Job.objects.filter(at_place(site=name)), JobArchive.objects.filter(site=name))
    return Queue.objects.filter(name=name).exists() or any(there.exists() for there in jobs)


def _queues() -> Iterable[str]:
    return Queue.objects.values_list("name", flat=True)


def _is_user(name: str) -> bool:
    return User.objects.filter(username=name).exists() or Task.objects.filter(user=name).exists()


def _is_work_queue(name: str) -> bool:
    number = int(name) if name.isascii() and name.isdecimal() and int(name) < 2**31 else None
    return WorkQueue.objects.filter(Q(name=name) | Q(pk=number)).exists()


def _work_queues() -> Iterable[str]:
    return WorkQueue.objects.values_list("name", flat=True)
