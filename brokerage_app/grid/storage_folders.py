"""Folders of storages on this machine: which one a storage may have, and that an import makes it, once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from brokerage_app.grid.cric import BadDescriptionError, Fault
from brokerage_app.models import StorageEndpoint


def fault_of(name: str, path: str, others: Mapping[str, str]) -> str:
    """What is wrong with a folder for a storage, as this machine is now; "" when it may have it.

    `others` are the folders of storages by name; two of one folder would be two names of one file.
    """
    if os.path.lexists(path) and not os.path.isdir(path):
        return f"must be a folder: {path} is none"
    real = os.path.realpath(path)
    taken = next((o for o, its in sorted(others.items()) if o != name and its and os.path.realpath(its) == real), "")
    return f"must be a folder of its own: {path} is that of {taken}, and one file would have two names" if taken else ""


def folders() -> dict[str, str]:
    """Those of all storages of this machine, by name."""
    return dict(StorageEndpoint.objects.exclude(path="").values_list("name", "path"))


def prepare(storages: Sequence[Mapping[str, Any]]) -> None:
    """Check the folders that described storages get or give up, and make new ones. Raises BadDescriptionError.

    One that a storage has already is not made again: where it is missing, its disk is not mounted.
    """
    before = folders()
    changed = {row["name"]: row["path"] for row in storages if row["path"] != before.get(row["name"], "")}
    after = before | {row["name"]: row["path"] for row in storages}
    faults = [
        Fault(f"storage {name}", "path", says)
        for name, path in changed.items()
        if (says := fault_of(name, path, after) if path else _fault_without(before[name]))
    ]
    if faults:
        raise BadDescriptionError(faults)
    for name, path in changed.items():
        try:
            if path:
                Path(path).mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            says = f"cannot be made: {path}: {exc.strerror or exc}"
            raise BadDescriptionError([Fault(f"storage {name}", "path", says)]) from exc


def _fault_without(path: str) -> str:
    """Files in the folder that a storage gives up would be read and removed by nobody."""
    try:
        with os.scandir(path) as entries:
            has_files = next(entries, None) is not None
    except OSError:
        return ""
    return f"cannot be taken away: there are files in {path}" if has_files else ""
