"""The audit trail: who did what. Call inside the transaction that does it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import Q, QuerySet

from jedisite.models import AuditEntry
from jedisite.vocabulary.roles import Caller, Right


def record(
    actor: str,
    action: str,
    object_type: str,
    object_id: int | str,
    *,
    reason: str = "",
    details: dict[str, Any] | None = None,
) -> AuditEntry:
    (entry,) = record_many(actor, action, object_type, [object_id], reason=reason, details=details)
    return entry


def record_many(
    actor: str,
    action: str,
    object_type: str,
    object_ids: Iterable[int | str],
    *,
    reason: str = "",
    details: dict[str, Any] | None = None,
) -> list[AuditEntry]:
    """One entry for each of several objects to which the same was done."""
    return AuditEntry.objects.bulk_create(
        AuditEntry(
            actor=actor[:128],
            action=action,
            object_type=object_type,
            object_id=str(object_id)[:64],
            reason=reason,
            details=details,
        )
        for object_id in object_ids
    )


PRIVATE = ("user", "group", "token", "apitoken", "foreignidentity", "device", "devicelogin", "secret")
"""Kinds of objects that are people's own affair: accounts and their keys."""


def visible_to(caller: Caller) -> QuerySet[AuditEntry]:
    """What of the trail a caller may read: those who run the grid all of it; others what concerns nobody's account but
    their own, and all that they did themselves."""
    if caller.may(Right.OPERATE) or caller.may(Right.STEER):
        return AuditEntry.objects.all()
    return AuditEntry.objects.filter(~Q(object_type__in=PRIVATE) | Q(actor=caller.name))
