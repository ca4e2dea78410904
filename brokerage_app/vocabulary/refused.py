"""What a formula answers when a site will not do: a code, a sentence with room for values, and the values.

The formulas of this room know nothing of sites and tasks; whoever asks them (a filter of a broker) knows the names.
The sentence is put together only when somebody reads it, since most refusals are only counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from jedisite.vocabulary.words import filled


@dataclass(frozen=True, slots=True)
class Refused:
    """`says` has one `{}` for each of `values`; the code is registered in `brokerage_app/vocabulary/codes.py`."""

    code: str
    says: str
    values: tuple[object, ...] = ()

    @property
    def sentence(self) -> str:
        return filled(self.says, self.values)


@dataclass(frozen=True, slots=True)
class Listed:
    """Names as people read them: in alphabetical order, the first few of many."""

    names: Iterable[str]
    most: int = 5

    def __str__(self) -> str:
        found = sorted(set(self.names))
        more = [f"{len(found) - self.most} more"] if len(found) > self.most else []
        return ", ".join(found[: self.most] + more) or "none"
