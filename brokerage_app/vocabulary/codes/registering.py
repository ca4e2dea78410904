"""How a code of brokerage is made known."""

from __future__ import annotations

from jedisite.refusals import Fixer, Group, Severity, register


def code(code: str, title: str, group: Group, who: Fixer, advice: str, *, severity: Severity = "warning") -> str:
    """The code itself, once it is registered with what it means and what would help."""
    return register(code, title, group, severity=severity, who_can_fix=who, advice=advice).code
