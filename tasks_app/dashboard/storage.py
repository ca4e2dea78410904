"""Reading small pieces of files in the local storage element, for the pages. What is read is bounded and untrusted."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from django.conf import settings

from tasks_app.ddm import local

LOG_MEMBERS = ("payload.stdout", "payload.stderr", "pilot.log", "pilotlog.txt")
UNPACKED_LIMIT = 256 * 1024 * 1024
MEMBER_LIMIT = 5000


class StorageError(Exception):
    """A file that cannot be shown; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a text file: `skipped` bytes before it are left out."""

    name: str
    text: str
    size: int
    skipped: int


def path_of(surl: str | None, lfn: str, *, scope: str | None) -> Path:
    """The path of a file in the local storage element, from its URL or else from its scope and name.

    Raises StorageError when the URL is not a local one or points out of the storage element, or when no file is there.
    """
    root = Path(settings.JEDI_STORAGE).resolve()
    if surl:
        try:
            path = local.path_of(surl)
        except ValueError as exc:
            raise StorageError(f"The file lies at {surl}, which this site cannot read itself.") from exc
    else:
        path = local.storage_path(root, scope or "", lfn)
    resolved = path.resolve()
    if not resolved.is_relative_to(root):
        raise StorageError("The file lies outside of this site's storage.")
    if not resolved.is_file():
        raise StorageError(f"{lfn} is not in this site's storage (yet).")
    return resolved


def small_file(path: Path, limit: int) -> bytes:
    """The content of a file of at most `limit` bytes; raises StorageError when it is larger or unreadable."""
    try:
        with path.open("rb") as opened:
            content = opened.read(limit + 1)
    except OSError as exc:
        raise StorageError(f"{path.name} cannot be read: {exc.strerror}.") from exc
    if len(content) > limit:
        raise StorageError(f"{path.name} is larger than the {limit // 1000} kB that are shown here.")
    return content


def tails_of_log(path: Path, *, limit: int) -> list[Tail]:
    """The last `limit` bytes of each text of interest in a log archive (tar or tar.gz), in the order of LOG_MEMBERS.

    Raises StorageError when it is no such archive or unpacks to more than UNPACKED_LIMIT bytes.
    """
    found: dict[str, Tail] = {}
    try:
        with (
            path.open("rb") as raw,
            _unpacked(raw) as stream,
            tarfile.open(fileobj=_Bounded(stream, UNPACKED_LIMIT), mode="r|") as archive,
        ):
            for number, member in enumerate(archive):
                if number >= MEMBER_LIMIT or len(found) == len(LOG_MEMBERS):
                    break
                name = PurePosixPath(member.name).name
                if member.isfile() and name in LOG_MEMBERS and name not in found:
                    content = archive.extractfile(member)
                    if content is not None:
                        found[name] = _tail(name, content, member.size, limit)
    except (tarfile.TarError, OSError, EOFError, zlib.error) as exc:
        if not found:
            raise StorageError(f"{path.name} cannot be read as a log archive.") from exc
    if not found:
        raise StorageError(f"{path.name} holds none of {', '.join(LOG_MEMBERS)}.")
    return [found[name] for name in LOG_MEMBERS if name in found]


def _unpacked(raw: IO[bytes]) -> IO[bytes]:
    magic = raw.read(2)
    raw.seek(0)
    return gzip.GzipFile(fileobj=raw) if magic == b"\x1f\x8b" else raw  # type: ignore[return-value]


def _tail(name: str, content: IO[bytes], size: int, limit: int) -> Tail:
    kept = b""
    while chunk := content.read(256 * 1024):
        kept = (kept + chunk)[-limit:]
    text = kept.decode("utf-8", errors="replace").replace("\x00", "\ufffd")
    return Tail(name, text, size, max(size - len(kept), 0))


class _Bounded(io.RawIOBase):
    """A stream that refuses to yield more than so many bytes: an archive may unpack to far more than it weighs."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self._stream, self._left = stream, limit

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        chunk = self._stream.read(size if size >= 0 else self._left + 1)
        self._left -= len(chunk)
        if self._left < 0:
            raise OSError("the archive unpacks to more than is read here")
        return chunk
