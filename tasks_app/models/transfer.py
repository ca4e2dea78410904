"""Data that moves: rules, the requests for their files, and the further replicas of files.

A scope and a name are one file. Its first place is that of its rows in the catalogue; all others, and what is bad, stand here.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tasks_app.domain.transfer_states import (
    KEPT_REPLICA_STATES,
    TRANSFER_OPEN,
    ReplicaStatus,
    TransferKind,
    TransferStatus,
)

_STATES = [(s.value, s.value) for s in TransferStatus]
_OPEN = [s.value for s in TRANSFER_OPEN]


class FileReplica(models.Model):
    """A file at another endpoint than its first place; or at that one, when it is bad and there is no other."""

    id = models.BigAutoField(primary_key=True)
    scope = models.CharField(max_length=30)
    lfn = models.CharField(max_length=256)
    endpoint = models.CharField(max_length=60, help_text="name of the storage endpoint")
    url = models.TextField(help_text="file://localhost/...")
    status = models.CharField(
        max_length=16, default=ReplicaStatus.AVAILABLE.value, choices=[(s.value, s.value) for s in KEPT_REPLICA_STATES]
    )
    reason = models.TextField(blank=True, default="", help_text="why it is bad")
    at = models.DateTimeField(db_default=Now(), help_text="since when")

    class Meta:
        db_table = "file_replicas"
        constraints = [
            models.UniqueConstraint(fields=["scope", "lfn", "endpoint"], name="file_replicas_once"),
            models.CheckConstraint(
                condition=Q(status__in=[s.value for s in KEPT_REPLICA_STATES]), name="file_replicas_status_known"
            ),
        ]
        indexes = [models.Index(fields=["status", "id"], name="file_replicas_status")]

    def __str__(self) -> str:
        return f"{self.scope}:{self.lfn} at {self.endpoint}"


class TransferRule(models.Model):
    """Files of a dataset, or of a job, that are to be at an endpoint. What waits for it looks at it when it has ended."""

    id = models.BigAutoField(primary_key=True)
    kind = models.CharField(max_length=16, choices=[(k.value, k.value) for k in TransferKind])
    dataset = models.CharField(max_length=255, blank=True, default="", help_text="empty: files of a job")
    destination = models.CharField(max_length=60, help_text="name of the storage endpoint")
    activity = models.CharField(max_length=64, help_text="as the brokers count what is queued on links")
    task_id = models.BigIntegerField(null=True, blank=True, db_column="jeditaskid")
    job_id = models.BigIntegerField(null=True, blank=True, db_column="pandaid")
    user = models.CharField(max_length=128, blank=True, default="", db_column="username")
    status = models.CharField(max_length=16, default=TransferStatus.QUEUED.value, choices=_STATES)
    files = models.BigIntegerField(default=0)
    files_done = models.BigIntegerField(default=0)
    files_failed = models.BigIntegerField(default=0)
    bytes = models.BigIntegerField(default=0)
    bytes_done = models.BigIntegerField(default=0)
    created = models.DateTimeField(db_default=Now())
    started = models.DateTimeField(null=True, blank=True, help_text="when the first file was begun")
    ended = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True, default="")
    is_settled = models.BooleanField(default=False, help_text="its end has been acted upon")
    report = models.JSONField(null=True, blank=True, help_text="of the pilot whose outputs are gathered")

    class Meta:
        db_table = "transfer_rules"
        verbose_name = "transfer rule"
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=[s.value for s in TransferStatus]), name="transfer_rules_status_known"
            ),
            models.CheckConstraint(
                condition=Q(kind__in=[k.value for k in TransferKind]), name="transfer_rules_kind_known"
            ),
        ]
        indexes = [
            models.Index(fields=["id"], condition=Q(status__in=_OPEN), name="transfer_rules_open"),
            models.Index(
                fields=["kind", "id"],
                condition=Q(is_settled=False) & ~Q(status__in=_OPEN),
                name="transfer_rules_unsettled",
            ),
            models.Index(fields=["task_id", "id"], name="transfer_rules_task"),
            models.Index(fields=["job_id"], condition=Q(job_id__isnull=False), name="transfer_rules_job"),
            models.Index(fields=["ended"], name="transfer_rules_ended"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} to {self.destination}"


class TransferRequest(models.Model):
    """One file of a rule on its way. The mover holds it by a lease, and goes on where the last turn has ended.

    Of one that is tried again `error` says what its last attempt met, and `moved_at` when that was.
    """

    id = models.BigAutoField(primary_key=True)
    rule = models.ForeignKey(TransferRule, models.CASCADE, related_name="requests")
    file_id = models.BigIntegerField(
        null=True, blank=True, db_column="fileid", help_text="of the task's input, if it is one"
    )
    scope = models.CharField(max_length=30)
    lfn = models.CharField(max_length=256)
    bytes = models.BigIntegerField(help_text="size of the file")
    adler32 = models.CharField(max_length=8)
    source = models.CharField(
        max_length=60, blank=True, default="", help_text="endpoint; empty: no replica can be read"
    )
    destination = models.CharField(max_length=60)
    url = models.TextField(blank=True, default="", help_text="where the copy lies")
    status = models.CharField(max_length=16, default=TransferStatus.QUEUED.value, choices=_STATES)
    attempt = models.SmallIntegerField(default=0, help_text="attempts that were begun")
    bytes_copied = models.BigIntegerField(default=0)
    next_try = models.DateTimeField(null=True, blank=True, help_text="not before; empty: at once")
    created = models.DateTimeField(db_default=Now())
    started = models.DateTimeField(null=True, blank=True, help_text="of this attempt")
    moved_at = models.DateTimeField(null=True, blank=True, help_text="up to when its part of the link is used")
    ended = models.DateTimeField(null=True, blank=True)
    locked_by = models.CharField(max_length=64, blank=True, default="", db_column="lockedby")
    lease_until = models.DateTimeField(null=True, blank=True)
    has_part = models.BooleanField(default=False, help_text="a partial copy may lie at the destination")
    error = models.TextField(blank=True, default="")

    class Meta:
        db_table = "transfer_requests"
        verbose_name = "transfer request"
        constraints = [
            models.UniqueConstraint(fields=["rule", "scope", "lfn"], name="transfer_requests_once"),
            # Two do not write one file at once: the other waits, and then finds it there.
            models.UniqueConstraint(
                fields=["scope", "lfn", "destination"],
                condition=Q(status=TransferStatus.ACTIVE.value),
                name="transfer_requests_one_active",
            ),
            models.CheckConstraint(
                condition=Q(status__in=[s.value for s in TransferStatus]), name="transfer_requests_status_known"
            ),
        ]
        indexes = [
            models.Index(
                fields=["source", "destination", "id"],
                condition=Q(status=TransferStatus.QUEUED.value),
                name="transfer_requests_queued",
            ),
            models.Index(
                fields=["moved_at"], condition=Q(status=TransferStatus.ACTIVE.value), name="transfer_requests_active"
            ),
            models.Index(
                fields=["id"],
                condition=Q(has_part=True) & ~Q(status__in=_OPEN),
                name="transfer_requests_parts",
            ),
            models.Index(fields=["ended"], condition=Q(ended__isnull=False), name="transfer_requests_ended"),
            models.Index(fields=["scope", "lfn"], condition=Q(status__in=_OPEN), name="transfer_requests_open_file"),
        ]

    def __str__(self) -> str:
        return f"{self.scope}:{self.lfn} from {self.source or 'nowhere'} to {self.destination}"
