"""Further switches of queues: catchall (`a,b=1`) and params (a map), of which params win. Values as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def switches_of(catchall: str, params: Mapping[str, Any]) -> dict[str, str]:
    """All switches of a queue by name; a flag has the value "". One that params set to false or null is not there."""
    found: dict[str, str] = {}
    for item in catchall.split(","):
        name, _, value = item.strip().partition("=")
        if name:
            found[name.strip()] = value.strip()
    for name, given in params.items():
        if given is None or given is False:
            found.pop(name, None)
        else:
            found[name] = _text(given)
    return found


def _text(value: Any) -> str:
    if value is True:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def whole(switches: Mapping[str, str], *names: str) -> int:
    """The first of these switches that is a positive whole number; 0 without one."""
    for name in names:
        value = switches.get(name, "")
        if value.isascii() and value.isdecimal() and int(value) > 0:
            return int(value)
    return 0


def number(switches: Mapping[str, str], name: str) -> float:
    """A switch as a number; 0 when it is missing or not one."""
    try:
        return float(switches.get(name) or 0)
    except ValueError:
        return 0.0
