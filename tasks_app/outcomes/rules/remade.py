"""The parameters of a task that makes lost outputs of another one again, in datasets of its own. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

_MADE: Final = frozenset({"output", "log"})
_CHOICES: Final = ("include", "exclude", "offset", "files")
"""Keys of an input that say which of its files are read: now its names do."""
_DROPPED: Final = frozenset(
    {
        "nFiles",
        "nEvents",
        "uniqueTaskName",
        "parent_tid",
        "parentTaskName",
        "skipFilesUsedBy",
        "useExhausted",
        "periodic",
    }
)
"""They chose files, or tied the task to others."""


class CannotRemakeError(ValueError):
    """The sentence says why its jobs cannot be made by another task."""


def remade(params: Mapping[str, Any], files: Mapping[str, Collection[str]], tag: str) -> dict[str, Any]:
    """Parameters of a task with the same work on these files (by dataset). `tag` is put into all names that it makes.

    Raises CannotRemakeError for a task that reads more than one input, or groups its files.
    """
    items = [dict(item) for item in params.get("jobParameters") or ()]
    read = [item for item in items if item.get("type") == "template" and item.get("param_type") == "input"]
    if len(read) != 1 or params.get("loadXML") or any(name.startswith("dsFor") for name in params):
        raise CannotRemakeError("only a task that reads one input, file by file, can be submitted for a part of it")
    for key in _CHOICES:
        read[0].pop(key, None)
    read[0] |= {"dataset": ",".join(sorted(files)), "files": sorted({lfn for names in files.values() for lfn in names})}
    found = {name: value for name, value in params.items() if name not in _DROPPED}
    found |= {
        "taskName": f"{str(params.get('taskName') or '').rstrip('/')}.{tag}",
        "jobParameters": [_tagged(item, tag) if item.get("param_type") in _MADE else item for item in items],
    }
    if isinstance(params.get("log"), dict):
        found["log"] = _tagged(params["log"], tag)
    return found


def _tagged(item: Mapping[str, Any], tag: str) -> dict[str, Any]:
    """Datasets end with the tag; files have it before their number, so that their ends stay."""
    found = dict(item)
    for key in ("dataset", "container"):
        if name := str(item.get(key) or ""):
            found[key] = f"{name.rstrip('/')}.{tag}{'/' if name.endswith('/') else ''}"
    value = str(item.get("value") or "")
    head, number, tail = value.partition("${SN")
    found["value"] = f"{head}{tag}.{number}{tail}" if number else f"{tag}.{value}"
    return found
