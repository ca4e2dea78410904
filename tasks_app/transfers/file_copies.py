"""Files on disk: a copy grows from turn to turn under a name of its own, is compared, and then gets its place.

A file is read and written at the place that follows from its scope and name below its endpoint's folder: addresses that
somebody reported are not believed. Links are followed only where the site itself, or root, has made them.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tasks_app.ddm.addresses import storage_path
from tasks_app.ddm.local_files import adler32_of
from tasks_app.ddm.opening import open_exactly, open_led_to
from tasks_app.transfers.rules.copy_waits import IS_FULL
from tasks_app.worker_node.pilot.errors import JobFailedError
from tasks_app.worker_node.pilot.stageout import make_folders, sync_folder
from tasks_app.worker_node.pilot.storage import Place, place

BLOCK = 1 << 20
FULL = (errno.ENOSPC, errno.EDQUOT)


class BadFileError(Exception):
    """A file is not what the catalogue says it is; the sentence says what it is."""


class NoCopyError(Exception):
    """The file cannot be copied now; the sentence says why. It may be tried again."""


class ShutError(NoCopyError):
    """Nothing is copied on this way now; the file waits until it is open again."""


class NoRoomError(NoCopyError):
    """The destination has no room for the file; nothing of it is left there."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a file is to be: size in bytes, adler32 in hexadecimal."""

    size: int
    adler32: str

    def size_fault(self, stream: IO[bytes]) -> str:
        """The same of its size alone."""
        found = os.fstat(stream.fileno()).st_size
        return "" if found == self.size else f"it has {found} bytes, {self.size} were expected"

    def fault(self, stream: IO[bytes]) -> str:
        """What is wrong with a file that is open at its beginning; "" when it is this one."""
        if fault := self.size_fault(stream):
            return fault
        checksum = adler32_of(stream)
        wanted = self.adler32.lower().rjust(8, "0")
        return "" if checksum == wanted else f"it has the adler32 checksum {checksum}, {wanted} was expected"


def place_of(root: Path, scope: str, lfn: str) -> Place:
    """Where a file lies below an endpoint's folder. Raises NoCopyError for names that would lead elsewhere."""
    try:
        return place(root.resolve(), scope, lfn)
    except (JobFailedError, OSError) as exc:
        raise NoCopyError(f"{scope}:{lfn} has no place in a storage: {exc}") from exc


def part_of(where: Place, request_id: int) -> Path:
    """The name under which the copy of a request grows."""
    return where.path.with_name(f".transfer-{request_id}.part")


def is_there(where: Place, content: Content, *, may_be_bad: bool = False) -> bool:
    """Whether the file lies at its place already. Raises NoCopyError when another content does, unless it `may_be_bad`.

    What may be bad may be a link to what its owner registered, too.
    """
    try:
        with open_led_to(where.path)[1] if may_be_bad else open_exactly(where.path) as stream:
            fault = content.fault(stream)
    except FileNotFoundError:
        return False
    except NotADirectoryError as exc:
        raise NoCopyError(
            f"it cannot be written: what is above {where.path.name} at the destination is no folder"
        ) from exc
    except (OSError, ValueError) as exc:
        said = getattr(exc, "strerror", None) or exc
        raise NoCopyError(f"{where.path.name} cannot be read at the destination: {said}") from exc
    if fault and not may_be_bad:
        raise NoCopyError(f"another file of that name lies at the destination already: {fault}")
    return not fault


def copy_on(root: Path, scope: str, lfn: str, where: Place, part: Path, content: Content, most: int) -> tuple[int, int]:
    """Append up to `most` bytes of the source to the part. Returns how many it had and has.

    Raises BadFileError when the source is not there, or shorter than it should be, NoCopyError, and NoRoomError when the
    destination is full.
    """
    source = place_of(root, scope, lfn).path
    try:
        _, reader = open_led_to(source)
    except FileNotFoundError:
        raise BadFileError("it is not in the storage") from None
    except (OSError, ValueError) as exc:
        raise NoCopyError(f"it cannot be read: {getattr(exc, 'strerror', None) or exc}") from exc
    with reader:
        size = os.fstat(reader.fileno()).st_size
        if size != content.size:
            raise BadFileError(f"it has {size} bytes, {content.size} were expected")
        try:
            make_folders(where)
            with open(_opened(part), "wb", buffering=0) as writer:
                fcntl.flock(writer, fcntl.LOCK_EX | fcntl.LOCK_NB)
                had = min(os.fstat(writer.fileno()).st_size, size)
                os.truncate(writer.fileno(), had)
                reader.seek(had)
                return had, had + _append(reader, writer, min(most, size - had))
        except OSError as exc:
            if exc.errno in FULL:
                part.unlink(missing_ok=True)  # others need what it has taken
                raise NoRoomError(said_of(exc)) from exc
            raise NoCopyError(said_of(exc)) from exc


def _opened(part: Path) -> int:
    """The part, open to be appended to; begun anew where what lies there is not a file of this copy alone. Raises OSError.

    A hard link would be written through, the owner of a file could change it once it is compared, and a pipe would wait.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        if is_own(part.lstat(), os.geteuid()):
            descriptor = os.open(part, flags)
            if is_own(os.fstat(descriptor), os.geteuid()):
                return descriptor
            os.close(descriptor)  # somebody has changed it in this moment
        part.unlink()
    except FileNotFoundError:
        pass
    return os.open(part, flags | os.O_CREAT | os.O_EXCL, 0o644)


def is_own(found: os.stat_result, user: int) -> bool:
    """Whether this is a plain file of a user, by number, that has one name only."""
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_uid == user


def _append(reader: IO[bytes], writer: IO[bytes], most: int) -> int:
    left = most
    while left > 0 and (block := reader.read(min(BLOCK, left))):
        view = memoryview(block)
        while view:
            view = view[writer.write(view) :]
        left -= len(block)
    return most - left


def said_of(exc: NoCopyError | OSError) -> str:
    """Why a file could not be written, in words."""
    if not isinstance(exc, OSError):
        return str(exc)
    if exc.errno in FULL:
        return IS_FULL
    return f"it cannot be written: {exc.strerror or exc}"


def conclude(root: Path, scope: str, lfn: str, where: Place, part: Path, content: Content, *, replaces: bool) -> None:
    """The part, if it is good, gets its place; a bad file there is replaced with `replaces`.

    Raises BadFileError when the source is no good, and NoCopyError when something else went wrong: then no part is left.
    """
    try:
        with open_exactly(part) as stream:
            fault = content.fault(stream)
            if not fault:
                os.fsync(stream.fileno())
        if fault:
            part.unlink()
            _check_source(root, scope, lfn, content)
            raise NoCopyError(f"the copy was no good: {fault}")
        if replaces:
            os.replace(part, where.path)
        else:
            with contextlib.suppress(FileExistsError):  # somebody else's; compared below
                os.link(part, where.path)
            part.unlink()
        sync_folder(where.path.parent)
    except OSError as exc:
        raise NoCopyError(said_of(exc)) from exc
    if not is_there(where, content):
        raise NoCopyError("it is gone from the destination again")


def _check_source(root: Path, scope: str, lfn: str, content: Content) -> None:
    _, stream = open_led_to(place_of(root, scope, lfn).path)
    with stream:
        if fault := content.fault(stream):
            raise BadFileError(fault)


def remove_part(root: Path, scope: str, lfn: str, request_id: int) -> None:
    """Remove what an unfinished copy has left. Raises NoCopyError when it stays."""
    try:
        part_of(place_of(root, scope, lfn), request_id).unlink(missing_ok=True)
    except OSError as exc:
        raise NoCopyError(said_of(exc)) from exc


def path_at(root: Path, scope: str, lfn: str) -> Path:
    """The place of a file below a folder, for what is removed."""
    return storage_path(root.resolve(), scope, lfn)
