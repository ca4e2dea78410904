"""Archives with users' code that the site keeps for the jobs of their tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

if TYPE_CHECKING:
    from tasks_app.models.task import Task


class Sandbox(models.Model):
    """One archive. Its owner's client gave it the name by which jobs fetch it; the file on disk has a name of ours."""

    id = models.BigAutoField(primary_key=True)
    owner = models.CharField(max_length=128)
    name = models.CharField(max_length=200, unique=True)
    stored = models.CharField(max_length=32, unique=True, help_text="name of the file in the folder of sandboxes")
    size = models.BigIntegerField(help_text="bytes")
    crc = models.BigIntegerField(help_text="CRC-32 of what is packed, as the end of the archive says it")
    sha256 = models.CharField(max_length=64, help_text="of the archive, in hexadecimal digits")
    created = models.DateTimeField(db_default=Now())
    last_used = models.DateTimeField(db_default=Now(), help_text="to within an hour")
    tasks: models.ManyToManyField[Task, models.Model] = models.ManyToManyField(
        "Task", db_table="sandbox_tasks", help_text="tasks that have named it"
    )

    class Meta:
        db_table = "sandboxes"
        verbose_name_plural = "sandboxes"
        indexes = [
            models.Index(fields=["owner", "crc"], name="sandboxes_owner"),
            models.Index(fields=["last_used"], name="sandboxes_last_used"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def path(self) -> Path:
        return Path(settings.JEDI_SANDBOXES) / self.stored
