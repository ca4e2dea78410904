"""Whether the folder of a storage can be seen: not while its disk is not mounted, or fails."""

from __future__ import annotations

import os
from pathlib import Path

AWAY = "The folder of the storage is away: "
"""Begins what pilots say of it: the server knows the failure by these words."""

EMPTY = "is empty, although files are registered there"


def why_away(folder: Path, *, holds_files: bool) -> str:
    """What is wrong with a storage's folder, as the end of a sentence; "" when it is there.

    `holds_files`: files are known to lie there, so that an empty folder is the place at which nothing is mounted.
    """
    try:
        with os.scandir(folder) as entries:
            is_empty = next(entries, None) is None
    except (FileNotFoundError, NotADirectoryError):
        return "is not there"
    except OSError as exc:
        return f"cannot be read ({exc.strerror or exc})"
    return EMPTY if is_empty and holds_files else ""
