"""The attributes column of datasets: a comma text of short tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tasks_app.params.faults import shown
from tasks_app.params.items import Item
from tasks_app.params.kinds import split_names

_FLAGS = {
    "check": "cc",
    "usedup": "ud",
    "random": "rd",
    "reusable": "ru",
    "indexConsistent": "ic",
    "mergeOnly": "mo",
    "allowNoOutput": "an",
}
OPTIONAL = _FLAGS["allowNoOutput"]
"""Of a dataset that a task makes: a job may end well without the file that it should write there."""
FREELY_USED = frozenset({"nosplit", "repeat", "ru"})
"""Of a secondary dataset: its files are used more than once, and their use is not counted. A master has none of these: its
files are what the work of a task is, and a task whose files are never used up has no end."""
_NUMBERS = {"offset": "of", "eventRatio": "er", "nFilesPerJob": "np", "num_records": "nr"}
TOKENS = {**_FLAGS, **_NUMBERS, "transient": "tr"}
"""What keys of items are called in the column."""
RATIO = "ratio"
IN_CVMFS: Final = "cvmfs"
"""Jobs find its files in CVMFS: nobody looks for them at storages, or brings them to jobs."""
MANYTIME: Final = "manytime"
"""It is used by many tasks, and its replicas are kept whole: a replica counts as complete wherever there is one."""
WORDS: Final = ("nosplit", "repeat", RATIO, "distributed", MANYTIME, IN_CVMFS)
"""What people may write into the attributes of an item, beside what its keys are called in the column."""
_WITH_NUMBER = frozenset({RATIO, "tr", *_NUMBERS.values()})
_KNOWN = frozenset({*WORDS, *TOKENS.values()})


@dataclass(frozen=True, slots=True)
class Attributes:
    """Attributes of one dataset, read back from the column."""

    tokens: frozenset[str]
    values: dict[str, float]

    @classmethod
    def parse(cls, text: str | None) -> Attributes:
        """Read the column. Values that are no numbers are kept as bare tokens."""
        tokens: set[str] = set()
        values: dict[str, float] = {}
        for piece in split_names(text or ""):
            name, equals, value = piece.partition("=")
            tokens.add(name)
            try:
                if equals:
                    values[name] = float(value)
            except ValueError:
                tokens.add(piece)
        return cls(frozenset(tokens), values)

    def __contains__(self, token: object) -> bool:
        return token in self.tokens

    def whole(self, name: str) -> int | None:
        value = self.values.get(name)
        return None if value is None else int(value)

    @property
    def ratio(self) -> float:
        """Files for each file of the master."""
        return self.values.get("ratio", 1.0)

    @property
    def offset(self) -> int:
        return self.whole("of") or 0

    @property
    def keeps_track(self) -> bool:
        """Whether the use of files is recorded: not for those that every job gets or that are used again."""
        return not (("nosplit" in self and "repeat" in self) or "ru" in self)


def fault_of(piece: str) -> str | None:
    """What is wrong with a word of an item's attributes, a sentence without its full stop; None when it is known."""
    name, equals, value = piece.partition("=")
    if name not in _KNOWN:
        return f"{shown(name)} is no attribute of a dataset: there are {', '.join(WORDS)}"
    needs_number = name in _WITH_NUMBER
    if not needs_number:
        return f"{name} has no value" if equals else None
    return None if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value) else f"{name} needs a number, such as {name}=2"


def is_tracked(attributes: str) -> bool:
    """Whether each file of the dataset is used once and counted. Files that every job may take again are not."""
    return not FREELY_USED & Attributes.parse(attributes).tokens


def attributes_of(item: Item, *, master: bool = False) -> str:
    """The column's text for the dataset of an item; `master`: its files are the work of the task."""
    tokens = list(split_names(item.text("attributes") or ""))
    tokens += [token for name, token in _FLAGS.items() if item.flag(name)]
    if item.raw.get("transient") is not None:
        tokens.append(f"tr={int(item.flag('transient'))}")
    for name, token in _NUMBERS.items():
        value = item.number(name)
        if value:
            tokens.append(f"{token}={value:.12g}")
    ratio = item.number("ratio")
    if ratio is not None and not any(token.startswith("ratio=") for token in tokens):
        tokens.append(f"ratio={ratio:.12g}")
    return ",".join(token for token in dict.fromkeys(tokens) if not (master and token in FREELY_USED))
