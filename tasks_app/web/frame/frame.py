"""What the frame of every page shows beside the page itself: the time window and the scope that the address says."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.utils import timezone

from brokerage_app.models import GlobalShare, WorkQueue
from tasks_app.domain import window

SCOPE = ("share", "queue", "vo")
"""Parameters of addresses that narrow what is looked at; lists take them as filters."""
CACHE_S = 60.0
_choices: tuple[float, dict[str, list[str]]] = (0.0, {})


def scope_choices() -> dict[str, list[str]]:
    """Shares, work queues and VOs to choose from; up to a minute old."""
    global _choices
    if _choices[0] < time.monotonic():
        parents = GlobalShare.objects.exclude(parent=None).values("parent_id")
        leaves = GlobalShare.objects.exclude(name__in=parents).order_by("name").values_list("name", flat=True)
        queues = list(WorkQueue.objects.order_by("name").values_list("name", "vo"))
        found = {
            "share": list(leaves),
            "queue": sorted({name for name, _ in queues}),
            "vo": sorted({vo for _, vo in queues if vo}),
        }
        _choices = (time.monotonic() + CACHE_S, found)
    return _choices[1]


def forget() -> None:
    """The next page reads the choices anew."""
    global _choices
    _choices = (0.0, {})


def frame(request: HttpRequest) -> dict[str, Any]:
    """Context of every page. `carry` is what links to other sections take along; empty for anonymous visitors."""
    if not getattr(request, "user", None) or not request.user.is_authenticated:
        return {}
    given = request.GET
    kept = {name: given[name] for name in (*window.NAMES, *SCOPE) if given.get(name)}
    scope = {name: value for name, value in kept.items() if name in SCOPE}
    return {
        "frame": {
            "window": window.read(given, timezone.now()),
            "has_window": any(name in kept for name in window.NAMES),
            "windows": window.TITLES,
            "scope": [
                {"name": name, "value": given.get(name, ""), "choices": choices}
                for name, choices in scope_choices().items()
            ],
            "scope_words": ", ".join(scope.values()) or "All activities",
            "carry": f"?{urlencode(kept)}" if kept else "",
            "others": [(n, v) for n, v in given.items() if n not in (*window.NAMES, *SCOPE, "cursor", "view")],
        }
    }
