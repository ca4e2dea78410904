"""Lists of inputs that a merge job of ranges of events finds in its folder: for each output, the files that it is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tasks_app.worker_node.pilot.job import BadJobError, is_plain_name

LIST_OF_INPUTS = "inputFor_"
"""Begins the name of such a list, before that of the output."""


def lists_in(text: str) -> dict[str, list[str]]:
    """By the name of each list its files, from a job's `writeToFile`: `inputFor_<output>:<lfn>,<lfn>^...`. Raises BadJobError."""
    found: dict[str, list[str]] = {}
    for part in filter(None, text.split("^")):
        name, _, files = part.partition(":")
        if not name.startswith(LIST_OF_INPUTS) or not is_plain_name(name) or name in found:
            raise BadJobError(f"writeToFile names {name!r:.300}, which is no list of inputs")
        found[name] = [lfn for lfn in files.split(",") if lfn]
    return found


def write_lists(lists: Mapping[str, Sequence[str]], folder: Path) -> None:
    """One name a line. Raises OSError, also when there is something of the name of a list."""
    for name, files in lists.items():
        with open(folder / name, "x") as file:
            file.writelines(f"{lfn}\n" for lfn in files)
