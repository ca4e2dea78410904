"""Endpoints of this machine: those whose description names a folder. Between them the local twin copies files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from brokerage_app.models import StorageEndpoint


@dataclass(frozen=True, slots=True)
class Storage:
    """An endpoint with its folder. `why_not_read`, `why_not_written`: why it serves no transfers now; "" when it does."""

    name: str
    site: str
    path: Path
    is_tape: bool
    why_not_read: str = ""
    why_not_written: str = ""

    @property
    def is_there(self) -> bool:
        """Whether its folder can be seen now: not while its disk is not mounted. Who reads or writes never makes it."""
        return os.path.isdir(self.path)


def local_storages() -> dict[str, Storage]:
    """All of them by name. One statement."""
    rows = StorageEndpoint.objects.exclude(path="").defer("data")
    return {row.name: _storage(row) for row in rows}


def _storage(row: StorageEndpoint) -> Storage:
    return Storage(
        row.name,
        row.site_name,
        Path(row.path),
        row.is_tape,
        _why_not(row, row.blacklisted_read, "read"),
        _why_not(row, row.blacklisted_write, "write"),
    )


def _why_not(row: StorageEndpoint, is_blacklisted: bool, way: str) -> str:
    doing = {"read": "reading", "write": "writing"}[way]
    if is_blacklisted:
        return f"{row.name} is blacklisted for {doing}"
    is_off = all(str(row.states.get(f"{way}_{net}", "")).upper() == "OFF" for net in ("wan", "lan"))
    return f"{doing} is switched off at {row.name}, over WAN and LAN" if is_off else ""
