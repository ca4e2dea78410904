"""Local storages with real files in them, and the mover's turns by a clock that is passed in."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import transaction

from brokerage_app.grid import configured
from brokerage_app.models import GdpConfig, StorageEndpoint
from jedisite.database.sql import hot_cursor
from tasks_app.ddm.addresses import storage_path
from tasks_app.ddm.local_files import file_url
from tasks_app.domain.transfer_states import TransferKind
from tasks_app.models import CatalogueDataset, CatalogueFile, TransferRequest, TransferRule
from tasks_app.transfers.moving import Moved, move
from tasks_app.transfers.requesting import Wanted, WantedFile, add_rules

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
SCOPE = "lab"


def content_of(lfn: str, size: int) -> bytes:
    return (lfn.encode() * (size // len(lfn) + 1))[:size]


@dataclass
class Storages:
    """Storages below a folder. `now` is the mover's clock."""

    root: Path
    now: datetime = field(default=START)

    def add(self, name: str, site: str = "", **more: Any) -> Path:
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        StorageEndpoint.objects.create(name=name, site_name=site or f"SITE_{name}", path=str(folder), **more)
        return folder

    def path(self, endpoint: str, lfn: str) -> Path:
        return storage_path(self.root / endpoint, SCOPE, lfn)

    def put(self, endpoint: str, lfn: str, content: bytes) -> Path:
        place = self.path(endpoint, lfn)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        return place

    def dataset(self, name: str, endpoint: str, lfns: Iterable[str], size: int = 1000) -> None:
        """A dataset whose files lie at an endpoint."""
        dataset, _ = CatalogueDataset.objects.get_or_create(name=name, defaults={"scope": SCOPE, "open": False})
        for lfn in lfns:
            content = content_of(lfn, size)
            place = self.put(endpoint, lfn, content)
            CatalogueFile.objects.create(
                dataset=dataset,
                lfn=lfn,
                scope=SCOPE,
                guid=lfn,
                size=size,
                adler32=f"{zlib.adler32(content):08x}",
                endpoint=endpoint,
                url=file_url(place),
            )

    def rule(self, destination: str, lfns: Iterable[str], kind: TransferKind = TransferKind.COPY, **more: Any) -> int:
        files = {f.lfn: f for f in CatalogueFile.objects.filter(lfn__in=list(lfns))}
        wanted = [WantedFile(f.scope, f.lfn, f.size, f.adler32) for _, f in sorted(files.items())]
        with transaction.atomic(), hot_cursor() as cursor:
            return add_rules(cursor, [Wanted(kind, destination, wanted, **more)])[0]

    def turn(self, seconds: float = 0) -> Moved:
        self.now += timedelta(seconds=seconds)
        return move(self.now)

    def parts(self) -> list[Path]:
        return sorted(self.root.rglob("*.part"))


def configure(key: str, value: object, of: str = "") -> None:
    """Set a parameter of the mover, for a link or an endpoint if one is given."""
    key = f"{key}_{of}" if of else key
    GdpConfig.objects.update_or_create(
        app="jedi", component="mover", key=key, defaults={"value": str(value), "type": "float"}
    )
    configured.forget()


def rule(rule_id: int) -> TransferRule:
    return TransferRule.objects.get(pk=rule_id)


def states(rule_id: int) -> list[str]:
    return list(TransferRequest.objects.filter(rule_id=rule_id).order_by("id").values_list("status", flat=True))
