"""Stores attention items: the findings of a pass, and what people did about them. Nothing else writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection, transaction
from django.utils import timezone

from jedisite import audit
from tasks_app.attention import bell
from tasks_app.attention.rules.findings import Found
from tasks_app.models import AttentionItem

FLAPS: Final = timedelta(minutes=15)
"""What comes back within this time was never gone: what people said about it holds."""
LONGEST_SNOOZE: Final = timedelta(days=14)
LONGEST_TICKET = AttentionItem._meta.get_field("ticket").max_length or 0
LONGEST_NOTE = AttentionItem._meta.get_field("note").max_length or 0
LONGEST_KEY = AttentionItem._meta.get_field("key").max_length or 0

_KEEP = """
WITH found AS MATERIALIZED (
    SELECT DISTINCT ON (key) * FROM jsonb_to_recordset(%(found)s::jsonb)
        AS f (key text, kind text, tone text, sentence text, since timestamptz, size bigint, unit text, owner text, path text,
              rank float8)
     ORDER BY key, rank DESC),
gone AS (
    UPDATE attention_items SET gone_at = %(now)s
     WHERE kind = ANY(%(kinds)s) AND gone_at IS NULL AND key NOT IN (SELECT key FROM found)),
kept AS (
    INSERT INTO attention_items AS a
           (key, kind, tone, sentence, since, size, unit, owner, path, rank, first_seen, seen_at, acknowledged_by, ticket, note)
    SELECT key, kind, tone, sentence, coalesce(since, %(now)s), size, unit, owner, path, rank, %(now)s, %(now)s, '', '', ''
      FROM found ORDER BY key
        ON CONFLICT (key) DO UPDATE
       SET kind = excluded.kind, tone = excluded.tone, sentence = excluded.sentence, size = excluded.size,
           unit = excluded.unit, owner = excluded.owner, path = excluded.path, rank = excluded.rank, seen_at = %(now)s,
           gone_at = NULL,
           -- A finding that does not know since when it is true keeps the moment at which it was found first.
           since = CASE WHEN excluded.since <> %(now)s OR a.gone_at < %(flaps)s THEN excluded.since ELSE a.since END,
           first_seen = CASE WHEN a.gone_at < %(flaps)s THEN %(now)s ELSE a.first_seen END,
           acknowledged_at = CASE WHEN a.gone_at < %(flaps)s THEN NULL ELSE a.acknowledged_at END,
           acknowledged_by = CASE WHEN a.gone_at < %(flaps)s THEN '' ELSE a.acknowledged_by END,
           ticket = CASE WHEN a.gone_at < %(flaps)s THEN '' ELSE a.ticket END,
           note = CASE WHEN a.gone_at < %(flaps)s THEN '' ELSE a.note END
    RETURNING 1)
SELECT count(*) FROM kept
"""


def forget(before: datetime) -> int:
    """Delete items that were gone before a time. Returns how many."""
    return AttentionItem.objects.filter(gone_at__lt=before).delete()[0]


class AttentionError(ValueError):
    """An action on an item that is not possible; `field` names the faulty field, "" means the item itself."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@transaction.atomic
def keep(kinds: Iterable[str], found: Iterable[Found], now: datetime) -> int:
    """Keep the findings of these kinds; items of theirs that were not found again are gone. Returns how many there are.

    What comes back after a while is a new item: what people said of the old one does not hold for it. A snooze does.
    """
    rows = [
        {
            "key": f"{one.kind}:{one.key}"[:LONGEST_KEY],
            "kind": one.kind,
            "tone": one.tone,
            "sentence": one.sentence[:500],
            "since": one.since.isoformat() if one.since else None,
            "size": one.size,
            "unit": one.unit,
            "owner": one.owner[:128],
            "path": one.path[:500],
            "rank": one.rank,
        }
        for one in found
    ]
    values: dict[str, Any] = {"found": json.dumps(rows), "kinds": sorted(kinds), "now": now, "flaps": now - FLAPS}
    with connection.cursor() as cursor:
        cursor.execute(_KEEP, values)
        return int(cursor.fetchone()[0])


def acknowledge(item_id: int, *, by: str, reason: str) -> AttentionItem:
    """Mark an item as taken on: the bell no longer counts it. Raises AttentionError, and AttentionItem.DoesNotExist."""
    return _change(item_id, "acknowledge", by, reason, acknowledged_by=by[:128], acknowledged_at=timezone.now())


def snooze(item_id: int, until: datetime, *, by: str, reason: str) -> AttentionItem:
    """Hide an item until a time, at most LONGEST_SNOOZE ahead. Raises as `acknowledge` does."""
    now = timezone.now()
    if until <= now:
        raise AttentionError("until", "The end of a snooze must be in the future.")
    if until > now + LONGEST_SNOOZE:
        raise AttentionError("until", f"A snooze lasts {LONGEST_SNOOZE.days} days at most.")
    return _change(item_id, "snooze", by, reason, snoozed_until=until)


def link_ticket(item_id: int, ticket: str, *, by: str, reason: str) -> AttentionItem:
    """Link a ticket to an item; an empty ticket removes the link. Raises as `acknowledge` does."""
    if len(ticket) > LONGEST_TICKET:
        raise AttentionError("ticket", f"A ticket's name or address has at most {LONGEST_TICKET} characters.")
    return _change(item_id, "ticket", by, reason, ticket=ticket.strip())


def reopen(item_id: int, *, by: str, reason: str) -> AttentionItem:
    """Undo acknowledgement and snooze. Raises as `acknowledge` does."""
    changes = {"acknowledged_by": "", "acknowledged_at": None, "snoozed_until": None}
    return _change(item_id, "reopen", by, reason, **changes)


def _change(item_id: int, action: str, by: str, reason: str, **changes: Any) -> AttentionItem:
    """Change an item, and recount the bell at once for this process."""
    item = _stored(item_id, action, by, reason, **changes)
    bell.forget()
    return item


@transaction.atomic
def _stored(item_id: int, action: str, by: str, reason: str, **changes: Any) -> AttentionItem:
    if not reason.strip():
        raise AttentionError("reason", "Give a reason in a few words.")
    if len(reason) > LONGEST_NOTE:
        raise AttentionError("reason", f"A reason has at most {LONGEST_NOTE} characters.")
    item = AttentionItem.objects.select_for_update().get(pk=item_id)
    if item.gone_at is not None:
        raise AttentionError("", f"This item has been over since {item.gone_at:%Y-%m-%d %H:%M} UTC.")
    changes["note"] = reason.strip()
    for name, value in changes.items():
        setattr(item, name, value)
    item.save(update_fields=list(changes))
    details = {name: str(value) for name, value in changes.items() if name != "note" and value}
    audit.record(
        by, f"attention.{action}", "attention", item.pk, reason=reason.strip(), details={"item": item.key, **details}
    )
    return item
