"""Registration of the refusal codes of brokerage."""

from __future__ import annotations

from jedisite.refusals import Fixer, Group, Severity, register


def code(code: str, title: str, group: Group, who: Fixer, advice: str, *, severity: Severity = "warning") -> str:
    """Register a code with its meaning and advice, and return it."""
    return register(code, title, group, severity=severity, who_can_fix=who, advice=advice).code
