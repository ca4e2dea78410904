"""Looks through work folders: by open folders and not by paths, since payloads nest folders deeper than a path can say."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
TO_READ, TO_CHANGE = 0o500, 0o700
DEEPEST = 200
"""Folders in each other that are looked into. Each is open meanwhile."""
LIMIT_S = 60.0
GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ESTALE})
"""What is said of something that was there a moment ago, and is not any more, or is a link now."""


class UnseenError(Exception):
    """Not all of a folder could be seen; the text says why."""


@dataclass(frozen=True, slots=True)
class Size:
    """Space on disk. `unseen` says why there may be more, if there may be."""

    kb: int
    unseen: str = ""


def size_of(folder: Path, limit_s: float = LIMIT_S) -> Size:
    """The space that a folder takes on disk. Links are not followed, what vanishes meanwhile is not counted."""
    blocks, unseen = 0, ""

    def count(_folder: int, entry: os.DirEntry[str]) -> None:
        nonlocal blocks
        blocks += entry.stat(follow_symlinks=False).st_blocks

    try:
        walk(folder, count, TO_READ, limit_s)
    except UnseenError as exc:
        unseen = str(exc)
    return Size(blocks // 2, unseen)


def walk(top: Path, look: Callable[[int, os.DirEntry[str]], None], rights: int, limit_s: float = LIMIT_S) -> None:
    """Call `look` with each entry of a folder and of those below, and with the open folder that it is in.

    Other file systems that are mounted below are left out. Raises UnseenError when there is more than was looked at.
    """
    deadline = time.monotonic() + limit_s
    levels: list[
        tuple[int, list[str]]
    ] = []  # folders in each other, with those in each that are still to be looked into
    try:
        _go_down(levels, str(top), look, rights, deadline)
        while levels:
            folder, names = levels[-1]
            if names:
                _go_down(levels, names.pop(), look, rights, deadline)
            else:
                levels.pop()
                os.close(folder)
    finally:
        for folder, _ in levels:
            os.close(folder)


def _go_down(
    levels: list[tuple[int, list[str]]],
    name: str,
    look: Callable[[int, os.DirEntry[str]], None],
    rights: int,
    deadline: float,
) -> None:
    """Look at what is in one folder more. Raises UnseenError."""
    if len(levels) == DEEPEST:
        raise UnseenError(f"folders are nested more than {DEEPEST} deep")
    try:
        folder = open_folder(name, levels[-1][0] if levels else None, rights)
    except OSError as exc:
        if exc.errno in GONE:
            return
        raise UnseenError(f"a folder in it cannot be read ({exc.strerror})") from exc
    names: list[str] = []
    levels.append((folder, names))
    if not _same_mount(folder, levels[0][0]):
        return
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if time.monotonic() > deadline:
                    raise UnseenError("it contains more files than can be counted in time")
                try:
                    if entry.is_dir(follow_symlinks=False):
                        names.append(entry.name)
                    look(folder, entry)
                except OSError as exc:
                    if exc.errno not in GONE:
                        raise
    except OSError as exc:
        raise UnseenError(f"a file in it cannot be read ({exc.strerror})") from exc


def open_folder(name: str, above: int | None, rights: int) -> int:
    """An open folder, on which we have these rights, also where its owner took them away, if that is us. Raises OSError."""
    try:
        folder = os.open(name, FLAGS, dir_fd=above)
    except PermissionError:
        found = os.open(name, FLAGS | os.O_PATH, dir_fd=above)
        try:
            # What was found, and not its name: that may be a link by now, which a change of rights would follow.
            os.chmod(f"/proc/self/fd/{found}", stat.S_IMODE(os.fstat(found).st_mode) | rights)
            folder = os.open(name, FLAGS, dir_fd=above)
        finally:
            os.close(found)
    with contextlib.ExitStack() as on_failure:
        on_failure.callback(os.close, folder)
        about = os.fstat(folder)
        if about.st_uid == os.geteuid() and about.st_mode & rights != rights:
            os.fchmod(folder, stat.S_IMODE(about.st_mode) | rights)
        on_failure.pop_all()
    return folder


def _same_mount(folder: int, top: int) -> bool:
    """Whether both are on one mounted file system, of which parts may count as devices of their own (btrfs)."""
    return os.fstat(folder).st_dev == os.fstat(top).st_dev or _mount(folder) == _mount(top)


def _mount(folder: int) -> str:
    lines = Path(f"/proc/self/fdinfo/{folder}").read_text().splitlines()
    return next((line for line in lines if line.startswith("mnt_id:")), "")
