"""The audit trail: who did what. Call inside the transaction that does it."""

from __future__ import annotations

from typing import Any

from jedisite.models import AuditEntry


def record(
    actor: str,
    action: str,
    object_type: str,
    object_id: int | str,
    *,
    reason: str = "",
    details: dict[str, Any] | None = None,
) -> None:
    AuditEntry.objects.create(
        actor=actor[:128],
        action=action,
        object_type=object_type,
        object_id=str(object_id)[:64],
        reason=reason,
        details=details,
    )
