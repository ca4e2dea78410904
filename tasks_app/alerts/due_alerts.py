"""What is to be told now: found, stored with what was told before, and left to be sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from tasks_app.alerts.rules.telling import Over, Problem, Wish, payload, subject
from tasks_app.attention.keeping import FLAPS
from tasks_app.models import Alert, AlertRule, AlertTold, AttentionItem, OutMessage

TOPIC, KIND = "jedi.alerts", "alert"


def wish_of(rule: AlertRule) -> Wish:
    quiet = None
    if rule.quiet_from is not None and rule.quiet_until is not None:
        quiet = (rule.quiet_from, rule.quiet_until)
    return Wish(
        frozenset(rule.kinds),
        tuple(rule.about),
        rule.only_bad,
        timedelta(minutes=rule.after_min),
        timedelta(minutes=rule.every_min),
        quiet,
        rule.time_zone,
    )


def make(now: datetime) -> int:
    """Store the alerts that are due. Returns their number, a recipient of each counted.

    A rule, what it told and what it tells now are one transaction, so that nothing is told twice or left out.
    """
    AlertTold.objects.filter(rule__active=False).delete()
    made = 0
    for pk in AlertRule.objects.filter(active=True).order_by("pk").values_list("pk", flat=True):
        with transaction.atomic():
            rule = AlertRule.objects.select_for_update(skip_locked=True).filter(pk=pk, active=True).first()
            if rule is not None:
                made += _told_by(rule, now)
    return made


def _told_by(rule: AlertRule, now: datetime) -> int:
    wish = wish_of(rule)
    if not wish.may_speak(now, rule.last_alert):
        return 0
    told = list(rule.told.order_by("pk"))
    lasting = {(one.key, one.first_seen) for one in _items(Q(gone_at=None) | Q(gone_at__gt=now - FLAPS))}
    over = [one for one in told if (one.key, one.first_seen) not in lasting]
    AlertTold.objects.filter(pk__in=[one.pk for one in over]).delete()
    known = {(one.key, one.first_seen) for one in told}
    fresh = [one for one in open_problems(now) if wish.tells(one, now) and (one.key, one.first_seen) not in known]
    AlertTold.objects.bulk_create(
        AlertTold(rule=rule, key=one.key, first_seen=one.first_seen, sentence=one.sentence, path=one.path, at=now)
        for one in fresh
    )
    ends = [Over(one.sentence, one.path) for one in over] if rule.tells_ends else []
    if not fresh and not ends:
        return 0
    AlertRule.objects.filter(pk=rule.pk).update(last_alert=now)
    return len(
        store(rule, subject(fresh, ends), payload(fresh, ends, settings.JEDI_SERVER_URL, rule=rule.name, now=now), now)
    )


def open_problems(now: datetime) -> list[Problem]:
    """What needs attention and is neither taken on nor snoozed by anybody, the most urgent first."""
    return _items(
        Q(gone_at=None, acknowledged_at=None) & (Q(snoozed_until=None) | Q(snoozed_until__lte=now)), "-rank", "pk"
    )


def _items(which: Q, *order: str) -> list[Problem]:
    return [
        Problem(one.key, one.kind, one.tone, one.sentence, one.path, one.owner, one.since, one.first_seen)
        for one in AttentionItem.objects.filter(which).order_by(*order)
    ]


def store(rule: AlertRule, title: str, content: dict[str, Any], now: datetime) -> Sequence[Alert]:
    """One row for each recipient. A message for the feed is there at once; others wait to be sent."""

    def row(way: str, recipient: str = "", **more: Any) -> Alert:
        shown = {"subject": title, "payload": content, "created": now, "next_try": now, **more}
        return Alert(rule=rule, way=way, recipient=recipient, **shown)

    rows = [row("mail", one) for one in rule.mail_to]
    rows += [row("webhook")] if rule.webhook else []
    if rule.feed:
        rows.append(row("message", sent=now))
        OutMessage.objects.create(topic=TOPIC, kind=KIND, payload={"msg_type": KIND, "subject": title, **content})
    return Alert.objects.bulk_create(rows)


def send_test(rules: Iterable[AlertRule], now: datetime) -> int:
    """Store an alert of each rule that says what the rule would tell now. Returns their number, a recipient of each counted."""
    made = 0
    for rule in rules:
        wish = wish_of(rule)
        found = [one for one in open_problems(now) if wish.wants(one)]
        title = f"Test of the alert rule {rule.name}: it is about {len(found)} of the problems of now"
        made += len(
            store(rule, title[:200], payload(found, [], settings.JEDI_SERVER_URL, rule=rule.name, now=now), now)
        )
    return made
