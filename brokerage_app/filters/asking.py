"""How brokers ask: an ordered tuple of rules, each site stopped by the first that objects for good.

A rule that objects for the time being only marks the site: a later rule that objects for good gives the reason then, so
that nobody is told to wait for what will not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from brokerage_app.cases.case import Case
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import Nucleus

Asking = TypeVar("Asking", bound=Case)
"""The case of a broker. A rule that reads little of it serves every broker whose case has that."""
Place = TypeVar("Place", SiteView, Nucleus)
"""What is chosen."""
Filter = Callable[[Asking, Place], Skip | None]
"""One rule of a broker: None when the place may have the work, else why not."""


def always(case: Case) -> bool:
    return True


def at(site: SiteView, answer: Skip | None) -> Skip | None:
    """What a formula answers, as the objection to one site."""
    return None if answer is None else Skip(site.name, answer.code, answer.says, answer.values)


@dataclass(frozen=True, slots=True)
class Rule(Generic[Asking, Place]):
    """A filter with its place in the order of a broker.

    asked       whether it is asked at all in this case: decided once, not for every site
    temporary   the objection passes by itself
    """

    filter: Filter[Asking, Place]
    asked: Callable[[Asking], bool] = always
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class Sifted(Generic[Place]):
    """Sites that no rule objected to, those that were marked for the time being, and those that are out."""

    kept: list[Place] = field(default_factory=list)
    marked: list[tuple[Place, Skip]] = field(default_factory=list)
    out: list[Skip] = field(default_factory=list)


def sift(case: Asking, sites: Iterable[Place], rules: Sequence[Rule[Asking, Place]]) -> Sifted[Place]:
    """Ask the rules of each site in order."""
    asked = [(rule.filter, rule.temporary) for rule in rules if rule.asked(case)]
    found: Sifted[Place] = Sifted()
    for site in sites:
        mark: Skip | None = None
        for ask, temporary in asked:
            if temporary and mark is not None:
                continue
            skip = ask(case, site)
            if skip is None:
                continue
            if not temporary:
                found.out.append(skip)
                break
            mark = skip
        else:
            if mark is None:
                found.kept.append(site)
            else:
                found.marked.append((site, mark))
    return found
