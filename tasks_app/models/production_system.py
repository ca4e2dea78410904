"""The twin of DEFT's two tables, in which production systems write tasks and commands, and read what became of them.

Roles of the database see and write rows of their own only: policies of the tables, see the migration that made them.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tasks_app.models.fields import big, moment, text


class ProductionTask(models.Model):
    """A task of a production system. The site imports a row that is waiting, once, and writes its state back."""

    id = models.BigIntegerField(
        primary_key=True, db_column="taskid", help_text="from jedi_tasks_id_seq; the task has the same"
    )
    parent_id = big("parent_tid")
    status = models.CharField(max_length=12, db_default="waiting", help_text="waiting, then the state of the task")
    total_done_jobs = big("total_done_jobs", help_text="finished jobs of a task that has ended")
    submit_time = models.DateTimeField(db_default=Now())
    start_time = moment("start_time")
    changed = moment("timestamp", help_text="when the site wrote its state")
    vo = text("vo", 32)
    prod_source_label = text("prodsourcelabel", 20)
    name = text("taskname", 256)
    user = text("username", 128)
    priority = big("priority")
    current_priority = big("current_priority")
    params = models.TextField(db_column="jedi_task_parameters", help_text="task parameters as JSON")
    error = models.TextField(blank=True, db_default="", help_text="why it was refused, or waits")
    db_role = models.CharField(max_length=63, help_text="role of the database that wrote it, and account at this site")
    imported = moment("imported", help_text="when it became a task")

    class Meta:
        db_table = "t_task"
        indexes = [models.Index(fields=["db_role", "id"], condition=Q(status="waiting"), name="t_task_waiting")]

    def __str__(self) -> str:
        return f"{self.id} {self.name or ''}"


class ProductionCommand(models.Model):
    """A command of a production system to a task. The site gives it on once, and writes the answer back."""

    id = models.BigAutoField(primary_key=True)
    task_id = models.BigIntegerField(db_column="comm_task")
    owner = text("comm_owner", 32)
    name = models.CharField(max_length=256, db_column="comm_cmd", help_text="kill, then killing or kill failed")
    given = big("comm_ts", help_text="seconds since 1970")
    comment = text("comm_comment", 128)
    parameters = models.TextField(null=True, blank=True, db_column="comm_parameters", help_text="JSON")
    status = models.CharField(
        max_length=16,
        db_column="comm_status",
        db_default="waiting",
        choices=[(s, s) for s in ("waiting", "given", "done", "refused")],
    )
    answer = models.TextField(blank=True, db_column="comm_answer", db_default="")
    command_id = big("comm_command", help_text="number of the command that the task was given")
    db_role = models.CharField(max_length=63, help_text="role of the database that wrote it, and account at this site")

    class Meta:
        db_table = "prodsys_comm"
        indexes = [
            models.Index(fields=["id"], condition=Q(status="given"), name="prodsys_comm_given"),
            models.Index(fields=["db_role", "id"], condition=Q(status="waiting"), name="prodsys_comm_waiting"),
            models.Index(fields=["task_id", "id"], name="prodsys_comm_task"),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.task_id}"


class FeedReader(models.Model):
    """Who of the site reads the feed of messages itself, and the position up to which it has acted upon them."""

    name = models.CharField(max_length=32, primary_key=True)
    position = models.BigIntegerField(db_default=0)

    class Meta:
        db_table = "messages_out_readers"

    def __str__(self) -> str:
        return self.name
