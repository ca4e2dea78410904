"""The registry of refusal codes.

Whatever stops a task, a job or a file from moving on carries a code from here, together with a sentence and
numbers of its own. The code is stable and counted; the registry says once what it means, who can change it and what
would help. Each app registers its own codes at import (`brokerage_app/vocabulary/codes`,
`tasks_app/domain/refusal_codes.py`, ...).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, get_args

Group = Literal[
    "state",
    "resources",
    "time",
    "software",
    "data",
    "network",
    "policy",
    "capacity",
    "throttle",
    "input",
    "events",
    "weight",
    "permission",
]
Severity = Literal["info", "warning", "error"]
"""`info` passes by itself, `warning` passes when somebody or something elsewhere acts, `error` needs a change."""
Fixer = Literal["nobody", "user", "site", "shifter", "production", "expert"]
"""`shifter` and `production` are the roles of that name: who sets the status of queues, and who steers everybody's tasks."""

_CODE: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


class DuplicateRefusalError(ValueError):
    """Two meanings for one code."""


class UnknownRefusalError(LookupError):
    """A refusal used a code that is not registered."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What one code means. `advice` says what would help, in one sentence to the person in `who_can_fix`."""

    code: str
    title: str
    group: Group
    severity: Severity
    who_can_fix: Fixer
    advice: str


_registry: dict[str, Refusal] = {}


def register(code: str, title: str, group: Group, *, severity: Severity, who_can_fix: Fixer, advice: str) -> Refusal:
    """Make a code known and return its record.

    Raises DuplicateRefusalError when the code has another meaning already (the same record twice is harmless, so a
    module may be loaded again), and ValueError when code, group, severity or fixer are not well formed.
    """
    if not _CODE.fullmatch(code):
        raise ValueError(f"refusal code {code!r} must be lower-case words joined by underscores")
    for value, allowed in ((group, Group), (severity, Severity), (who_can_fix, Fixer)):
        if value not in get_args(allowed):
            raise ValueError(f"refusal {code}: {value!r} is not one of {', '.join(get_args(allowed))}")
    refusal = Refusal(code, title, group, severity, who_can_fix, advice)
    known = _registry.get(code)
    if known is not None and known != refusal:
        raise DuplicateRefusalError(f"refusal code {code!r} is registered already as {known.title!r}")
    _registry[code] = refusal
    return refusal


def get(code: str) -> Refusal:
    """The record of a code; raises UnknownRefusalError, so that nothing is refused without an explanation."""
    try:
        return _registry[code]
    except KeyError:
        raise UnknownRefusalError(f"refusal code {code!r} is not registered") from None


def checked(code: str) -> str:
    """The code itself, for whoever is about to store or emit it; raises UnknownRefusalError."""
    return code if code in _registry else get(code).code


def all_codes() -> tuple[str, ...]:
    """Every registered code in alphabetical order."""
    return tuple(sorted(_registry))
