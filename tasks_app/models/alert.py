"""Who is told of what needs attention, and what they were told."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tasks_app.models.fields import moment

DAY_MIN = 24 * 60


class AlertRule(models.Model):
    """Which items of attention are told to whom, and how often at most."""

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=64, unique=True)
    active = models.BooleanField(default=True, help_text="a rule that is not active tells nobody of anything")
    kinds = models.JSONField(default=list, blank=True, help_text="kinds of problems; none: all of them")
    about = models.JSONField(
        default=list, blank=True, help_text="sites, users or shares, one a line, * for any text; none: all of them"
    )
    only_bad = models.BooleanField("leave out warnings", default=False)
    after_min = models.PositiveIntegerField(
        "minutes before a problem is told",
        default=5,
        validators=[MaxValueValidator(DAY_MIN)],
        help_text="what is over sooner is never told",
    )
    every_min = models.PositiveIntegerField(
        "minutes between two alerts",
        default=30,
        validators=[MinValueValidator(1), MaxValueValidator(DAY_MIN)],
        help_text="what comes meanwhile is told together, in the next alert",
    )
    tells_ends = models.BooleanField("tell ends", default=True, help_text="tell also when a problem is over")
    quiet_from = models.TimeField(null=True, blank=True, help_text="nothing is told from this time of the day")
    quiet_until = models.TimeField(null=True, blank=True, help_text="until this one; what still lasts then is told")
    time_zone = models.CharField(max_length=64, default="UTC", help_text="of the quiet hours, as UTC or Europe/Zurich")
    mail_to = models.JSONField(default=list, blank=True, help_text="addresses, one a line")
    webhook = models.CharField(
        max_length=500,
        blank=True,
        default="",
        help_text="an address to which alerts are sent as JSON; chat services can show them",
    )
    feed = models.BooleanField("feed of messages", default=False, help_text="other systems read alerts there")
    last_alert = moment("last_alert", help_text="when it told something last")

    class Meta:
        db_table = "alert_rules"
        constraints = [
            models.CheckConstraint(
                condition=Q(quiet_from__isnull=True, quiet_until__isnull=True)
                | Q(quiet_from__isnull=False, quiet_until__isnull=False),
                name="alert_rules_quiet",
            )
        ]

    def __str__(self) -> str:
        return self.name


class AlertTold(models.Model):
    """A problem that a rule has told, and whose end it has not told yet."""

    id = models.BigAutoField(primary_key=True)
    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="told")
    key = models.CharField(max_length=200, help_text="of the item of attention")
    first_seen = models.DateTimeField(help_text="of the item: what comes back is told again")
    sentence = models.CharField(max_length=500)
    path = models.CharField(max_length=500)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "alert_told"
        verbose_name = "told problem"
        constraints = [models.UniqueConstraint(fields=["rule", "key", "first_seen"], name="alert_told_once")]

    def __str__(self) -> str:
        return self.key


class Alert(models.Model):
    """An alert on one way to one recipient. Sent, or left out with the reason."""

    WAYS = ("mail", "webhook", "message")

    id = models.BigAutoField(primary_key=True)
    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="alerts")
    way = models.CharField(max_length=8, choices=[(way, way) for way in WAYS])
    recipient = models.CharField(max_length=254, blank=True, default="", help_text="of a mail")
    created = models.DateTimeField(db_default=Now())
    subject = models.CharField(max_length=200)
    payload = models.JSONField(help_text="what a webhook gets")
    next_try = models.DateTimeField(db_default=Now())
    attempts = models.IntegerField(default=0)
    sent = moment("sent")
    not_sent = models.TextField(blank=True, default="", help_text="why it does not go out")
    error = models.TextField(blank=True, default="", help_text="error of the last attempt to send it")

    class Meta:
        db_table = "alerts"
        constraints = [models.CheckConstraint(condition=Q(way__in=("mail", "webhook", "message")), name="alerts_way")]
        indexes = [
            models.Index(fields=["id"], condition=Q(sent__isnull=True, not_sent=""), name="alerts_waiting"),
        ]

    def __str__(self) -> str:
        return f"{self.way} {self.id}"
