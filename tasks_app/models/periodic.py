"""Tasks that make jobs on a schedule: when the next ones are due, and what came of it so far."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from jedisite.vocabulary.words import plural
from tasks_app.models.fields import moment, number
from tasks_app.models.task import Task
from tasks_app.params.schedule import Schedule


class PeriodicTask(models.Model):
    task = models.OneToOneField(Task, models.CASCADE, primary_key=True, db_column="jeditaskid", related_name="periodic")
    every_s = number("every_s", help_text="seconds from one time to the next; empty with a cron line")
    cron = models.CharField(max_length=100, blank=True, db_default="", help_text="cron line, in UTC")
    jobs = models.IntegerField(help_text="records of input that are made each time")
    most_open = number("most_open", help_text="a time is skipped while more records than this would be unprocessed")
    until = moment("until")
    next_due = models.DateTimeField()
    last = moment("last")
    made = models.BigIntegerField(db_default=0, help_text="times that records were made")
    records = models.BigIntegerField(db_default=0)
    skipped = models.BigIntegerField(db_default=0, help_text="times skipped because too much was unprocessed")
    missed = models.BigIntegerField(db_default=0, help_text="times missed while the task or its agent was paused")
    ended = moment("ended")
    created = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "periodic_tasks"
        constraints = [
            models.CheckConstraint(
                condition=Q(every_s__isnull=True, cron__gt="") | Q(every_s__gt=0, cron=""),
                name="periodic_tasks_one_way",
            )
        ]
        indexes = [models.Index(fields=["next_due"], condition=Q(ended__isnull=True), name="periodic_tasks_due")]

    def __str__(self) -> str:
        return f"{self.task_id} {self.schedule().words()}"

    def schedule(self) -> Schedule:
        return Schedule(self.every_s, self.cron, self.jobs, self.until, self.most_open)

    def awaited(self) -> str:
        """What the task waits for between its times."""
        return f"the next input is made at {self.next_due:%Y-%m-%d %H:%M} UTC"

    def sentence(self) -> str:
        """What the schedule is, and what came of it so far."""
        jobs = plural(self.jobs, "job is", "jobs are")
        parts = [f"{jobs} made {self.schedule().words()}"]
        if self.until:
            parts.append(f"until {self.until:%Y-%m-%d %H:%M} UTC")
        done = f"so far {self.made} time{'' if self.made == 1 else 's'}"
        more = [f"{count} {words}" for count, words in ((self.skipped, "skipped"), (self.missed, "missed")) if count]
        return f"{' '.join(parts)}; {', '.join([done, *more])}."
