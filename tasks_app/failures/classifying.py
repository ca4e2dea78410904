"""What people know of an error is written down here: a ticket, until when it is expected, and what to do about it."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from jedisite import audit
from tasks_app.models import ErrorFingerprint

FIELDS = ("ticket", "known_until", "advice", "cause")


@transaction.atomic
def classify(
    number: int, *, ticket: str, known_until: datetime | None, advice: str, cause: str, by: str, reason: str
) -> ErrorFingerprint:
    """Write down what is known of a fingerprint, and in the audit trail who said so and why.

    Empty values take away what was known. Raises ErrorFingerprint.DoesNotExist.
    """
    found = ErrorFingerprint.objects.select_for_update().get(pk=number)
    before = {name: _plain(getattr(found, name)) for name in FIELDS}
    found.ticket, found.known_until, found.advice, found.cause = ticket, known_until, advice, cause
    after = {name: _plain(getattr(found, name)) for name in FIELDS}
    changed = {name: [before[name], after[name]] for name in FIELDS if before[name] != after[name]}
    if changed:
        known = any(after.values())
        found.classified_by, found.classified_at = (by[:128], timezone.now()) if known else ("", None)
        found.save(update_fields=[*FIELDS, "classified_by", "classified_at"])
        audit.record(by, "error.classify", "fingerprint", number, reason=reason, details={"changed": changed})
    return found


def _plain(value: str | datetime | None) -> str:
    return value.isoformat() if isinstance(value, datetime) else value or ""
