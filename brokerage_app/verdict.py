"""The outcome of one brokerage: the chosen sites with their weights, every other site with its reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from brokerage_app.codes import NO_SITE_KNOWN
from brokerage_app.needs import TaskNeeds
from brokerage_app.snapshot import SiteView
from jedisite import refusals


@dataclass(frozen=True, slots=True)
class Skip:
    """Why one site was left out: `code` is stable and counted, `detail` is for people and has the numbers.

    Raises UnknownRefusalError when the code is not registered.
    """

    site: str
    code: str
    detail: str

    def __post_init__(self) -> None:
        refusals.checked(self.code)


@dataclass(frozen=True, slots=True)
class Choice:
    """A site that may get jobs. `factors` are the (name, value) pairs whose product is the weight."""

    site: str
    weight: float
    factors: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """Chosen sites, best first, and skipped sites in the order in which they were asked."""

    chosen: tuple[Choice, ...] = ()
    skipped: tuple[Skip, ...] = ()

    @property
    def code(self) -> str:
        """The code that blocks the task: empty when a site was chosen, else the most frequent one (ties by name)."""
        if self.chosen:
            return ""
        if not self.skipped:
            return NO_SITE_KNOWN
        return min(self.counts().items(), key=lambda pair: (-pair[1], pair[0]))[0]

    def counts(self) -> dict[str, int]:
        """Number of skipped sites for each code, the most frequent first, ties by code."""
        return {code: len(sites) for code, sites in self.compact().items()}

    def compact(self) -> dict[str, list[str]]:
        """`{code: [site, ...]}`, the form that is stored: the most frequent code first, sites by name."""
        by_code: dict[str, list[str]] = {}
        for skip in self.skipped:
            by_code.setdefault(skip.code, []).append(skip.site)
        return {code: sorted(by_code[code]) for code in sorted(by_code, key=lambda c: (-len(by_code[c]), c))}

    def sentence(self) -> str:
        """One sentence for people, for instance "All 3 sites were skipped: 2 low memory, 1 site offline."."""
        return sentence_of(len(self.chosen), self.counts(), best=self.chosen[0].site if self.chosen else "")


Filter = Callable[[TaskNeeds, SiteView], Skip | None]
"""One rule: None when the site may have the job, else why not."""
Weigh = Callable[[TaskNeeds, SiteView], Choice]


def sentence_of(chosen: int, skipped: Mapping[str, int], *, best: str = "") -> str:
    """The sentence of a verdict from its counts alone, so that a stored verdict reads the same."""
    total_skipped = sum(skipped.values())
    if not chosen and not total_skipped:
        return f"{refusals.get(NO_SITE_KNOWN).title}."
    reasons = ", ".join(f"{count} {code.replace('_', ' ')}" for code, count in skipped.items())
    if not chosen:
        subject = "The only site was skipped" if total_skipped == 1 else f"All {total_skipped} sites were skipped"
        return f"{subject}: {reasons}."
    were = "site was" if chosen == 1 else "sites were"
    first = f", {best} first" if best and chosen > 1 else f", {best}" if best else ""
    text = f"{chosen} of {chosen + total_skipped} {were} chosen{first}"
    return f"{text}; skipped: {reasons}." if reasons else f"{text}."
