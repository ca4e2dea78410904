"""Classes of queues and tasks in analysis, and what they are made of. A watchdog writes them, by sets."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class SiteClassRecord(models.Model):
    """How soon a queue starts jobs of analysis. Queues of which too little is known have no row."""

    HI, MID, LO = 1, 0, -1
    CLASSES = ((HI, "hi"), (MID, "mid"), (LO, "lo"))

    queue = models.CharField(max_length=128, primary_key=True, db_column="computingsite")
    site_class = models.SmallIntegerField(choices=CLASSES, db_column="class")
    mean_s = models.FloatField(db_column="w_mean", help_text="mean wait in seconds, later jobs counted more")
    upper_s = models.FloatField(db_column="w_cl95upp", help_text="seconds that 95 % of jobs do not exceed")
    long_queued = models.IntegerField(db_column="long_q_n", help_text="jobs that have waited longer than the mean")
    long_mean_s = models.FloatField(db_column="long_q_mean", help_text="what they have waited so far, in seconds")
    active = models.BooleanField(help_text="a job of analysis started in the last 24 hours")
    updated = models.DateTimeField()

    class Meta:
        db_table = "site_classes"
        verbose_name = "class of a queue"
        verbose_name_plural = "classes of queues"
        constraints = [models.CheckConstraint(condition=Q(site_class__in=(1, 0, -1)), name="site_classes_known")]

    def __str__(self) -> str:
        return f"{self.queue}: {self.get_site_class_display()}"


class AnalysisUser(models.Model):
    """What a user of analysis has."""

    user = models.CharField(max_length=128, primary_key=True, db_column="produsername")
    slots_hi = models.IntegerField(help_text="cores that run on hi queues")
    slots_mid = models.IntegerField(help_text="cores that run on mid queues")
    disk_gb = models.FloatField(
        null=True, blank=True, help_text="size of the user's datasets in GB; empty: not queried"
    )
    updated = models.DateTimeField()

    class Meta:
        db_table = "analysis_users"
        verbose_name = "user of analysis"
        verbose_name_plural = "users of analysis"

    def __str__(self) -> str:
        return self.user


class TaskClassRecord(models.Model):
    """S: is to end soon; A, B, C: the user runs little, more, much."""

    CLASSES = ((2, "S"), (1, "A"), (0, "B"), (-1, "C"))

    task_id = models.BigIntegerField(primary_key=True, db_column="jeditaskid")
    task_class = models.SmallIntegerField(choices=CLASSES, db_column="class")
    updated = models.DateTimeField()

    class Meta:
        db_table = "task_classes"
        verbose_name = "class of a task"
        verbose_name_plural = "classes of tasks"
        constraints = [models.CheckConstraint(condition=Q(task_class__in=(2, 1, 0, -1)), name="task_classes_known")]

    def __str__(self) -> str:
        return f"{self.task_id}: {self.get_task_class_display()}"
