"""Alerts that are due: taken, sent by mail or to a webhook, and tried again when they are not taken there."""

from __future__ import annotations

import http.client
import json
import urllib.request
from datetime import datetime
from email.utils import parseaddr
from smtplib import SMTPException
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction

from jedisite.identity.oidc_settings import LOOPBACK
from jedisite.processes.logs import sentence_of
from jedisite.vocabulary.words import plural
from tasks_app.alerts.rules.telling import for_chat
from tasks_app.messaging.sending import ATTEMPTS, FIRST_WAIT, LEASE
from tasks_app.models import Alert

log = structlog.get_logger(__name__)
LIMIT_S: Final = 10.0
"""Seconds for which a webhook may be silent."""


class NotTakenError(Exception):
    """An alert was not taken; the sentence says why."""


class NobodyToTellError(Exception):
    """An alert cannot go out, now or later; the sentence says why."""


@transaction.atomic
def claim_alerts(limit: int, now: datetime) -> list[Alert]:
    """Claim due alerts, and hide them from other processes for a while. No row is locked while one is sent."""
    rows = list(
        Alert.objects.select_for_update(skip_locked=True, of=("self",))
        .select_related("rule")
        .filter(sent=None, not_sent="", next_try__lte=now)
        .order_by("id")[:limit]
    )
    for row in rows:
        row.attempts += 1
        row.next_try = now + LEASE
    Alert.objects.bulk_update(rows, ["attempts", "next_try"])
    return rows


def send_alert(row: Alert, now: datetime) -> bool:
    """Send one alert. Returns whether it went out; otherwise the row says why not, and when it is tried again."""
    changes: dict[str, object]
    try:
        if row.way == "mail":
            _mail(row)
        else:
            _call(row)
    except NobodyToTellError as exc:
        changes = {"not_sent": str(exc)}
    except (OSError, SMTPException, NotTakenError) as exc:
        changes = _later(row, now, str(exc))
    except Exception as exc:
        log.exception("alert.failed", alert=row.pk, attempts=row.attempts)
        changes = _later(row, now, sentence_of(exc))
    else:
        changes = {"sent": now, "error": ""}
    Alert.objects.filter(pk=row.pk, attempts=row.attempts, sent=None).update(**changes)
    return "sent" in changes


def _later(row: Alert, now: datetime, error: str) -> dict[str, object]:
    log.warning("alert.not_taken", alert=row.pk, way=row.way, attempts=row.attempts, error=error[:500])
    if row.attempts >= ATTEMPTS:
        return {"error": error[:2000], "not_sent": f"given up after {plural(row.attempts, 'attempt')}"}
    return {"error": error[:2000], "next_try": now + FIRST_WAIT * 2 ** (row.attempts - 1)}


def _mail(row: Alert) -> None:
    if not settings.JEDI_EMAIL_URL:
        raise NobodyToTellError("no mail server is configured (JEDI_EMAIL_URL)")
    domain = parseaddr(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2] or "localhost"
    EmailMessage(
        subject=" ".join(row.subject.split()),
        body=row.payload["text"],
        to=[row.recipient],
        headers={
            "Message-ID": f"<jedi.alert.{row.pk}@{domain}>",
            "Auto-Submitted": "auto-generated",
            "X-JEDI-Alert": " ".join(row.rule.name.split()),
        },
    ).send()


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would take the alert where nobody has allowed it to go."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _call(row: Alert) -> None:
    """POST to the webhook of the rule as it is now. The address is in no error: it may hold a secret. Raises NotTakenError."""
    address = row.rule.webhook
    if not address:
        raise NobodyToTellError("the rule has no webhook any more")
    body = json.dumps(
        {"id": row.pk, "subject": row.subject, **row.payload, "text": for_chat(row.payload["text"])}
    ).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "jedisite"}
    request = urllib.request.Request(address, data=body, headers=headers, method="POST")
    handlers: list[Any] = [_NoRedirects()]
    if urlsplit(address).hostname in LOOPBACK:
        handlers.append(urllib.request.ProxyHandler({}))
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=LIMIT_S):
            pass
    except HTTPError as exc:
        with exc:
            raise NotTakenError(f"the webhook answered {exc.code}") from None
    except http.client.HTTPException:
        raise NotTakenError("the webhook did not answer in HTTP") from None
    except TimeoutError:
        raise NotTakenError(f"the webhook did not answer within {LIMIT_S:.0f} s") from None
    except OSError as exc:
        said = getattr(exc, "reason", exc)
        raise NotTakenError(f"the webhook cannot be reached: {said}") from None
