"""One zip of the outputs that a task has made, for downloads.

A zip is written to a file before any of it is sent, so that the web server sends it without keeping a thread. A slow client
keeps that file busy for long. So there are a fixed number of files on a machine, each locked by the descriptor that is sent
from, however the process ends; and an account can lock two of them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final

from django.conf import settings
from django.db.models import Count, Sum

from jedisite.server.places import Places
from jedisite.vocabulary.words import plural, thousands
from jedisite.web.problems import Unavailable
from tasks_app.ddm import fetching
from tasks_app.domain.states import FileStatus
from tasks_app.models import Dataset, File

MOST_FILES: Final = 1000
MOST_BYTES: Final = 200 * 1000 * 1000
SLOTS: Final = 8
OF_ONE: Final = 2
_UNSAFE: Final = re.compile(r"[^\w.+@%=-]+", re.ASCII)


class TooManyZips(Unavailable):
    default_detail = "Another zip is being made; please try again in a moment."
    wait = 2


class OwnZipsUnderWay(TooManyZips):
    default_detail = "Zips that you have asked for are still being sent; please try again when these have arrived."
    wait = 10


class TooLargeError(Exception):
    """The outputs do not go into one zip; the sentence says what does."""


MAKING: Final = Places(1, 1, TooManyZips, TooManyZips)
"""A zip of the largest size takes a thread for some seconds."""


def outputs_of(task_id: int, dataset: Dataset | None = None) -> list[File]:
    """The outputs that a task has made, of one dataset or of all. Raises TooLargeError."""
    found = File.objects.filter(task_id=task_id, type="output", status=FileStatus.FINISHED, surl__isnull=False)
    if dataset is not None:
        found = found.filter(dataset_id=dataset.id)
    count, size = found.aggregate(count=Count("id"), size=Sum("size")).values()
    size = int(size or 0)
    if count > MOST_FILES or size > MOST_BYTES:
        what = f"{dataset.name} has" if dataset else f"Task {task_id} has made"
        raise TooLargeError(
            f"{what} {plural(count, 'output')} of {thousands(size)} bytes in all; one zip holds at most "
            f"{thousands(MOST_FILES)} files and {thousands(MOST_BYTES)} bytes. "
            + ("" if dataset else "Ask for one dataset, or ")
            + f"{'D' if dataset else 'd'}ownload the files one by one: task.download(folder) of the Python client does that."
        )
    return list(found.order_by("dataset_id", "lfn", "id"))


def made(files: Sequence[File], account: str) -> IO[bytes]:
    """A zip with these files, open for reading at its start. With several datasets each is a folder.

    Raises NoFileError and NotSentError for a file that cannot be had, TooLargeError and TooManyZips.
    """
    ids = {file.dataset_id for file in files}
    folders = dict(Dataset.objects.filter(pk__in=ids).values_list("id", "name")) if len(ids) > 1 else {}
    stream = _slot(account)
    try:
        stream.truncate(0)
        with MAKING.place(account), zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as packed:
            for name, file in _named(files, folders):
                _add(packed, name, file)
                if stream.tell() > 2 * MOST_BYTES:  # of files whose size is not in the books
                    raise TooLargeError(
                        f"The outputs hold more than {thousands(MOST_BYTES)} bytes, the most for one zip."
                    )
    except BaseException:
        stream.close()
        raise
    stream.seek(0)
    return stream


def _named(files: Sequence[File], folders: dict[int, str]) -> Iterator[tuple[str, File]]:
    """Each file with its name in the zip; of two with one name the later one is told apart by its number."""
    seen: set[str] = set()
    for file in files:
        folder = _UNSAFE.sub("_", folders.get(file.dataset_id, "")).strip("_.")
        lfn = _UNSAFE.sub("_", file.lfn).strip(".") or str(file.id)
        name = f"{folder}/{lfn}" if folder else lfn
        if name in seen:
            name = f"{folder}/{file.id}.{lfn}" if folder else f"{file.id}.{lfn}"
        seen.add(name)
        yield name, file


def _add(packed: zipfile.ZipFile, name: str, file: File) -> None:
    opened = fetching.open_made(file)
    try:
        changed = datetime.fromtimestamp(os.fstat(opened.stream.fileno()).st_mtime, UTC)
        entry = zipfile.ZipInfo(name, max(changed, datetime(1980, 1, 1, tzinfo=UTC)).timetuple()[:6])
        entry.external_attr = 0o644 << 16
        with packed.open(entry, "w") as target:
            for piece in opened.part():
                target.write(piece)
    finally:
        opened.stream.close()


def _slot(account: str) -> IO[bytes]:
    """A file of this machine from which nobody is sent anything, locked while it is open. Raises OwnZipsUnderWay."""
    folder = Path(settings.JEDI_HOME) / "zips"
    folder.mkdir(mode=0o700, exist_ok=True)
    first = int.from_bytes(hashlib.blake2b(account.encode(), digest_size=4).digest(), "big")
    for number in range(OF_ONE):
        descriptor = os.open(folder / str((first + number) % SLOTS), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        stream = os.fdopen(descriptor, "r+b")
        try:
            # The lock is that of what was opened: whoever sends from a copy of the descriptor holds it, too.
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.close()
            continue
        return stream
    raise OwnZipsUnderWay
