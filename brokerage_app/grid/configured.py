"""The configuration that holds now, read from gdp_config and kept in the process for some seconds."""

from __future__ import annotations

import json
import threading
import time
from typing import Final

from brokerage_app.models.config import GdpConfig
from brokerage_app.policy.configuration import Configuration, Row

CACHE_S: Final = 10.0
"""A change is seen by every process within this time."""

_lock = threading.Lock()
_kept: tuple[float, Configuration] | None = None


def configuration() -> Configuration:
    """What holds now, at most CACHE_S old: one statement when it is read anew, none else."""
    global _kept
    kept, now = _kept, time.monotonic()
    if kept is not None and now - kept[0] < CACHE_S:
        return kept[1]
    with _lock:
        kept = _kept  # another thread may have read it meanwhile
        if kept is None or now - kept[0] >= CACHE_S:
            kept = _kept = (now, read())
        return kept[1]


def forget() -> None:
    """Read the table at the next call: after a change by this process."""
    global _kept
    _kept = None


def read() -> Configuration:
    """The rows of the table as they are."""
    rows = GdpConfig.objects.values_list("app", "component", "key", "value", "type", "vo", "value_json")
    return Configuration(
        tuple(
            Row(app, component, key, value or "", type, vo or "", "" if data is None else json.dumps(data))
            for app, component, key, value, type, vo, data in rows
        )
    )
