"""What each rule of a broker cut away, in order: the summary that operators know from PanDA's logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from brokerage_app.vocabulary.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Cut:
    """Queues that were left before and after one reason. `percent` of those before, rounded up."""

    label: str
    before: int
    after: int

    @property
    def percent(self) -> int:
        return -(-(self.before - self.after) * 100 // self.before)


@dataclass(frozen=True, slots=True)
class Summary:
    """Pseudo queues of one queue count once. Queues that were no candidates are not counted."""

    initial: int
    cuts: tuple[Cut, ...]
    final: int


def summary(
    verdict: Verdict,
    labels: Mapping[str, str],
    order: Mapping[str, int],
    *,
    queue_of: Callable[[str], str] = lambda name: name,
) -> Summary:
    """The summary of a verdict. `labels`: by code; `order`: the places of codes; `queue_of`: the queue of a pseudo queue."""
    labelled = sorted((code for code in labels if code in order), key=order.__getitem__)
    by_label: dict[str, set[str]] = {}
    for skip in verdict.skipped:
        if skip.code in labels:
            by_label.setdefault(labels[skip.code], set()).add(skip.site)
    left = {choice.site for choice in verdict.chosen}.union(*by_label.values())
    initial = number = _count(left, queue_of)
    cuts: list[Cut] = []
    for label in dict.fromkeys(labels[code] for code in labelled):
        if label not in by_label:
            continue
        left -= by_label[label]
        after = _count(left, queue_of)
        if after < number:
            cuts.append(Cut(label, number, after))
        number = after
    return Summary(initial, tuple(cuts), number)


def _count(names: set[str], queue_of: Callable[[str], str]) -> int:
    return len({queue_of(name) for name in names})
