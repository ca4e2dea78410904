"""Random seed numbers: 1, 2, 3, … each used by one job at a time; those of failed jobs are used again first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Seeds(NamedTuple):
    """Numbers for jobs in order. `reused` exist as free records; `new` have to be inserted, above all others."""

    reused: tuple[int, ...]
    new: range

    @property
    def numbers(self) -> tuple[int, ...]:
        return (*self.reused, *self.new)


def take_seeds(free: Sequence[int], highest: int, count: int) -> Seeds:
    """Choose `count` numbers: the free ones in ascending order, then those after `highest` (0 when none exist)."""
    reused = tuple(sorted(free)[:count])
    return Seeds(reused, range(highest + 1, highest + 1 + count - len(reused)))
