"""Folders of local pilots that are gone. No Django, no database; Linux."""

from __future__ import annotations

import fcntl
import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from tasks_app.worker_node.pilot.main import LOCK_NAME
from tasks_app.worker_node.pilot.removing import remove_folder

log = logging.getLogger(__name__)

FOLDER_PREFIX = "w-"
SWEEP_LIMIT_S = 20.0
"""For a folder. What takes longer is gone on with when the next pilot ends, so that pilots are started meanwhile."""


def sweep(
    folders: Iterable[Path], collect: Callable[[Path], None] = lambda _: None, limit_s: float = SWEEP_LIMIT_S
) -> list[Path]:
    """Remove folders of pilots that are gone: nobody holds their lock. What they have reported is collected before.

    Returns those that could not be removed, or not within so many seconds each.
    """
    left = []
    for folder in folders:
        try:
            with open(folder / LOCK_NAME, "ab") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                try:
                    collect(folder)
                except Exception:  # whatever a payload left: pilots must be started
                    log.exception("outbox.not_collected folder=%s", folder)
                if not remove_folder(folder, limit_s):
                    left.append(folder)
        except OSError:
            continue
    return left
