"""The installation's own tables: agents and their passes, tokens, the audit trail."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from jedisite.vocabulary.roles import SCOPE_WORDS, Scope


class Agent(models.Model):
    """One row for each agent: when it is due, who runs it now, what its last pass did. Times are the database's."""

    name = models.CharField(max_length=64, primary_key=True)
    title = models.CharField(max_length=200, blank=True, default="")
    period_s = models.FloatField(help_text="seconds between two passes when nothing makes it due earlier")
    lease_s = models.FloatField(default=120, help_text="seconds after which a pass that has not ended counts as dead")
    due_at = models.DateTimeField(db_default=Now())
    queued_at = models.DateTimeField(null=True, blank=True, help_text="handed to django-q2 and not started yet")
    paused = models.BooleanField(default=False)
    lease_owner = models.CharField(max_length=128, null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    fence = models.BigIntegerField(db_default=0)
    last_started_at = models.DateTimeField(null=True, blank=True)
    last_ended_at = models.DateTimeField(null=True, blank=True)
    unended_since = models.DateTimeField(
        null=True, blank=True, help_text="when the oldest pass began that has not ended"
    )
    last_duration_s = models.FloatField(null=True, blank=True)
    last_items = models.IntegerField(null=True, blank=True)
    last_error = models.TextField(blank=True, default="")
    last_recorded_at = models.DateTimeField(
        null=True, blank=True, help_text="when a pass was last written to the list of passes"
    )
    errors_in_a_row = models.IntegerField(default=0)
    passes = models.BigIntegerField(db_default=0)

    class Meta:
        db_table = "agents"
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class AgentPass(models.Model):
    """A pass that did something, failed, or was the first in a minute. Partitioned by month."""

    id = models.BigAutoField(primary_key=True)
    agent = models.CharField(max_length=64)
    started_at = models.DateTimeField(db_default=Now())
    duration_s = models.FloatField()
    items = models.IntegerField(default=0)
    note = models.TextField(blank=True, default="")
    error = models.TextField(blank=True, default="")
    host = models.CharField(max_length=128)

    class Meta:
        db_table = "agent_passes"
        verbose_name_plural = "agent passes"
        indexes = [
            models.Index(fields=["agent", "-id"], name="agent_passes_agent"),
            models.Index(fields=["agent", "-id"], condition=~models.Q(error=""), name="agent_passes_failed"),
        ]


class Trouble(models.Model):
    """What an agent could not do, for one subject: it leaves that aside until `next_try` and goes on with the others."""

    KINDS = ("task", "job")

    id = models.BigAutoField(primary_key=True)
    agent = models.CharField(max_length=64)
    kind = models.CharField(max_length=8, choices=[(k, k) for k in KINDS])
    subject = models.BigIntegerField(help_text="number of the task or job")
    task_id = models.BigIntegerField(null=True, db_column="jeditaskid", help_text="task that the subject belongs to")
    failures = models.IntegerField(default=1, help_text="failures in a row; the record is deleted when a turn succeeds")
    since = models.DateTimeField(db_default=Now())
    last_at = models.DateTimeField(db_default=Now())
    next_try = models.DateTimeField()
    error = models.TextField()

    class Meta:
        db_table = "agent_troubles"
        constraints = [models.UniqueConstraint(fields=["agent", "kind", "subject"], name="agent_troubles_once")]
        indexes = [models.Index(fields=["task_id"], name="agent_troubles_task")]

    def __str__(self) -> str:
        return f"{self.agent}: {self.kind} {self.subject}"


class ApiToken(models.Model):
    """A bearer token. Only its SHA-256 is kept; the token itself is shown once, when it is made."""

    KINDS = ("user", "pilot", "worker")
    LONGEST_NAME, LONGEST_SITE = 100, 128
    SCOPES = [(scope.value, words) for scope, words in SCOPE_WORDS.items()]

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=LONGEST_NAME)
    kind = models.CharField(max_length=16, choices=[(k, k) for k in KINDS])
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="api_tokens")
    site = models.CharField(
        max_length=LONGEST_SITE, blank=True, default="", help_text="the queue that a pilot may serve; empty: any"
    )
    scope = models.CharField(
        max_length=16,
        choices=SCOPES,
        default=Scope.ALL.value,
        db_default=Scope.ALL.value,
        help_text="what a user's token allows",
    )
    worker = models.CharField(
        max_length=80,
        blank=True,
        default="",
        db_default="",
        help_text="the one pilot that this token is for; empty is any",
    )
    begins_with = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="isolation program of that pilot: each of its jobs starts with it",
    )
    prefix = models.CharField(max_length=12, help_text="first letters of the secret, to tell tokens apart")
    digest = models.BinaryField(unique=True, editable=False)
    created = models.DateTimeField(db_default=Now())
    expires = models.DateTimeField()
    last_used = models.DateTimeField(null=True, blank=True)
    revoked = models.BooleanField(default=False)

    class Meta:
        db_table = "api_tokens"
        # Of workers a day's tokens are kept that have ended: calls of those that live do not read them.
        indexes = [
            models.Index(
                fields=["site"], condition=~models.Q(worker="") & models.Q(revoked=False), name="api_token_of_worker"
            ),
            models.Index(fields=["expires"], condition=~models.Q(worker=""), name="api_token_of_worker_ended"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class ForeignIdentity(models.Model):
    """Under which name somebody else vouches for a user: the subject of an OIDC issuer, or the DN of a certificate."""

    X509 = "x509"

    id = models.BigAutoField(primary_key=True)
    issuer = models.CharField(max_length=255, help_text=f"address of the OIDC issuer, or {X509} for certificates")
    subject = models.CharField(max_length=255, help_text="the issuer's own name of the person (sub), or the DN")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="foreign_identities")
    created = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "foreign_identities"
        verbose_name_plural = "foreign identities"
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="foreign_identities_name")]

    def __str__(self) -> str:
        return f"{self.subject} of {self.issuer}"


class LoginAttempts(models.Model):
    """Failed attempts of one kind, by the hash of whose and from where: see `throttle`. Not for people."""

    key = models.CharField(max_length=64, primary_key=True)
    failures = models.IntegerField()
    free_at = models.DateTimeField(help_text="when the next attempt is accepted")
    expires = models.DateTimeField(db_index=True, help_text="when this expires")

    class Meta:
        db_table = "login_attempts"
        verbose_name_plural = "login attempts"

    def __str__(self) -> str:
        return self.key[:8]


class DeviceLogin(models.Model):
    """A program that asked the development issuer to come in for somebody. Codes are kept as their SHA-256."""

    STATUSES = ("waiting", "allowed", "refused", "used")

    id = models.BigAutoField(primary_key=True)
    user_code = models.CharField(max_length=9, unique=True, help_text="code that the person confirms")
    digest = models.BinaryField(unique=True, editable=False)
    status = models.CharField(max_length=16, choices=[(s, s) for s in STATUSES], default="waiting")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="device_logins")
    created = models.DateTimeField(db_default=Now())
    expires = models.DateTimeField(db_index=True)
    last_asked = models.DateTimeField(null=True)
    refresh_digest = models.BinaryField(unique=True, null=True, editable=False)

    class Meta:
        db_table = "device_logins"

    def __str__(self) -> str:
        return self.user_code


class AuditEntry(models.Model):
    """Who did what to which object, and why. Only ever added to."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=Now())
    actor = models.CharField(max_length=128)
    action = models.CharField(max_length=64)
    object_type = models.CharField(max_length=32)
    object_id = models.CharField(max_length=64)
    reason = models.TextField(blank=True, default="")
    details = models.JSONField(null=True, blank=True)

    class Meta:
        db_table = "audit_entries"
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["object_type", "object_id", "-id"], name="audit_entries_object"),
            models.Index(fields=["object_type", "-id"], name="audit_entries_kind"),
            models.Index(fields=["actor", "-id"], name="audit_entries_actor"),
            models.Index(fields=["action", "-id"], name="audit_entries_action"),
            models.Index(fields=["at"], name="audit_entries_at"),
        ]
