"""The outcome of one brokerage: the chosen sites with their weights, every other site with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from brokerage_app.vocabulary.codes import NO_SITE_KNOWN, NOT_PREASSIGNED
from brokerage_app.vocabulary.skip import Plain, Skip
from jedisite import refusals

UNTRIED: Final = "no job runs or is queued there"
"""The only factor of a choice with `bootstrap`, which its weight does not rank."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A site that may get jobs. `factors` are the (name, value) pairs whose product is the weight.

    bootstrap   nothing is known of the site yet: it gets a first few jobs whatever the weights
    queued, cap jobs that wait there now, and how many may; None where the broker does not say
    platform    what a regular expression for the platform stands for at this site
    work_dir_mb scratch space for one job, when it differs from the site's
    full        what a broker says of a site that takes no job now although the work is bound to it
    """

    site: str
    weight: float
    factors: tuple[tuple[str, float], ...] = ()
    bootstrap: bool = False
    queued: int = 0
    cap: int | None = None
    platform: str = ""
    work_dir_mb: int | None = None
    full: Skip | None = None


@dataclass(frozen=True, slots=True)
class Blocked:
    """Why a decision chose no site: the code of what removed the last one that the task may use, and a sentence.

    `sites` are those that it removed, the nearest first; `earlier` those that were removed before, the latest first. `also`:
    refusals of a part of these that has to be overcome as well, where one site is not enough.
    """

    code: str
    sentence: str
    sites: tuple[Skip, ...] = ()
    earlier: tuple[Skip, ...] = ()
    also: tuple[Skip, ...] = ()

    def __post_init__(self) -> None:
        refusals.checked(self.code)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Chosen sites, best first, and skipped sites in the order in which they were asked.

    `stopped`: what ended the decision before any site was asked, or for all of them at once; its site is "".
    `blocked`: why no site was chosen, as whoever asks for the task itself finds it (`deciding`); None where nobody asked.
    `note`: a sentence on what a choice did without; "" when nothing.
    `says`: the sentence of a choice in which variants of one queue count once; empty where nobody counted so.
    `parts`: the queue of each site that is a variant of one for jobs of a size.
    `queues`: one refusal for each queue of which no variant was chosen; None where nobody counted so.
    """

    chosen: tuple[Choice, ...] = ()
    skipped: tuple[Skip, ...] = ()
    stopped: Skip | None = None
    blocked: Blocked | None = None
    note: str = ""
    says: str = ""
    parts: Mapping[str, str] = field(default_factory=dict)
    queues: Mapping[str, Skip] | None = None

    @property
    def code(self) -> str:
        """The code that blocks the task: empty when a site was chosen, else that of `blocked`.

        Where that was not asked it is the most frequent one (ties by name).
        """
        if self.blocked is not None:
            return self.blocked.code
        if self.stopped is not None:
            return self.stopped.code
        if self.chosen:
            return ""
        if not self.skipped:
            return NO_SITE_KNOWN
        return min(self.counts().items(), key=lambda pair: (-pair[1], pair[0]))[0]

    def kept_skips(self) -> list[list[str | list[Plain]]]:
        """`[[site, code, sentence, [values]], ...]`, the form in which skipped sites are stored with all that is said of them.

        Of a variant the name of its queue follows.
        """
        return [
            [skip.site, skip.code, skip.detail, skip.plain_values, *self._queue(skip.site)] for skip in self.skipped
        ]

    def kept_choices(self) -> list[list[Any]]:
        """`[[site, weight, {factor: value}], ...]`, best first; of a variant the name of its queue follows."""
        return [[one.site, one.weight, dict(one.factors), *self._queue(one.site)] for one in self.chosen]

    def _queue(self, site: str) -> list[str]:
        return [self.parts[site]] if site in self.parts else []

    def chosen_queues(self) -> dict[str, Choice]:
        """The best variant of each queue that was chosen, by the queue's name, best first."""
        best: dict[str, Choice] = {}
        for one in self.chosen:
            best.setdefault(self.parts.get(one.site, one.site), one)
        return best

    def skipped_queues(self) -> dict[str, Skip]:
        """One refusal for each queue of which no variant was chosen, by the queue's name."""
        if self.queues is not None:
            return dict(self.queues)
        chosen, found = self.chosen_queues(), dict[str, Skip]()
        for skip in self.skipped:
            queue = self.parts.get(skip.site, skip.site)
            if queue not in chosen:
                found.setdefault(queue, skip)
        return found

    def counts(self) -> dict[str, int]:
        """Number of skipped sites for each code, the most frequent first, ties by code."""
        return {code: len(sites) for code, sites in self.compact().items()}

    def compact(self) -> dict[str, list[str]]:
        """`{code: [site, ...]}`, the form that is stored: the most frequent code first, sites by name, each queue once."""
        by_code: dict[str, list[str]] = {}
        skips = self.queues.items() if self.queues is not None else ((skip.site, skip) for skip in self.skipped)
        for name, skip in skips:
            by_code.setdefault(skip.code, []).append(name)
        return {code: sorted(by_code[code]) for code in sorted(by_code, key=lambda c: (-len(by_code[c]), c))}

    def sentence(self) -> str:
        """One sentence for people, for instance "All 3 sites were skipped: 2 low memory, 1 site offline."."""
        if self.blocked is not None:
            return self.blocked.sentence
        if self.stopped is not None:
            return f"{refusals.get(self.stopped.code).title}: {self.stopped.detail}."
        first = self.chosen[0].site if self.chosen else ""
        said = self.says or sentence_of(len(self.chosen), self.counts(), best=first)
        return f"{said} {self.note}" if self.note else said


def counted(skipped: Mapping[str, int]) -> str:
    """How many sites each code skipped: "2 low memory, 1 site offline", and of two "2 sites offline".

    Codes are words for what is wrong; those that begin with what they are about count that.
    """
    return ", ".join(f"{number} {_words(code, number)}" for code, number in skipped.items())


_SAID: Final = {NOT_PREASSIGNED: "not the task's site"}
"""Codes whose words would say nothing to whoever does not know the code."""


def _words(code: str, number: int) -> str:
    if code in _SAID:
        return _SAID[code]
    thing, *rest = code.split("_")
    return " ".join((f"{thing}s" if thing in ("site", "queue") and number != 1 else thing, *rest))


def sentence_of(chosen: int, skipped: Mapping[str, int], *, best: str = "") -> str:
    """The sentence of a verdict from its counts alone, so that a stored verdict reads the same."""
    total_skipped = sum(skipped.values())
    if not chosen and not total_skipped:
        return f"{refusals.get(NO_SITE_KNOWN).title}."
    reasons = counted(skipped)
    if not chosen:
        subject = "The only site was skipped" if total_skipped == 1 else f"All {total_skipped} sites were skipped"
        return f"{subject}: {reasons}."
    were = f"{'site' if chosen + total_skipped == 1 else 'sites'} {'was' if chosen == 1 else 'were'}"
    first = f", {best} first" if best and chosen > 1 else f", {best}" if best else ""
    text = f"{chosen} of {chosen + total_skipped} {were} chosen{first}"
    return f"{text}; skipped: {reasons}." if reasons else f"{text}."
