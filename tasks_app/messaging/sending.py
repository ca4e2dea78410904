"""Mails that are due: taken, sent, and tried again when the mail server does not take them."""

from __future__ import annotations

from datetime import datetime, timedelta
from smtplib import SMTPException

import structlog
from django.db import transaction

from jedisite.processes.logs import sentence_of
from jedisite.vocabulary.words import plural
from tasks_app.messaging.mail import NoMailError, address_for, compose
from tasks_app.models import Notification

log = structlog.get_logger(__name__)
ATTEMPTS = 8
LEASE = timedelta(minutes=5)
"""A mail whose sender was killed is tried again after this time, under the same id."""
FIRST_WAIT = timedelta(minutes=1)


@transaction.atomic
def claim_mails(limit: int, now: datetime) -> list[Notification]:
    """Claim due mails, and hide them from other processes for a while. No row is locked while the mail is sent."""
    rows = list(
        Notification.objects.select_for_update(skip_locked=True)
        .filter(sent=None, not_sent="", next_try__lte=now)
        .order_by("id")[:limit]
    )
    for row in rows:
        row.attempts += 1
        row.next_try = now + LEASE
    Notification.objects.bulk_update(rows, ["attempts", "next_try"])
    return rows


def send_mail(row: Notification, now: datetime) -> bool:
    """Send one mail. Returns whether it went out; otherwise the row says why not, and when it is tried again."""
    changes: dict[str, object]
    try:
        recipient = address_for(row)
        compose(row, recipient).send()
    except NoMailError as exc:
        changes = {"not_sent": str(exc)}
    except (OSError, SMTPException) as exc:
        log.warning("notification.refused", task=row.task_id, attempts=row.attempts, error=str(exc))
        changes = _later(row, now, f"the mail server did not accept it: {exc}")
    except Exception as exc:
        log.exception("notification.failed", task=row.task_id, attempts=row.attempts)
        changes = _later(row, now, sentence_of(exc))
    else:
        changes = {"sent": now, "recipient": recipient, "error": ""}
    Notification.objects.filter(pk=row.pk, attempts=row.attempts, sent=None).update(**changes)
    return "sent" in changes


def _later(row: Notification, now: datetime, error: str) -> dict[str, object]:
    if row.attempts >= ATTEMPTS:
        return {"error": error[:2000], "not_sent": f"given up after {plural(row.attempts, 'attempt')}"}
    return {"error": error[:2000], "next_try": now + FIRST_WAIT * 2 ** (row.attempts - 1)}
