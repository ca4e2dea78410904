"""Removes work folders: whatever payloads have left in them, it takes neither the stack nor open files to get rid of it."""

from __future__ import annotations

import contextlib
import logging
import os
import time
import uuid
from pathlib import Path

from tasks_app.worker_node.pilot.job_folders import TO_CHANGE, open_folder

log = logging.getLogger(__name__)

LIMIT_S = 120.0


def remove_folder(folder: Path, limit_s: float = LIMIT_S) -> bool:
    """Remove a work folder, also where the payload took away its own rights. True when it is gone; raises nothing.

    What cannot be removed within `limit_s` seconds is left, and logged: it can be tried again.
    """
    trouble = f"not removed within {limit_s:g} s"
    try:
        root = open_folder(str(folder), None, TO_CHANGE)
        try:
            _empty(root, time.monotonic() + limit_s)
        finally:
            os.close(root)
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError as exc:
        trouble = str(exc)
    if not os.path.lexists(folder):
        return True
    log.warning("folder.left path=%s trouble=%s", folder, trouble[:500])
    return False


def _empty(root: int, deadline: float) -> None:
    """Rounds over the top level. A folder's files go, its folders come up to the top level: none is ever deep."""
    removed = True
    while removed:
        removed = False
        with os.scandir(root) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        _dissolve(entry.name, root, deadline)
                    else:
                        os.unlink(entry.name, dir_fd=root)
                    removed = True
                if time.monotonic() > deadline:
                    return


def _dissolve(name: str, root: int, deadline: float) -> None:
    """Remove one folder of the top level. Raises OSError when something stays in it."""
    folder = open_folder(name, root, TO_CHANGE)
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        _lift(entry.name, folder, root)
                    else:
                        os.unlink(entry.name, dir_fd=folder)
                if time.monotonic() > deadline:
                    return
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=root)


def _lift(name: str, folder: int, root: int) -> None:
    new = uuid.uuid4().hex
    try:
        os.rename(name, new, src_dir_fd=folder, dst_dir_fd=root)
    except PermissionError:  # to be moved, a folder must be one that we may write to
        os.chmod(name, 0o700, dir_fd=folder)
        os.rename(name, new, src_dir_fd=folder, dst_dir_fd=root)
