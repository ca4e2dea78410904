"""Quantiles: of Student's t distribution, and of a list. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

_STEPS: Final = 60
_TINY: Final = 1e-300
_NORMAL_ABOVE: Final = 1e7
"""Degrees of freedom above which the distribution is the normal one to all digits that matter."""


@lru_cache(maxsize=4096)
def student_t(part: float, freedom: float) -> float:
    """The value below which `part` of Student's t distribution lies, for any number of degrees of freedom above 0.

    Raises ValueError when `part` is not between 0 and 1 or `freedom` is not above 0.
    """
    if not 0 < part < 1 or not freedom > 0:
        raise ValueError(f"no quantile {part} of Student's t with {freedom} degrees of freedom")
    if part < 0.5:
        return -student_t(1 - part, freedom)
    freedom = min(freedom, _NORMAL_ABOVE)
    # Beyond t lies half of the regularised incomplete beta function at x = freedom / (freedom + t^2): look for x.
    beyond = 2 * (1 - part)
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _incomplete_beta(freedom / 2, 0.5, middle) < beyond else (low, middle)
    found = max((low + high) / 2, _TINY)
    return math.sqrt(freedom * max(1 / found - 1, 0.0))


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function by its continued fraction."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float, terms: int = 300) -> float:
    c, d = 1.0, 1 / _away_from_0(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, terms):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _away_from_0(1 + term * d)
            c = _away_from_0(1 + term / c)
            value *= d * c
        if abs(d * c - 1) < 1e-14:
            break
    return value


def _away_from_0(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def percentile(values: Sequence[float], part: float) -> float:
    """The value below which `part` (0 to 1) of the values lie, linear between neighbours. Raises ValueError without values."""
    if not values:
        raise ValueError("no percentile of no values")
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
