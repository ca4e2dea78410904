"""Takes what a pilot behind walls has written for the storage to the storage. No Django.

What lies in an outbox is a payload's, which may change it while we look: links are not followed, and a file is known by
what was opened.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import stat
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tasks_app.worker_node.pilot.copying import copy_new
from tasks_app.worker_node.pilot.errors import Code, JobFailedError
from tasks_app.worker_node.pilot.stageout import make_folders, sync_folder
from tasks_app.worker_node.pilot.storage import Place, place

log = logging.getLogger(__name__)

DEPTH = 20
"""Folders below each other that are looked into."""
MOST_ENTRIES = 2000
"""Files and folders that are looked at each time: an outbox holds the outputs of a job or two."""
MODE = 0o644


def take(outbox: Path, storage: Path) -> int:
    """Move files that lie where the storage wants them to the storage; returns how many.

    As in our own pilot, a file that is there already is never overwritten; such a one is removed, as is one that has no
    place there.
    """
    taken, refused = 0, 0
    try:
        root = os.open(outbox, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        for folder, parts, name in _files(root, (), _Budget(MOST_ENTRIES)):
            try:
                taken += _take_one(folder, name, _place(storage, parts, name))
            except (JobFailedError, OSError) as exc:
                refused += 1
                if refused == 1:  # a payload may make many
                    log.warning("outbox.refused file=%r trouble=%s", "/".join((*parts, name))[:500], exc)
                if isinstance(exc, JobFailedError | FileExistsError):
                    with contextlib.suppress(OSError):
                        os.unlink(name, dir_fd=folder)
    finally:
        os.close(root)
    return taken


@dataclass(slots=True)
class _Budget:
    left: int


def _files(folder: int, parts: tuple[str, ...], budget: _Budget) -> Iterator[tuple[int, tuple[str, ...], str]]:
    """Plain files below an open folder: the folder that each is in, the folders above it, its name."""
    with os.scandir(folder) as entries:
        for entry in entries:
            budget.left -= 1
            if budget.left < 0:
                return
            if entry.is_file(follow_symlinks=False):
                yield folder, parts, entry.name
            elif entry.is_dir(follow_symlinks=False) and len(parts) < DEPTH:
                try:
                    below = os.open(
                        entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder
                    )
                except OSError:
                    continue
                try:
                    yield from _files(below, (*parts, entry.name), budget)
                finally:
                    os.close(below)


def _place(storage: Path, parts: tuple[str, ...], name: str) -> Place:
    """Where the file belongs. Raises JobFailedError when it lies elsewhere in the outbox."""
    wanted = place(storage, ".".join(parts[:-2]), name)
    if wanted.path != storage.joinpath(*parts, name):
        raise JobFailedError(Code.STAGE_OUT_FAILED, "this is not a place in the storage")
    return wanted


def _take_one(folder: int, name: str, where: Place) -> bool:
    """Raises OSError when it cannot be had; whether it was a plain file that is now in the storage."""
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return False
        make_folders(where)
        os.fchown(file, os.geteuid(), os.getegid())
        os.fchmod(file, MODE)
        os.fsync(file)
        _name(file, where.path)
        sync_folder(where.path.parent)
        os.unlink(name, dir_fd=folder)
    finally:
        os.close(file)
    log.info("outbox.taken to=%s", where.path)
    return True


def _name(file: int, path: Path) -> None:
    """Give the open file a name that does not exist yet; on another file system, to a copy of it. Raises OSError."""
    opened = Path(f"/proc/self/fd/{file}")
    try:
        # With a folder's number, though unused, the link to the opened file is followed.
        os.link(opened, path, src_dir_fd=file, follow_symlinks=True)
        return
    except OSError as exc:
        if exc.errno != errno.EXDEV:
            raise
    temporary = path.with_name(f".{uuid.uuid4().hex}.part")
    try:
        copy_new(opened, temporary, lambda: None, durable=True)
        os.link(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
