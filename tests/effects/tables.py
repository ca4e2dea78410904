"""The tables of effects, which are Markdown beside this file: one line an entry."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from tasks_app.params.not_available import ITEMS, NOT_AVAILABLE, STEPS
from tasks_app.params.specs import SPEC_KEYS

HERE: Final = Path(__file__).parent
WAITING: Final = HERE / "not_yet.md"
EMPTY: Final = HERE.parents[1] / "docs/decisions/067-columns-that-nobody-fills.md"


class Effect(NamedTuple):
    """One line: the entry, who reads it, the test that shows what comes of it, and who fills it when people do not."""

    key: str
    reader: str
    test: str
    filler: str = ""


def _cells(path: Path) -> list[list[str]]:
    lines = (line for line in path.read_text().splitlines() if line.startswith("|"))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in list(lines)[2:]]


@cache
def effects() -> tuple[Effect, ...]:
    paths = sorted(path for path in HERE.glob("*.md") if path != WAITING)
    return tuple(Effect(*cells) for path in paths for cells in _cells(path))


@cache
def not_yet() -> dict[str, str]:
    """Entries without an effect that is shown, each with what is missing. Nothing is ever added."""
    return {key: missing for key, missing in _cells(WAITING)}


def empty() -> frozenset[str]:
    """Columns that stay empty, or are another spelling, as a decision says; each with the reason."""
    return frozenset(f"column:{column}" for column, why in _cells(EMPTY) if why)


def refused() -> frozenset[str]:
    """Entries that are refused where they are given, a refused step with all that it may say."""
    steps = {f"{step}:{key.name}" for step, keys in SPEC_KEYS.items() if step in NOT_AVAILABLE for key in keys}
    steps |= {f"{step}:{name}" for step, keys in STEPS.items() for name in keys}
    return frozenset({f"task:{name}" for name in NOT_AVAILABLE} | {f"item:{name}" for name in ITEMS} | steps)
