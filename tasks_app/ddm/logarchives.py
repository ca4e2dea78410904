"""Log archives of jobs (tar, tar.gz): what in them is nobody's to read, and how they are read within bounds.

What is in them is untrusted: an archive may unpack to far more than it weighs, and what it says of sizes may be anything.
So it is walked through here, a block at a time: Python's tarfile takes the whole of a long name into memory, counts to the end
of a file that is said to have 10^15 bytes, and reads zeros without end from a file with holes.
"""

from __future__ import annotations

import tarfile
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import IO, Final

UNPACKED_LIMIT: Final = 256 * 1024 * 1024
PACKED_LIMIT: Final = 260 * 1024 * 1024
"""Somewhat more, as packing makes some files larger. What is passed over, such as zeros behind the archive, counts here only."""
BUSY_S: Final = 5.0
"""Of a processor, for one look. Not by the clock on the wall, which goes on while a busy machine does other things."""
LONGEST_S: Final = 20.0
"""By the clock on the wall, for one look: it keeps a thread of the web server."""
HEADER_LIMIT: Final = 64 * 1024
"""Bytes of a long name, or of another header before a header."""
HEADERS_LIMIT: Final = 32
"""Of them before one file."""
PIECE: Final = 64 * 1024
LARGEST: Final = 2**63
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
BROKEN: Final = (tarfile.TarError, OSError, EOFError, ValueError, OverflowError, zlib.error)
"""What reading an archive may raise."""


class TooMuchError(OSError):
    """An archive exceeds the limits for reading; the text names the limit."""


class TooLongError(TooMuchError):
    """Reading an archive took too long. Another attempt may succeed when the machine is less busy."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """What the time of a look is told by."""

    busy: Callable[[], float] = time.thread_time
    wall: Callable[[], float] = time.monotonic


CLOCKS: Final = Clocks()


def is_secret(member: str) -> bool:
    """Whether the name of a member alone says that it is not to be shown or sent, in whatever folder it is."""
    name = PurePosixPath(member).name.lower()
    return any(fnmatchcase(name, pattern) for pattern in SECRET_MEMBERS)


def holds_secrets(archive: IO[bytes], clocks: Clocks = CLOCKS) -> bool:
    """Whether one of its members is secret. Raises one of BROKEN when it cannot be read to its end, or not within bounds."""
    return any(
        is_secret(one.name) or (one.is_file and _may_be_key(one) and content_of(one) is None)
        for one in members_of(archive, clocks)
    )


def _may_be_key(member: Member) -> bool:
    return fnmatchcase(member.name.lower(), KEY_FILES)


def content_of(member: Member) -> Iterator[bytes] | None:
    """What a plain file of an archive holds; None when that is nobody's to read, or has holes. Raises one of BROKEN."""
    if not member.is_file or member.has_holes or is_secret(member.name):
        return None
    if not _may_be_key(member):
        return member.pieces()
    if member.size > KEY_FILE_LIMIT:
        return None
    text = b"".join(member.pieces())
    return None if b"PRIVATE KEY" in text else iter([text])


@dataclass(slots=True)
class Member:
    """A file, folder or link in an archive. It can be read once, while it is its turn."""

    name: str
    size: int
    is_file: bool
    has_holes: bool
    """A file that says where its zeros are, and may say that there are 10^15 of them."""
    stream: Unpacked

    def pieces(self) -> Iterator[bytes]:
        """What it holds. Raises one of BROKEN."""
        left = self.size
        while left:
            piece = self.stream.read(min(left, PIECE))
            if not piece:
                raise EOFError("the archive is cut off")
            left -= len(piece)
            yield piece


def members_of(archive: IO[bytes], clocks: Clocks = CLOCKS) -> Iterator[Member]:
    """What is in an archive. A member that is not read is passed over. Raises one of BROKEN, as reading members does."""
    stream = Unpacked(archive, clocks)
    common: dict[str, str] = {}
    if not (block := stream.block()):
        raise EOFError("the file is empty")
    while block.strip(b"\0"):
        own, headers = dict(common), 0
        while (info := _header(block)).type in _HEADERS:
            headers += 1
            if info.size > HEADER_LIMIT or headers > HEADERS_LIMIT:
                raise TooMuchError(
                    f"a name in it has more than {HEADER_LIMIT // 1024} KiB of headers, or too many headers"
                )
            text = stream.exactly(_padded(info.size))[: info.size]
            if info.type == tarfile.GNUTYPE_LONGNAME:
                own["path"] = text.partition(b"\0")[0].decode(errors="replace")
            elif info.type == tarfile.XGLTYPE:
                common |= _records(text)
                own = common | own
            elif info.type != tarfile.GNUTYPE_LONGLINK:
                own |= _records(text)
            block = stream.exactly(tarfile.BLOCKSIZE)
        more = info.type == tarfile.GNUTYPE_SPARSE and block[_HAS_MORE]
        while more:
            more = stream.exactly(tarfile.BLOCKSIZE)[_HAS_MORE_AGAIN]
        size = int(own.get("size", info.size))
        end = stream.position + (_padded(size) if info.isreg() or info.type not in tarfile.SUPPORTED_TYPES else 0)
        name = (own.get(_TRUE_NAME) or own.get("path") or info.name).rstrip("/").replace("\0", "\ufffd")
        yield Member(name, size, info.isreg(), info.type == tarfile.GNUTYPE_SPARSE or _HOLES in own, stream)
        stream.skip_to(end)
        block = stream.block()
    stream.skip_to(LARGEST)


_HEADERS: Final = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.XGLTYPE,
)
_HAS_MORE: Final = 482
_HAS_MORE_AGAIN: Final = 504
"""Where a header of a file with holes, and a block after it, say that a block with more of them follows."""
_HOLES: Final = "GNU.sparse."
_TRUE_NAME: Final = "GNU.sparse.name"
_LENGTH: Final = 10
"""Digits of the length of a line, and its space."""


def _header(block: bytes) -> tarfile.TarInfo:
    return tarfile.TarInfo.frombuf(block, "utf-8", "replace")


def _padded(size: int) -> int:
    if not 0 <= size < LARGEST:
        raise ValueError("a file size in it is not valid")
    return -(-size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE


def _records(text: bytes) -> dict[str, str]:
    """Of lines "<length> <key>=<value>" those that matter here: the name, the size, and whether there are holes."""
    found, at = {}, 0
    while at < len(text) and text[at]:
        length = int(text[at : at + _LENGTH].partition(b" ")[0])
        key, equals, value = text[at : at + length].partition(b" ")[2].rstrip(b"\n").partition(b"=")
        if length <= 0 or not equals:
            raise ValueError("a header is broken")
        name, at = key.decode(errors="replace"), at + length
        if name in ("path", "size", _TRUE_NAME):
            found[name] = value.decode(errors="replace")
        if name.startswith(_HOLES):
            found[_HOLES] = "yes"
    return found


class Unpacked:
    """What a file unpacks to. Reading raises TooMuchError beyond UNPACKED_LIMIT or PACKED_LIMIT bytes, and TooLongError."""

    def __init__(self, raw: IO[bytes], clocks: Clocks = CLOCKS) -> None:
        raw.seek(0)
        first = raw.read(2)
        raw.seek(0)
        self._pieces = _gunzipped(raw) if first == b"\x1f\x8b" else iter(lambda: raw.read(PIECE), b"")
        self._clocks = clocks
        self._busy_end, self._end = clocks.busy() + BUSY_S, clocks.wall() + LONGEST_S
        self._piece, self._at = b"", 0
        self._unpacked = self.position = 0

    def read(self, size: int) -> bytes:
        """Some bytes, at most `size`, fewer where fewer are at hand; none at the end."""
        while self._at >= len(self._piece):
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._piece, self._at = piece, 0
            self._unpacked += len(piece)
            if self._unpacked > UNPACKED_LIMIT:
                raise TooMuchError(f"it unpacks to more than {UNPACKED_LIMIT // 1024**2} MiB")
            self._check_time()
        found = self._piece[self._at : self._at + size]
        self._at += len(found)
        self.position += len(found)
        return found

    def _check_time(self) -> None:
        if self._clocks.busy() > self._busy_end:
            raise TooLongError(f"reading it takes more than {BUSY_S:g} s of a processor")
        if self._clocks.wall() > self._end:
            raise TooLongError(f"reading it takes more than {LONGEST_S:g} s")

    def block(self) -> bytes:
        """The next block; none at the end. Raises EOFError for a part of one."""
        first = self.read(tarfile.BLOCKSIZE)
        return first and first + self.exactly(tarfile.BLOCKSIZE - len(first))

    def exactly(self, size: int) -> bytes:
        """So many bytes. Raises EOFError."""
        found = b""
        while len(found) < size:
            if not (piece := self.read(size - len(found))):
                raise EOFError("the archive is cut off")
            found += piece
        return found

    def skip_to(self, position: int) -> None:
        """Raises EOFError when there is less, unless all is to be read."""
        while self.position < position:
            if not self.read(min(position - self.position, PIECE)):
                if position < LARGEST:
                    raise EOFError("the archive is cut off")
                return


def _gunzipped(raw: IO[bytes]) -> Iterator[bytes]:
    """Pieces of what a gzip file holds; also empty ones, so that its reader may look at the clock."""
    part, packed = zlib.decompressobj(zlib.MAX_WBITS | 16), 0
    while block := raw.read(PIECE // 4):
        packed += len(block)
        if packed > PACKED_LIMIT:
            raise TooMuchError(f"it has more than {PACKED_LIMIT // 1024**2} MiB")
        while block:
            if part.eof:  # the next part; what follows the last one may be zeros
                if not (block := block.lstrip(b"\0")):
                    yield b""
                    break
                part = zlib.decompressobj(zlib.MAX_WBITS | 16)
            yield part.decompress(block, PIECE)
            block = part.unused_data if part.eof else part.unconsumed_tail
    if not part.eof:
        raise EOFError("the archive is cut off")
