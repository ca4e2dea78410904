"""Archives with users' code that the site keeps for the jobs of their tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

if TYPE_CHECKING:
    from tasks_app.models.task import Task


class KeptSandboxes(models.Manager["Sandbox"]):
    """Archives that are here."""

    def get_queryset(self) -> models.QuerySet[Sandbox]:
        return super().get_queryset().filter(stored__isnull=False)


class Sandbox(models.Model):
    """One archive. Its owner's client gave it the name by which jobs fetch it; the file on disk has a name of ours.

    The row outlives the archive, since the name belongs to its owner for ever: a task of long ago may still name it.
    `stored` is None once the archive is removed, and for a name that a task has used and nobody has uploaded;
    `sha256` is empty for the latter.
    """

    id = models.BigAutoField(primary_key=True)
    owner = models.CharField(max_length=128)
    name = models.CharField(max_length=200, unique=True)
    stored = models.CharField(
        max_length=32, unique=True, null=True, help_text="name of the file in the folder of sandboxes"
    )
    size = models.BigIntegerField(help_text="bytes")
    crc = models.BigIntegerField(help_text="CRC-32 of what is packed, as the end of the archive says it")
    sha256 = models.CharField(max_length=64, help_text="SHA-256 of the archive, in hexadecimal digits")
    created = models.DateTimeField(db_default=Now())
    last_used = models.DateTimeField(db_default=Now(), help_text="last use, accurate to an hour")
    tasks: models.ManyToManyField[Task, models.Model] = models.ManyToManyField(
        "Task", db_table="sandbox_tasks", help_text="tasks that have named it"
    )

    objects = KeptSandboxes()
    names = models.Manager["Sandbox"]()
    """All rows, also those of archives that are gone."""

    class Meta:
        db_table = "sandboxes"
        verbose_name_plural = "sandboxes"
        indexes = [
            models.Index(fields=["owner", "crc"], name="sandboxes_owner", condition=Q(stored__isnull=False)),
            models.Index(fields=["last_used"], name="sandboxes_last_used", condition=Q(stored__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def path(self) -> Path:
        assert self.stored is not None, "the archive is gone"
        return Path(settings.JEDI_SANDBOXES) / self.stored

    @property
    def is_there(self) -> bool:
        return self.stored is not None and self.path.is_file()
