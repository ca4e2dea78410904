"""Copies of files in one pass: the content is never held in memory, size and checksum come from what was copied."""

from __future__ import annotations

import errno
import io
import os
import stat
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Copied:
    """`adler32` as a number; `hex` is how PanDA writes it."""

    size: int
    adler32: int

    @property
    def hex(self) -> str:
        return f"{self.adler32:08x}"


def content_of(source: Path, check: Callable[[], None]) -> Copied:
    """Size and checksum of a plain file, links followed.

    `check` is called between blocks and may raise to stop the reading. Raises OSError.
    """
    with _opened(source, os.O_RDONLY) as reader:
        size, adler = 0, 1
        while block := reader.read(BLOCK_BYTES):
            check()
            size += len(block)
            adler = zlib.adler32(block, adler)
    return Copied(size, adler)


def _opened(source: Path, flags: int) -> io.FileIO:
    # O_NONBLOCK: a pipe that somebody put in the place of the file must not hold us up.
    reader = open(os.open(source, flags | os.O_NONBLOCK | os.O_CLOEXEC), "rb", buffering=0)  # noqa: SIM115 - who asks closes it
    if not stat.S_ISREG(os.fstat(reader.fileno()).st_mode):
        reader.close()
        raise OSError(f"{source.name} is not a plain file")
    return reader


def copy_new(
    source: Path, target: Path, check: Callable[[], None], *, durable: bool, follow: bool = True, resolved: bool = False
) -> Copied:
    """Copy a plain file to a name that does not exist yet.

    `check` is called between blocks and may raise to stop the copy. `durable` waits until the disk has it.
    `follow` false refuses a symbolic link, and `resolved` any link that has come into a path without links.
    Raises OSError; what was begun at the target is removed on any exception.
    """
    with _opened(source, os.O_RDONLY | (0 if follow else os.O_NOFOLLOW)) as reader:
        # The path of what was opened, whatever has become of the folders meanwhile.
        if resolved and os.readlink(f"/proc/self/fd/{reader.fileno()}") != str(source):
            raise OSError(errno.ELOOP, "a link on the way to it leads elsewhere")
        with open(target, "xb", buffering=0) as writer:
            try:
                size, adler = 0, 1
                while block := reader.read(BLOCK_BYTES):
                    check()
                    view = memoryview(block)
                    while view:
                        view = view[writer.write(view) :]
                    size += len(block)
                    adler = zlib.adler32(block, adler)
                if durable:
                    os.fsync(writer.fileno())
            except BaseException:
                target.unlink(missing_ok=True)
                raise
    return Copied(size, adler)
