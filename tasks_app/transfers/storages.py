"""Endpoints of this machine: those whose description names a folder. Between them the local twin copies files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Final, NamedTuple

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, OuterRef

from brokerage_app.grid.closed_storage import in_words
from brokerage_app.models import LinkValue, StorageEndpoint
from brokerage_app.vocabulary.snapshot import BLOCKED
from tasks_app.ddm.local_files import file_url
from tasks_app.domain import job_refusal_codes as codes
from tasks_app.worker_node.pilot.folder_away import why_away

CLOSENESS: Final = "AGIS_closeness"
"""Of a link in the network matrix; BLOCKED switches it off until somebody gives it another one."""


@dataclass(frozen=True, slots=True)
class Storage:
    """An endpoint with its folder. `why_not_read`, `why_not_written`: why it serves no transfers now; "" when it does.

    closed      why it is closed for a while: jobs could not store their outputs there, or, with `is_away`, its folder is away
    no_link_to  the sites to which the link from its site is switched off
    away        why its folder was away when the site looked last; "" when it was there
    holds_files it had something in it then: while it is empty, it is away
    """

    name: str
    site: str
    path: Path
    is_tape: bool
    why_not_read: str = ""
    why_not_written: str = ""
    closed: str = ""
    is_away: bool = False
    no_link_to: frozenset[str] = frozenset()
    away: str = ""
    holds_files: bool = False

    @property
    def is_there(self) -> bool:
        """Whether its folder can be seen now: not while its disk is not mounted. Who reads or writes never makes it."""
        return not self.folder_fault

    @property
    def folder_fault(self) -> str:
        """What is wrong with its folder now, as the end of a sentence; "" when it is there."""
        return self.away or why_away(self.path, holds_files=self.holds_files)


def local_storages() -> dict[str, Storage]:
    """All of them by name. One statement."""
    sites = StorageEndpoint.objects.exclude(path="").values("site_name")
    off = LinkValue.objects.filter(source=OuterRef("site_name"), destination__in=sites, key=CLOSENESS, value=BLOCKED)
    rows = StorageEndpoint.objects.exclude(path="").defer("data").annotate(off=ArraySubquery(off.values("destination")))
    seen = rows.annotate(away=F("folder__away"), holds_files=F("folder__holds_files"))
    return {row.name: _storage(row, row.off, row.away or "", bool(row.holds_files)) for row in seen}


def storage_addresses(stores: Mapping[str, Storage]) -> list[tuple[str, str, str]]:
    """Name, folder, and how addresses of files in it begin, in either way to write them."""
    return [
        (name, str(store.path), begins) for name, store in sorted(stores.items()) for begins in beginnings(store.path)
    ]


def beginnings(folder: Path) -> tuple[str, str]:
    """How addresses of files in a folder begin: there are two ways to write them."""
    url = file_url(folder).rstrip("/") + "/"
    return url, url.replace("file://localhost/", "file:///", 1)


def _storage(row: StorageEndpoint, no_link_to: list[str], away: str, holds_files: bool) -> Storage:
    closed, is_away = _why_closed(row), row.closed_until is not None and row.closed_reads
    return Storage(
        row.name,
        row.site_name,
        Path(row.path),
        row.is_tape,
        _why_not(row, row.blacklisted_read, "read") or (closed if is_away else ""),
        _why_not(row, row.blacklisted_write, "write") or closed,
        closed,
        is_away,
        frozenset(no_link_to),
        away,
        holds_files,
    )


def _why_not(row: StorageEndpoint, is_blacklisted: bool, way: str) -> str:
    doing = {"read": "reading", "write": "writing"}[way]
    if is_blacklisted:
        return f"{row.name} is blacklisted for {doing}"
    is_off = all(str(row.states.get(f"{way}_{net}", "")).upper() == "OFF" for net in ("wan", "lan"))
    return f"{doing} is switched off at {row.name}, over WAN and LAN" if is_off else ""


def _why_closed(row: StorageEndpoint) -> str:
    """As brokers do, it is closed until the watchdog opens it when the time has come."""
    if row.closed_until is None:
        return ""
    until = row.closed_until.astimezone(UTC)
    if row.closed_reads:
        return in_words(row.name, row.closed_why, until, is_away=True)
    return f"{row.name} is closed for writing until {until:%H:%M} UTC, since jobs could not store their outputs there"


class Shut(NamedTuple):
    """Why nothing is copied on a way now: code and sentence."""

    code: str
    said: str


def shut(source: str, destination: str, stores: Mapping[str, Storage]) -> Shut | None:
    """What closes the way between two storages of this machine; None when it is open, or one of them is none.

    What lies at its destination already is only read there. Folders are not looked at.
    """
    target = stores.get(destination)
    if target is not None and target.why_not_written and source != destination:
        return Shut(_code(target, target.why_not_written), target.why_not_written)
    return shut_from(source, destination, stores)


def shut_from(source: str, destination: str, stores: Mapping[str, Storage]) -> Shut | None:
    """The same of what another source would not have: its storage, or the link from its site."""
    origin, target = stores.get(source), stores.get(destination)
    if origin is None:
        return None
    if origin.why_not_read:
        return Shut(_code(origin, origin.why_not_read), origin.why_not_read)
    if target is not None and source != destination and target.site in origin.no_link_to:
        return Shut(codes.COPY_LINK_OFF, f"the link from {origin.site} to {target.site} is switched off")
    return None


def _code(store: Storage, why: str) -> str:
    if why != store.closed:
        return codes.COPY_STORAGE_OFF
    return codes.COPY_STORAGE_AWAY if store.is_away else codes.COPY_STORAGE_CLOSED
