"""Messages that leave and come, mails to owners. Each row is written in the transaction of the change that it tells of."""

from __future__ import annotations

from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tasks_app.models.fields import big, moment, text


class OutMessage(models.Model):
    """A change of state that others may want to know of.

    `position` is the place in the feed, given by the publisher after the commit: whoever has read up to a position has
    missed nothing before it, which the order of ids does not promise.
    """

    id = models.BigAutoField(primary_key=True)
    message_id = models.UUIDField(unique=True, db_default=RandomUUID())
    topic = models.CharField(max_length=64)
    kind = models.CharField(max_length=32)
    task_id = big("jeditaskid")
    job_id = big("pandaid")
    owner = text("username", 128)
    payload = models.JSONField()
    created = models.DateTimeField(db_default=Now())
    position = big("position", unique=True)
    sent = moment("sent")
    attempts = models.IntegerField(db_default=0)
    error = models.TextField(blank=True, db_default="")

    class Meta:
        db_table = "messages_out"
        indexes = [
            models.Index(fields=["id"], condition=Q(position__isnull=True), name="messages_out_new"),
            models.Index(
                fields=["position"], condition=Q(sent__isnull=True, position__isnull=False), name="messages_out_unsent"
            ),
            models.Index(fields=["owner", "position"], name="messages_out_owner"),
            models.Index(fields=["task_id", "id"], name="messages_out_task"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


class InMessage(models.Model):
    """What another system has told. Its id makes it count once, however often it is delivered."""

    id = models.BigAutoField(primary_key=True)
    message_id = models.CharField(max_length=128, unique=True, help_text="name that the sender has given")
    kind = models.CharField(max_length=32)
    sender = models.CharField(max_length=150)
    payload = models.JSONField()
    received = models.DateTimeField(db_default=Now())
    next_try = models.DateTimeField(db_default=Now())
    attempts = models.IntegerField(db_default=0)
    processed = moment("processed")
    parked = moment("parked", help_text="given up after too many attempts; the error says why")
    answer = models.TextField(blank=True, db_default="")
    error = models.TextField(blank=True, db_default="")

    class Meta:
        db_table = "messages_in"
        constraints = [
            models.CheckConstraint(
                condition=Q(processed__isnull=True) | Q(parked__isnull=True), name="messages_in_one_end"
            )
        ]
        indexes = [
            models.Index(
                fields=["id"], condition=Q(processed__isnull=True, parked__isnull=True), name="messages_in_waiting"
            ),
            models.Index(fields=["id"], condition=Q(parked__isnull=False), name="messages_in_parked"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.message_id}"


class Notification(models.Model):
    """A mail to the owner of a task about one change of its state, or about failures of packages of a workflow, of which the
    task is one. Sent, or left out with the reason."""

    id = models.BigAutoField(primary_key=True)
    task_id = models.BigIntegerField(db_column="jeditaskid")
    workflow_id = models.BigIntegerField(null=True, blank=True)
    status = models.CharField(max_length=64, help_text="what the task became, or what happened to packages")
    reason = models.TextField(blank=True, db_default="")
    created = models.DateTimeField(db_default=Now())
    next_try = models.DateTimeField(db_default=Now())
    attempts = models.IntegerField(db_default=0)
    recipient = models.CharField(max_length=254, blank=True, db_default="")
    sent = moment("sent")
    not_sent = models.TextField(blank=True, db_default="", help_text="why no mail goes out")
    error = models.TextField(blank=True, db_default="", help_text="error of the last attempt to send it")

    class Meta:
        db_table = "notifications"
        indexes = [
            models.Index(fields=["id"], condition=Q(sent__isnull=True, not_sent=""), name="notifications_waiting"),
            models.Index(fields=["task_id", "id"], name="notifications_task"),
        ]

    def __str__(self) -> str:
        return f"{self.task_id} {self.status}"
