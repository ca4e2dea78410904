"""Files on this machine's disks: their addresses and checksums, and how they are removed."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO
from urllib.parse import quote, unquote, urlsplit

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Q

from brokerage_app.models import StorageEndpoint
from jedisite.processes.logs import sentence_of
from tasks_app.ddm.addresses import storage_path
from tasks_app.models import CatalogueFile

log = structlog.get_logger(__name__)
CHUNK = 1024 * 1024


def remove_from_disk(files: Iterable[tuple[str, str, str]]) -> None:
    """After the commit: remove those files, by address, scope and name, that lie in their place in a storage of this machine
    and that nothing names any more.

    One file has many names: `file:///x`, `file://localhost/x`, `..`, links. What counts is where a name leads.
    """
    rows, root = list(files), Path(settings.JEDI_STORAGE).resolve()
    own = {path: url for url, scope, lfn in rows if (path := _resolved(url)) == storage_path(root, scope, lfn)}
    if len(own) < len(rows):
        own |= _in_storages(rows)
    if not own:
        return

    def unlink() -> None:
        # Whatever names one of these files has its address or its name, or is a link to it of that name.
        texts_of = {text for path, url in own.items() for text in (url, file_url(path), path.as_uri())}
        same = Q(url__in=texts_of) | Q(lfn__in={path.name for path in own})
        named = {_resolved(url) for url in CatalogueFile.objects.filter(same).values_list("url", flat=True)}
        for path in sorted(own.keys() - named):
            try:
                path.unlink(missing_ok=True)
            except OSError as exc:  # the others go all the same
                log.warning("catalogue.file_stays", path=str(path), error=sentence_of(exc))

    transaction.on_commit(unlink, robust=True)


def _in_storages(rows: Iterable[tuple[str, str, str]]) -> dict[Path, str]:
    """Those that lie in their place in another storage of this machine."""
    roots = [Path(path).resolve() for path in StorageEndpoint.objects.exclude(path="").values_list("path", flat=True)]
    return {
        path: url
        for url, scope, lfn in rows
        if (path := _resolved(url)) and any(path == storage_path(root, scope, lfn) for root in roots)
    }


def _resolved(url: str) -> Path | None:
    """The file to which a local URL leads; None when it leads nowhere on this machine."""
    try:
        path = path_of(url)
        return path.resolve() if path.is_absolute() else None
    except (ValueError, OSError, RuntimeError):
        return None


def file_url(path: Path) -> str:
    return "file://localhost" + quote(str(path))


def path_of(url: str) -> Path:
    """The path that a local URL names. Raises ValueError for any other URL."""
    parts = urlsplit(url)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise ValueError(f"{url} is not a file on this machine")
    return Path(unquote(parts.path))


def adler32(path: Path) -> str:
    """Adler-32 of a file's content, 8 hexadecimal digits."""
    with path.open("rb") as stream:
        return adler32_of(stream)


def adler32_of(stream: IO[bytes]) -> str:
    """The same of what is left of a stream."""
    value = 1
    while block := stream.read(CHUNK):
        value = zlib.adler32(block, value)
    return f"{value:08x}"
