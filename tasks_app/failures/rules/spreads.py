"""How failures of one kind are spread, in a sentence: one node, one site, one task, or everywhere. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from tasks_app.domain import words

MOST_OF = 0.8
"""From this part on one place stands for all."""
NAMES: Final[Mapping[str, tuple[str, str]]] = {
    "node": ("worker node", "worker nodes"),
    "site": ("site", "sites"),
    "task": ("task", "tasks"),
    "user": ("user", "users"),
    "version": ("version of the pilot", "versions of the pilot"),
}
"""What failures are spread over, the narrowest first, with its name for one and for many."""
PLACES: Final = {"node": "on", "site": "at", "task": "in"}
EVERYWHERE = 3
"""From so many sites on, none of which has most, failures are said to be everywhere."""


@dataclass(frozen=True, slots=True)
class Over:
    """Failures over the values of one dimension: how many values, and the one that has most."""

    values: int
    top: str
    top_failures: int


@dataclass(frozen=True, slots=True)
class Spread:
    """How failures are spread. `newest`: only that many were looked at, the newest, since there are more."""

    failures: int
    over: Mapping[str, Over]
    newest: bool = False

    @property
    def narrowest(self) -> str:
        """The dimension in which one value has most of the failures; "" when there is none."""
        if self.failures < 2:
            return ""
        return next((name for name in NAMES if self._share(name) >= MOST_OF), "")

    def without(self, names: Collection[str]) -> Spread:
        """The same without the dimensions that were picked, in which it says nothing that all is in one place."""
        return replace(self, over={name: over for name, over in self.over.items() if name not in names})

    def _share(self, name: str) -> float:
        over = self.over.get(name)
        return over.top_failures / self.failures if over and over.top and self.failures else 0.0

    @property
    def sentence(self) -> str:
        """For people, without a full stop."""
        if not self.failures:
            return "no failure in this time"
        site, node = self.over.get("site"), self.over.get("node")
        if self.failures == 1:
            places = [over.top for over in (node, site) if over and over.top]
            return f"once, {f'on {places[0]}' if node and node.top else f'at {places[0]}'}" if places else "once"
        name = self.narrowest
        if name:
            top = self.over[name].top
            part = self._share(name)
            whole = "all" if part == 1 else f"{min(part, 0.99):.0%}".replace("%", " %")
            where = f"{PLACES.get(name, 'of')} one {NAMES[name][0]}"
            rest = (
                f" ({words.plural(node.values, 'node')} there)" if name == "site" and node and node.values > 1 else ""
            )
            return f"{whole} {where}, {top}{rest}"
        counted = [
            words.plural(self.over[name].values, *NAMES[name]) for name in ("site", "node", "task") if name in self.over
        ]
        many = site is not None and site.values >= EVERYWHERE
        return f"{'everywhere' if many else 'spread'}: {', '.join(counted)}" if counted else "spread"
