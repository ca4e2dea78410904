"""Columns of the audit trail."""

from __future__ import annotations

from jedisite.models import AuditEntry
from jedisite.web.columns import Column, Columns

AUDIT = Columns(
    AuditEntry,
    (
        Column("id", "Entry", "id", shown=False),
        Column("at", "When", "time", help="UTC"),
        Column("actor", "Who"),
        Column("action", "What", "code"),
        Column("object_type", "Kind", shown=False, help="kind of the object"),
        Column("object_id", "Object"),
        Column("reason", "Why", "sentence"),
        Column("details", "Details", "sentence"),
    ),
)
