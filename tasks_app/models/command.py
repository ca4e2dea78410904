"""Commands that users give to tasks. Task commando obeys them."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from tasks_app.domain.task_commands import TaskCommand
from tasks_app.models.fields import moment
from tasks_app.models.task import Task

FOLLOWS = "follows"
"""In the parameters of a command that nobody gave: the parent task which runs again."""


class CommandQuerySet(models.QuerySet["Command"]):
    def open(self) -> CommandQuerySet:
        """Commands that are not obeyed yet, in the order in which they were given: their tasks are to be amended."""
        return self.filter(status__in=["waiting", "working"]).order_by("id")

    def waiting_of(self, task_ids: Iterable[int]) -> dict[int, tuple[str, ...]]:
        """For each of these tasks that has any, the commands that it was given and that wait, in their order."""
        found: dict[int, tuple[str, ...]] = {}
        given = self.filter(status="waiting", task_id__in=list(task_ids)).exclude(parameters__has_key=FOLLOWS)
        for task_id, name in given.order_by("id").values_list("task_id", "name"):
            found[task_id] = (*found.get(task_id, ()), name)
        return found


class Command(models.Model):
    task = models.ForeignKey(Task, models.CASCADE, db_column="comm_task", related_name="commands")
    name = models.CharField(max_length=32, db_column="comm_cmd", choices=[(c.value, c.value) for c in TaskCommand])
    owner = models.CharField(max_length=128, db_column="comm_owner")
    created = models.DateTimeField(db_column="comm_ts", db_default=Now())
    comment = models.TextField(blank=True, db_column="comm_comment", db_default="")
    parameters = models.JSONField(null=True, blank=True, db_column="comm_parameters")
    status = models.CharField(
        max_length=16,
        db_column="comm_status",
        db_default="waiting",
        choices=[(s, s) for s in ("waiting", "working", "done", "refused")],
    )
    answer = models.TextField(blank=True, db_column="comm_answer", db_default="")
    ended = moment("comm_ended")

    objects = CommandQuerySet.as_manager()

    class Meta:
        db_table = "task_commands"
        indexes = [
            models.Index(fields=["id"], condition=Q(status__in=["waiting", "working"]), name="task_commands_open"),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.task_id}"

    def end(self, status: str, answer: str) -> None:
        """Whoever has obeyed or refused it says so."""
        self.status, self.answer, self.ended = status, answer, timezone.now()
        self.save(update_fields=["status", "answer", "ended"])

    @property
    def is_waiting(self) -> bool:
        """Whether somebody gave it and it waits: it is one of `waiting_of`."""
        return self.status == "waiting" and FOLLOWS not in (self.parameters or {})
