"""Why one site was left out: the value that formulas and rules answer, and verdicts keep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite

from jedisite import refusals
from jedisite.vocabulary.words import filled

Plain = str | int | float | bool | None
"""What a value of a refusal is once it is kept: JSON has nothing else that is not a collection."""


def plain(value: object) -> Plain:
    """A value as JSON can hold it: texts, truth values and finite numbers as they are, anything else in its own words."""
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and isfinite(value)):
        return value
    return str(value)


Words = tuple[str, tuple[object, ...]]
"""A part of a sentence with `{}` where the values belong."""


@dataclass(frozen=True, slots=True)
class Skip:
    """Why one site was left out. `site` is "" in the answer of a formula, which knows no sites, and where none is meant.

    `code` is stable and counted. `says` is the sentence for people with `{}` where `values` belong (`words.filled`), so that
    it is only put together when somebody reads it. Where a rule compares, the first two values are what is needed and what
    the site offers. Raises UnknownRefusalError when the code is not registered.
    """

    site: str
    code: str
    says: str
    values: tuple[object, ...] = ()

    def __post_init__(self) -> None:
        refusals.checked(self.code)

    @property
    def detail(self) -> str:
        return filled(self.says, self.values) if self.values else self.says

    @property
    def plain_values(self) -> list[Plain]:
        """The values as they are stored and sent."""
        return [plain(value) for value in self.values]

    @property
    def gap(self) -> float | None:
        """By which part of what is needed the site falls short or goes beyond; None where nothing is compared.

        0.1 is "a tenth is missing": the smaller, the nearer was the site to be chosen.
        """
        if len(self.values) < 2:
            return None
        need, offer = self.values[:2]
        if not isinstance(need, int | float) or not isinstance(offer, int | float):
            return None
        if isinstance(need, bool) or isinstance(offer, bool):
            return None
        return float(abs(need - offer) / max(abs(need), abs(offer), 1))


@dataclass(frozen=True, slots=True)
class Listed:
    """Names as people read them: in alphabetical order, the first few of many."""

    names: Iterable[str]
    most: int = 5

    def __str__(self) -> str:
        found = sorted(set(self.names))
        more = [f"{len(found) - self.most} more"] if len(found) > self.most else []
        return ", ".join(found[: self.most] + more) or "none"
