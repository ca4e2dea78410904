"""Addresses of files that pilots report: on this machine a file lies where its scope and name put it, or it is not taken.

What is taken becomes an input of other jobs, which a pilot of this machine copies with its own rights. So what is in the
catalogue is looked at again when it is used.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from django.conf import settings

from brokerage_app.models import StorageEndpoint

WAYS = ("write_lan", "write_wan")
"""Protocols of an endpoint's description by which pilots write."""


class Roots:
    """The folders of this machine that pilots write outputs to. The table of endpoints is read when it is needed, once."""

    def __iter__(self) -> Iterator[Path]:
        yield from self.own
        yield from self._of_endpoints

    @cached_property
    def own(self) -> list[Path]:
        """The site's own storage, as it is configured and as it is found."""
        root = Path(settings.JEDI_STORAGE)
        return [root, root.resolve()]

    @cached_property
    def served(self) -> list[list[Path]]:
        """The folders that this site serves files from, each as it is configured and as it is found: its own storage, and
        those of endpoints of this machine."""
        rows = StorageEndpoint.objects.exclude(path="").order_by("name").values_list("path", flat=True)
        return [self.own, *([Path(path), Path(path).resolve()] for path in rows)]

    def places(self, surl: str, scope: str | None, lfn: str) -> Iterator[Path]:
        """Where a file of that scope and name may lie in what is served, without links: first where its address says."""
        if is_below(surl, scope, lfn, self.own):
            yield storage_path(self.own[-1], scope or "", lfn)
        folders = sorted(self.served, key=lambda pair: not is_below(surl, scope, lfn, pair))
        yield from dict.fromkeys(storage_path(real, scope or "", lfn) for _, real in folders)

    def serve(self, surl: str, scope: str | None, lfn: str) -> bool:
        """Whether an address is that of the place of such a file in what is served."""
        return any(is_below(surl, scope, lfn, pair) for pair in self.served)

    @cached_property
    def _of_endpoints(self) -> list[Path]:
        rows = StorageEndpoint.objects.values_list("path", "data__arprotocols")
        return [Path(path) for one, told in rows for path in ([one] if one else _written_to(told))]


def storage_path(root: Path, scope: str, lfn: str) -> Path:
    """Where a file lies in a storage element: the layout that PanDA's pilots use."""
    return root.joinpath(_below(scope, lfn))


def _below(scope: str, lfn: str) -> str:
    digest = hashlib.md5(f"{scope}:{lfn}".encode(), usedforsecurity=False).hexdigest()
    return "/".join(part for part in (*scope.split("."), digest[:2], digest[2:4], lfn) if part)


def is_its_place(surl: str, scope: str | None, lfn: str, roots: Roots) -> bool:
    """Whether a file of that scope and name may be at this address: anywhere else than on this machine, or in its place."""
    try:
        scheme = urlsplit(surl).scheme
    except ValueError:
        return False
    return scheme != "file" or is_below(surl, scope, lfn, roots)


def is_below(surl: str, scope: str | None, lfn: str, roots: Iterable[Path]) -> bool:
    """Whether this address is that of the place of a file of that scope and name below one of these folders."""
    for begin in ("file://localhost/", "file:///"):
        if surl.startswith(begin):
            # Decoded, as all readers do; PanDA's pilot joins the pieces with more slashes than one.
            path = re.sub("/+", "/", "/" + unquote(surl.removeprefix(begin)))
            plain = "/" not in lfn and ".." not in path.split("/")
            below = _below(scope or "", lfn)
            return plain and any(path == f"{root}/{below}" for root in roots)
    return False


def _written_to(protocols: Any) -> list[str]:
    """Folders of this machine in an endpoint's description, which is somebody else's: anything may be in it."""
    told = protocols if isinstance(protocols, dict) else {}
    ways = [one for way in WAYS for one in (told.get(way) or []) if isinstance(one, dict)]
    here = [one for one in ways if str(one.get("endpoint", "")).rstrip("/") in ("file:", "file://localhost")]
    return [path for one in here if (path := str(one.get("path"))).startswith("/")]
