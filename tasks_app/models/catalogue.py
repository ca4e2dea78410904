"""The local catalogue: datasets of files that lie on this machine's disks. The local twin of a data management system."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from tasks_app.domain.scopes import CONTAINER_MARK


class CatalogueDataset(models.Model):
    """A dataset, or a container of datasets: its name then ends with a slash, and it has members instead of files."""

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=255, unique=True)
    scope = models.CharField(max_length=30)
    open = models.BooleanField(default=True, help_text="files may still be added")
    owner = models.CharField(
        max_length=128, db_default="", blank=True, help_text="the user to whom it belongs; empty: this site"
    )
    made_by_task = models.BigIntegerField(
        null=True, blank=True, help_text="the task that made it, and alone ends it; empty: it was registered"
    )
    created = models.DateTimeField(db_default=Now())
    expires = models.DateTimeField(
        null=True, blank=True, help_text="from then on the dataset may be deleted with its files; empty: never"
    )
    members = models.ManyToManyField(
        "self", symmetrical=False, related_name="containers", db_table="catalogue_members", blank=True
    )

    class Meta:
        db_table = "catalogue_datasets"
        indexes = [
            models.Index(
                fields=["expires"], condition=models.Q(expires__isnull=False), name="catalogue_datasets_expires"
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_container(self) -> bool:
        return self.name.endswith(CONTAINER_MARK)


class CatalogueFile(models.Model):
    id = models.BigAutoField(primary_key=True)
    dataset = models.ForeignKey(CatalogueDataset, models.CASCADE, related_name="files", db_index=False)
    lfn = models.CharField(max_length=256)
    scope = models.CharField(max_length=30)
    guid = models.CharField(max_length=64)
    size = models.BigIntegerField(help_text="bytes")
    adler32 = models.CharField(max_length=8)
    events = models.BigIntegerField(null=True, blank=True)
    lumi_block = models.BigIntegerField(null=True, blank=True)
    endpoint = models.CharField(max_length=60, help_text="name of the storage endpoint")
    url = models.TextField(help_text="file://localhost/...")
    created = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "catalogue_files"
        constraints = [models.UniqueConstraint(fields=["dataset", "lfn"], name="catalogue_files_name")]
        indexes = [models.Index(fields=["lfn"], name="catalogue_files_lfn")]

    def __str__(self) -> str:
        return self.lfn
