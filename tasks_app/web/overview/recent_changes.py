"""What somebody, or the system, changed in a window: statuses of queues, and what people edited."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.urls import reverse

from brokerage_app.models import GdpConfig, QueueStatusLog
from jedisite.models import AuditEntry
from tasks_app.commands.act_words import happened, kind_of

MOST_CHANGES: Final = 40
LOOKED_THROUGH: Final = 5000
"""Entries of the audit trail among which changes are looked for."""
CHANGING: Final = ("globalshare", "gdpconfig", "agent", "queue", "workqueue", "retryrule", "storageendpoint", "grid")
ELSEWHERE: Final = ("queue.status", "agent.run")
"""Actions on those that are told by the history of status, or change nothing."""


@dataclass(frozen=True, slots=True)
class Change:
    """Something that somebody, or the system, changed. `url` is "" where no page shows it."""

    at: datetime
    who: str
    what: str
    why: str
    url: str
    number: int = 0


def changes(since: datetime, until: datetime) -> list[Change]:
    """What changed in a window, the latest first: statuses of queues, and what people edited. Two queries."""
    moved = QueueStatusLog.objects.filter(at__gte=since, at__lt=until).exclude(old="").order_by("-id")
    found = [
        Change(
            row.at,
            row.by,
            f"{row.queue}: {row.old} → {row.new}",
            row.reason,
            reverse("dashboard:site", args=[row.queue]),
        )
        for row in moved[:MOST_CHANGES]
    ]
    latest = AuditEntry.objects.order_by("-id").values("id")[:LOOKED_THROUGH]
    entries = AuditEntry.objects.filter(id__in=latest, at__gte=since, at__lt=until, object_type__in=CHANGING)
    told = list(entries.exclude(action__in=ELSEWHERE).order_by("-id")[:MOST_CHANGES])
    named = _parameters_of(told)
    found += [
        Change(entry.at, entry.actor, _edited(entry, named.get(entry.object_id, "")), entry.reason, _page_of(entry))
        for entry in told
    ]
    return sorted(found, key=lambda change: change.at, reverse=True)[:MOST_CHANGES]


def _parameters_of(entries: list[AuditEntry]) -> dict[str, str]:
    """Names of the parameters whose rows were edited, by the number of the row. At most one query."""
    found, unnamed = {}, []
    for entry in (entry for entry in entries if entry.object_type == "gdpconfig"):
        details = entry.details if isinstance(entry.details, dict) else {}
        values = details.get("values", details)
        if isinstance(values, dict) and values.get("key"):
            row = GdpConfig(component=values.get("component") or "", key=values["key"], vo=values.get("vo") or None)
            found[entry.object_id] = str(row)
        elif entry.object_id.isdecimal():
            unnamed.append(int(entry.object_id))
    if unnamed:
        found |= {str(row.pk): str(row) for row in GdpConfig.objects.filter(pk__in=unnamed)}
    return found


def _edited(entry: AuditEntry, name: str) -> str:
    changed = (entry.details or {}).get("changed") if isinstance(entry.details, dict) else None
    how = ", ".join(map(str, changed))[:120] if isinstance(changed, dict) else ""
    what = f"{kind_of(entry.object_type)} {name or entry.object_id}: {happened(entry.action)}"
    return f"{what} ({how})" if how else what


def _page_of(entry: AuditEntry) -> str:
    page = {"globalshare": "share", "agent": "agent", "queue": "site"}.get(entry.object_type)
    return reverse(f"dashboard:{page}", args=[entry.object_id]) if page and entry.object_id else ""
