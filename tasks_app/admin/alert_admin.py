"""Admin of alerts: who is told of what needs attention. Rules are tried before anybody relies on them."""

from __future__ import annotations

import zoneinfo
from typing import Any, Final
from urllib.parse import urlsplit

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.widgets import UnfoldAdminTextareaWidget

from jedisite.admin.base import AuditedAdmin, ReadOnlyAdmin
from jedisite.vocabulary.words import plural, rather
from tasks_app import models
from tasks_app.alerts import due_alerts
from tasks_app.attention.rules.findings import KINDS

MOST_LINES: Final = 50
MOST_MAILS: Final = 20
LONGEST_ABOUT: Final = models.AttentionItem._meta.get_field("owner").max_length or 0
MOST_TESTED: Final = 10


class LinesField(forms.CharField):
    """A list of texts, one a line."""

    widget = UnfoldAdminTextareaWidget(attrs={"rows": 3, "spellcheck": "false"})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(map(str, value)) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        lines = [line.strip() for line in (super().to_python(value) or "").splitlines()]
        return list(dict.fromkeys(line for line in lines if line))

    def validate(self, value: Any) -> None:
        if len(value) > MOST_LINES:
            raise ValidationError(f"There are {len(value)} lines; at most {MOST_LINES} are taken.")

    def has_changed(self, initial: Any, data: Any) -> bool:
        return self.to_python(data) != (initial or [])


class RuleForm(forms.ModelForm):
    kinds = forms.MultipleChoiceField(
        required=False, widget=forms.CheckboxSelectMultiple, help_text="none: problems of all kinds"
    )
    about = LinesField(
        required=False, help_text="sites, users or shares, one a line; * stands for any text; none: all of them"
    )
    mail_to = LinesField(required=False, label="Mail to", help_text="addresses, one a line")

    class Meta:
        model = models.AlertRule
        exclude: tuple[str, ...] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "kinds" in self.fields:
            field: Any = self.fields["kinds"]
            field.choices = [(name, kind.title) for name, kind in KINDS.items()]

    def clean_about(self) -> list[str]:
        lines: list[str] = self.cleaned_data["about"]
        if long := [line for line in lines if len(line) > LONGEST_ABOUT]:
            raise ValidationError(f"{long[0][:40]}… is longer than {LONGEST_ABOUT} characters.")
        return lines

    def clean_mail_to(self) -> list[str]:
        lines: list[str] = self.cleaned_data["mail_to"]
        for line in lines:
            try:
                validate_email(line)
            except ValidationError:
                raise ValidationError(f"{line[:100]!r} is not an address for mail.") from None
        if len(lines) > MOST_MAILS:
            raise ValidationError(f"There are {len(lines)} addresses; at most {MOST_MAILS} get an alert.")
        if lines and not settings.JEDI_EMAIL_URL:
            raise ValidationError("No mail server is configured: set JEDI_EMAIL_URL first.")
        return lines

    def clean_webhook(self) -> str:
        address: str = self.cleaned_data["webhook"].strip()
        if not address:
            return ""
        try:
            parts = urlsplit(address)
            named = bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:
            raise ValidationError("This address cannot be read.") from None
        if parts.scheme not in ("http", "https") or not named or not address.isascii() or len(address.split()) != 1:
            raise ValidationError("Enter an address that begins with https:// or http:// and names a host.")
        if "@" in parts.netloc:
            raise ValidationError("Leave out the user's name: a webhook proves itself by its path or a parameter.")
        return address

    def clean_time_zone(self) -> str:
        name: str = self.cleaned_data["time_zone"]
        known = zoneinfo.available_timezones()
        if name not in known:
            raise ValidationError(rather(f"{name!r} is not a time zone", name, known))
        return name

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        start, end = values.get("quiet_from"), values.get("quiet_until")
        if (start is None) != (end is None) and not {"quiet_from", "quiet_until"} & set(self.errors):
            self.add_error("quiet_until" if end is None else "quiet_from", "Quiet hours need a start and an end.")
        elif start is not None and start == end:
            self.add_error("quiet_until", "Quiet hours end at another time than they begin.")
        ways = {"mail_to", "webhook", "feed"}
        if not ways & set(self.errors) and not any(values.get(way) for way in ways):
            self.add_error(None, "Say who is told: an address for mail, a webhook, or the feed of messages.")
        return values


@admin.register(models.AlertRule)
class AlertRuleAdmin(AuditedAdmin):
    form = RuleForm
    list_display = ["name", "active", "of_kinds", "after_min", "every_min", "quiet_hours", "ways", "last_alert"]
    list_filter = ["active"]
    search_fields = ["name"]
    ordering = ["name"]
    readonly_fields = ["last_alert"]
    actions = ["send_test"]
    fieldsets = [
        (None, {"fields": ["name", "active"]}),
        ("What is told", {"fields": ["kinds", "about", "only_bad", "tells_ends"]}),
        ("When", {"fields": ["after_min", "every_min", "quiet_from", "quiet_until", "time_zone", "last_alert"]}),
        ("Who is told", {"fields": ["mail_to", "webhook", "feed"]}),
    ]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """The webhook's address may be a secret: only those who may change it see it."""
        sets = super().get_fieldsets(request, obj)
        if obj is None or self.has_change_permission(request, obj):
            return sets
        return [
            (title, {**more, "fields": [name for name in more["fields"] if name != "webhook"]}) for title, more in sets
        ]

    @admin.display(description="problems")
    def of_kinds(self, rule: models.AlertRule) -> str:
        titles = [KINDS[kind].title if kind in KINDS else kind for kind in rule.kinds]
        return "; ".join(titles) if titles else "all"

    @admin.display(description="quiet hours")
    def quiet_hours(self, rule: models.AlertRule) -> str:
        if rule.quiet_from is None or rule.quiet_until is None:
            return "none"
        return f"{rule.quiet_from:%H:%M} to {rule.quiet_until:%H:%M} {rule.time_zone}"

    @admin.display(description="who is told")
    def ways(self, rule: models.AlertRule) -> str:
        parts = [*rule.mail_to, "the webhook" if rule.webhook else "", "the feed" if rule.feed else ""]
        return ", ".join(part for part in parts if part)

    @admin.action(description="Send a test alert", permissions=["change"])
    def send_test(self, request: HttpRequest, queryset: QuerySet[models.AlertRule]) -> None:
        """What a rule would tell now, to all that it tells; it is told again when its time comes."""
        rules = list(queryset.order_by("pk")[: MOST_TESTED + 1])
        if len(rules) > MOST_TESTED:
            messages.error(request, f"Choose at most {MOST_TESTED} rules: each of them sends an alert.")
            return
        made = due_alerts.send_test(rules, timezone.now())
        for rule in rules:
            self.record(request, "alert.test", rule)
        where = "The list of alerts says whether they were taken."
        messages.success(request, f"{plural(made, 'test alert is', 'test alerts are')} sent in half a minute. {where}")


@admin.register(models.AlertTold)
class AlertToldAdmin(ReadOnlyAdmin):
    list_display = ["at", "rule", "sentence", "first_seen"]
    list_filter = ["rule"]
    list_select_related = ["rule"]
    search_fields = ["key"]
    ordering = ["-id"]


@admin.register(models.Alert)
class AlertAdmin(ReadOnlyAdmin):
    long_columns = ("payload",)
    list_display = ["id", "created", "rule", "way", "recipient", "subject", "sent", "attempts", "not_sent", "error"]
    list_filter = ["rule", "way"]
    list_select_related = ["rule"]
    search_fields = ["subject"]
    ordering = ["-id"]
