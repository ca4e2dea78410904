"""Opens files that tasks made, for downloads.

A file is looked for at the place that follows from its scope and name, in this site's own storage and in those of endpoints
of this machine, and nowhere else: what pilots report as its address is not believed, and no link is followed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Final

from jedisite.vocabulary.words import thousands
from tasks_app.ddm import logarchives
from tasks_app.ddm.addresses import Roots
from tasks_app.ddm.opening import open_exactly
from tasks_app.domain.states import FileStatus
from tasks_app.models import File
from tasks_app.models.dataset import LOG_TYPES, MADE_TYPES

PIECE_BYTES: Final = 256 * 1024


class NoFileError(Exception):
    """There is no such file here (any more); the sentence says what is known of it."""


class NotSentError(Exception):
    """The file is not sent; the sentence says why."""


class NotNowError(NotSentError):
    """Please try again."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A file that is open for reading: its name, size in bytes, and a tag that changes when its content does."""

    stream: IO[bytes]
    name: str
    size: int
    tag: str
    is_log: bool = False

    def part(self, first: int = 0, end: int | None = None) -> Part:
        """The content from byte `first` to before byte `end`. Raises NotSentError for a log that holds secrets: only here,
        as all of it is unpacked to be searched; its stream is then closed."""
        if self.is_log:
            try:
                _search(self)
            except NotSentError:
                self.stream.close()
                raise
        return Part(self.stream, first, self.size if end is None else end)


class Part:
    """A part of a file, to be read. Closing it, also before anything is read, closes the file."""

    def __init__(self, stream: IO[bytes], first: int, end: int) -> None:
        self._stream, self._left = stream, end - first
        self.fileno = stream.fileno
        stream.seek(first)

    def read(self, size: int) -> bytes:
        piece = self._stream.read(min(size, self._left)) if self._left > 0 else b""
        self._left -= len(piece)
        return piece

    def close(self) -> None:
        self._stream.close()

    def __iter__(self) -> Iterator[bytes]:
        try:
            while piece := self.read(PIECE_BYTES):
                yield piece
        finally:
            self.close()


def is_made(type: str, surl: str | None) -> bool:
    """Whether a task has made a file of this type and reported address, as far as the books say."""
    return type in MADE_TYPES and bool(surl)


def open_made(file: File) -> Opened:
    """Open a file that a task made. Raises NoFileError and NotSentError."""
    if file.type not in MADE_TYPES:
        raise NotSentError(
            f"{file.lfn} is an input of task {file.task_id}; only files made by tasks can be downloaded."
        )
    if not file.surl:
        raise NoFileError(f"{file.lfn} is {file.status}: no job has stored it.")
    roots = Roots()
    stream = None
    for place in roots.places(file.surl, file.scope, file.lfn):
        if ".." in place.parts or place.name != file.lfn:
            raise NotSentError(f"{file.lfn} is not a valid file name in a storage.")
        with contextlib.suppress(OSError, ValueError):
            stream = open_exactly(place)
            break
    if stream is None:
        if not roots.serve(file.surl, file.scope, file.lfn):
            says = f"{file.lfn} is at {file.surl[:500]}, which is not in a storage that this site serves."
            raise NotSentError(says)
        gone = f"{file.lfn} is no longer in this site's storage"
        if file.type == "output" and file.status == FileStatus.FINISHED:
            gone += f"; recovering the lost files of task {file.task_id} makes it again"
        raise NoFileError(f"{gone}.")
    try:
        return _checked(file, stream)
    except BaseException:
        stream.close()
        raise


def _checked(file: File, stream: IO[bytes]) -> Opened:
    found = os.fstat(stream.fileno())
    if file.size is not None and found.st_size != file.size:
        booked = f"{thousands(file.size)} in the books"
        raise NotSentError(f"{file.lfn} has {thousands(found.st_size)} bytes in the storage and {booked}.")
    tag = f"{file.checksum or 'at'}-{found.st_size}-{found.st_mtime_ns:x}"
    return Opened(stream, file.lfn, found.st_size, tag, file.type in LOG_TYPES)


def _search(log: Opened) -> None:
    log.stream.seek(0)
    try:
        secret = logarchives.holds_secrets(log.stream)
    except logarchives.TooLongError as exc:
        raise NotNowError(
            f"{log.name} cannot be searched for secrets now: {exc}. Try again, or see the job's log page, which "
            "shows the readable part."
        ) from exc
    except logarchives.BROKEN as exc:
        why = str(exc) if isinstance(exc, logarchives.TooMuchError) else "it is not an archive, or it is damaged"
        raise NotSentError(
            f"{log.name} cannot be searched for secrets: {why}. The job's log page shows the readable part."
        ) from exc
    if secret:
        raise NotSentError(f"{log.name} contains secrets of the job; the job's log page shows everything else.")
