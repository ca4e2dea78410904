"""Rules of other apps on what needs attention. They add them in `AppConfig.ready()`; the slower rounds apply them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

from tasks_app.attention.rules.findings import Found, Kind, add_kind

AddedRule = Callable[[datetime], Iterable[Found]]
ADDED: Final[dict[str, AddedRule]] = {}
"""By the kind of what they find."""


def add(name: str, kind: Kind, rule: AddedRule) -> None:
    """Apply `rule`, which gets the time of the round and finds items of this kind. Raises ValueError when the name is taken."""
    add_kind(name, kind)
    ADDED[name] = rule
