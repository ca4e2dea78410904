"""Log archives of jobs (tar, tar.gz): what in them is nobody's to read, and how they are read within bounds.

What is in them is untrusted: an archive may unpack to far more than it weighs.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import IO, Final

UNPACKED_LIMIT: Final = 256 * 1024 * 1024
SECRET_MEMBERS: Final = {
    "panda_secrets.json*": "secrets that pilots hand to a payload; PanDA's pilot packs the whole folder of a job",
    "x509up*": "proxies, as grid tools call them",
    "*.key": "keys",
    "*.p12": "keys",
    "*.pfx": "keys",
    "id_rsa*": "keys of ssh; the next two, too",
    "id_ecdsa*": "",
    "id_ed25519*": "",
    "token": "as PanDA's pilots keep theirs",
    "*.token": "tokens",
    "*_token": "tokens",
    "bt_u*": "tokens, as WLCG's tools call them",
    ".netrc": "passwords; the next three, too",
    ".pgpass": "",
    ".curlrc": "",
    ".git-credentials": "",
    "secret_key": "the signing key of a site",
}
"""Names without folders, in lower case, of files that are nobody's to read; and what they hold."""
KEY_FILES: Final = "*.pem"
"""Certificates that are for everybody, or keys and proxies: what is in them says which."""
KEY_FILE_LIMIT: Final = 1024 * 1024
"""Bytes; the bundles of all public authorities are a quarter of it. What is larger is not shown."""
BROKEN: Final = (tarfile.TarError, OSError, EOFError, ValueError, OverflowError, RecursionError, zlib.error)
"""What reading an archive may raise. Long names are headers before a header, read by a call within a call: some thousands of
them end the stack."""


def is_secret(member: str) -> bool:
    """Whether the name of a member alone says that it is not to be shown or sent, in whatever folder it is."""
    name = PurePosixPath(member).name.lower()
    return any(fnmatchcase(name, pattern) for pattern in SECRET_MEMBERS)


def holds_secrets(archive: IO[bytes]) -> bool:
    """Whether one of its members is secret. Raises one of BROKEN when it cannot be read to its end, or not within bounds."""
    with tarfile.open(fileobj=bounded(archive), mode="r|") as members:
        return any(is_secret(one.name) or (one.isfile() and content_of(members, one) is None) for one in members)


def content_of(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes] | None:
    """What a plain file of an archive holds; None when that is nobody's to read. Raises one of BROKEN."""
    content = None if is_secret(member.name) else archive.extractfile(member)
    if content is None or not fnmatchcase(member.name.lower(), KEY_FILES):
        return content
    text = content.read(KEY_FILE_LIMIT + 1)
    return None if len(text) > KEY_FILE_LIMIT or b"PRIVATE KEY" in text else io.BytesIO(text)


def bounded(raw: IO[bytes]) -> IO[bytes]:
    """What an archive unpacks to; reading more than UNPACKED_LIMIT of it raises OSError."""
    magic = raw.read(2)
    raw.seek(0)
    stream = gzip.GzipFile(fileobj=raw) if magic == b"\x1f\x8b" else raw
    return _Bounded(stream, UNPACKED_LIMIT)  # type: ignore[arg-type, return-value]


class _Bounded(io.RawIOBase):
    """A stream that refuses to yield more than so many bytes."""

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
