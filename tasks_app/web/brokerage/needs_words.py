"""What a decision was asked for, in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tasks_app.domain import words

UNITS: Final = (("_mb", "MB"), ("_kbps", "kB/s"), ("_percent", "%"), ("_hs06s", "HS06 s"))
HIDDEN: Final = frozenset({"inputs", "task_id"})


@dataclass(frozen=True, slots=True)
class InputRow:
    """An input dataset. `places`: (endpoint, files, size, on tape, complete), those with most files first."""

    name: str
    files: int
    size: str
    is_primary: bool
    places: tuple[tuple[str, int, str, bool, bool], ...]


@dataclass(frozen=True, slots=True)
class Inputs:
    """The needs as (word, value) in the order in which they are stored, and the input datasets."""

    needs: tuple[tuple[str, str], ...]
    datasets: tuple[InputRow, ...]


def inputs_of(needs: Mapping[str, Any]) -> Inputs:
    """From the stored needs of a decision, in which what is not asked is left out."""
    said = tuple(_said(name, value) for name, value in needs.items() if name not in HIDDEN)
    return Inputs(said, tuple(_dataset(data) for data in needs.get("inputs", ())))


def _said(name: str, value: Any) -> tuple[str, str]:
    if isinstance(value, bool):
        return name.replace("_", " "), "yes" if value else "no"
    if isinstance(value, list):
        return name.replace("_", " "), ", ".join(map(str, value)) or "none"
    if isinstance(value, int | float):
        if name.endswith("_s"):
            return name.removesuffix("_s").replace("_", " "), words.duration(value)
        for ending, unit in UNITS:
            if name.endswith(ending):
                return name.removesuffix(ending).replace("_", " "), f"{_number(value)} {unit}"
        return name.replace("_", " "), _number(value)
    return name.replace("_", " "), str(value)


def _number(value: float) -> str:
    return words.count(int(value)) if value == int(value) else f"{value:.4g}"


def _dataset(data: Mapping[str, Any]) -> InputRow:
    places = [
        (name, one.get("files", 0), _size(one.get("size_mb", 0)), one.get("is_tape", False), one.get("complete", True))
        for name, one in data.get("replicas", {}).items()
    ]
    places.sort(key=lambda place: (-place[1], place[0]))
    return InputRow(
        data["name"], data.get("files", 0), _size(data.get("size_mb", 0)), data.get("is_primary", False), tuple(places)
    )


def _size(size_mb: float) -> str:
    return words.size(size_mb * 1e6)
