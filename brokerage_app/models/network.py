"""The network between sites, and where datasets have replicas."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class LinkValue(models.Model):
    """One number about the way from a site to another.

    Keys: AGIS_closeness (0 best to 11, -1 blocked); dashb_mbps_1h, _1d, _1w (MB/s); and what waits for transfer by
    activity, such as "Production Output_queued" (files).
    """

    id = models.BigAutoField(primary_key=True)
    source = models.CharField(max_length=60, db_column="src")
    destination = models.CharField(max_length=60, db_column="dst")
    key = models.CharField(max_length=64)
    value = models.FloatField()
    at = models.DateTimeField(db_column="ts", db_default=Now())

    class Meta:
        db_table = "network_matrix_kv"
        constraints = [
            models.UniqueConstraint(fields=["source", "destination", "key"], name="network_matrix_kv_once"),
        ]
        indexes = [models.Index(fields=["at"], name="network_matrix_kv_ts")]

    def __str__(self) -> str:
        return f"{self.source} to {self.destination}: {self.key}"


class DatasetReplica(models.Model):
    """What a storage endpoint has of a dataset, as data management last said."""

    id = models.BigAutoField(primary_key=True)
    dataset = models.CharField(max_length=255, db_column="datasetname")
    endpoint = models.CharField(max_length=60)
    files = models.BigIntegerField(db_column="nfiles")
    bytes = models.BigIntegerField()
    complete = models.BooleanField()
    at = models.DateTimeField(db_column="ts", db_default=Now(), help_text="when data management was queried")

    class Meta:
        db_table = "dataset_replicas"
        constraints = [models.UniqueConstraint(fields=["dataset", "endpoint"], name="dataset_replicas_once")]
        indexes = [models.Index(fields=["at"], name="dataset_replicas_ts")]

    def __str__(self) -> str:
        return f"{self.dataset} at {self.endpoint}"


class ReplicaLookup(models.Model):
    """A dataset whose replicas were asked for, and when. `files` and `bytes` are those of the dataset itself."""

    dataset = models.CharField(max_length=255, primary_key=True, db_column="datasetname")
    files = models.BigIntegerField(db_column="nfiles", default=0)
    bytes = models.BigIntegerField(default=0)
    at = models.DateTimeField(db_column="ts", db_default=Now())

    class Meta:
        db_table = "dataset_replica_lookups"
        indexes = [models.Index(fields=["at"], name="dataset_replica_lookups_ts")]

    def __str__(self) -> str:
        return self.dataset
