"""Writes notes and hand-overs of shifters, and their acknowledgement. Nothing else writes them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.db.models.functions import Now

from tasks_app.models import Handover, ShiftNote
from tasks_app.models.shift import LONGEST_NOTE, LONGEST_SUMMARY

MOST_NOTES: Final = 200
MOST_HANDOVERS: Final = 20
"""So many one account may write in a day."""
DAY: Final = timedelta(days=1)


class LogbookError(ValueError):
    """Something that cannot be written, in a sentence; `field` names the faulty field, "" is none."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def add_note(text: str, *, by: str, now: datetime) -> ShiftNote:
    """Keep a note. Raises LogbookError."""
    text = _plain("text", text, LONGEST_NOTE, "A note")
    if ShiftNote.objects.filter(by=by, at__gt=now - DAY).count() >= MOST_NOTES:
        raise LogbookError("text", f"An account may write {MOST_NOTES} notes in 24 hours.")
    return ShiftNote.objects.create(by=by, at=now, text=text)


def hand_over(summary: str, since: datetime, until: datetime, *, by: str, now: datetime) -> Handover:
    """Hand over the shift from `since` to `until`. Raises LogbookError."""
    summary = _plain("summary", summary, LONGEST_SUMMARY, "A summary")
    if since > now:
        raise LogbookError("since", "A shift that is handed over must have begun.")
    if Handover.objects.filter(by=by, at__gt=now - DAY).count() >= MOST_HANDOVERS:
        raise LogbookError("summary", f"An account may hand over {MOST_HANDOVERS} times in 24 hours.")
    return Handover.objects.create(by=by, at=now, since=since, until=until, summary=summary)


def acknowledge(handover_id: int, *, by: str) -> None:
    """Acknowledge what somebody else handed over; the first one counts. Raises LogbookError, and Handover.DoesNotExist."""
    waiting = Handover.objects.filter(pk=handover_id, acknowledged_at__isnull=True).exclude(by=by)
    if waiting.update(acknowledged_by=by, acknowledged_at=Now()):
        return
    found = Handover.objects.get(pk=handover_id)
    if found.acknowledged_at is not None:
        when = f"{found.acknowledged_at:%Y-%m-%d %H:%M}"
        raise LogbookError("", f"{found.acknowledged_by} acknowledged this hand-over at {when} UTC.")
    raise LogbookError("", "Somebody else must acknowledge your hand-over.")


def _plain(field: str, text: str, longest: int, what: str) -> str:
    """A text in lines, without other control characters. Raises LogbookError for one that is empty or too long."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", " ").strip()
    plain = "".join(letter for letter in lines if letter == "\n" or letter.isprintable())
    if not plain:
        raise LogbookError(field, f"{what} must not be empty.")
    if len(plain) > longest:
        raise LogbookError(field, f"{what} may have {longest} characters; this one has {len(plain)}.")
    return plain
