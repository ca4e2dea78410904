"""Versions compared number by number: 12.10 is later than 12.9, and 12 is the same as 12.0."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

Version = tuple[int, ...] | None
"""None: not a version, or not known; it satisfies no comparison."""

_NUMBERS: Final = re.compile(r"\s*v?(\d{1,18}(?:\.\d{1,18})*)", re.ASCII | re.IGNORECASE)
_COMPARE: Final[dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


@lru_cache(maxsize=4096)
def parse(text: str) -> Version:
    """The numbers at the beginning of a text, without zeros at their end; None when it begins with no number."""
    found = _NUMBERS.match(text)
    if found is None:
        return None
    numbers = [int(part) for part in found[1].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def compare(left: Version, sign: str, right: Version) -> bool:
    """Whether `left sign right` holds; False when either is not known. Raises KeyError for an unknown sign."""
    return left is not None and right is not None and _COMPARE[sign](left, right)
