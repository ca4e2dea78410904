"""Stored verdicts for people: what each site was told, at which gate of the broker, since when, and what would help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from brokerage_app.brokers.deciding import allowed
from brokerage_app.brokers.funnel import NUCLEI, funnel
from brokerage_app.cases.case import grid_of
from brokerage_app.models import VerdictRecord
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.stored import needs_of
from brokerage_app.vocabulary.verdict import UNTRIED
from jedisite import refusals

MOST_NEAREST: Final = 10
NEAR: Final = 0.3
"""A site is near when it lacks no more than this part of what is needed."""
CSV_COLUMNS: Final = (
    "kind",
    "site",
    "answer",
    "weight",
    "gate",
    "code",
    "title",
    "sentence",
    "since",
    "away_by",
    "who_can_fix",
    "advice",
)


def explained(code: str, **more: Any) -> dict[str, Any]:
    """What a code means. Of codes of former versions nothing but the code is known."""
    if code not in refusals.all_codes():
        return {"code": code, "title": code.replace("_", " "), "group": "", "who_can_fix": "", "advice": "", **more}
    found = refusals.get(code)
    return {
        "code": code,
        "title": found.title,
        "group": found.group,
        "who_can_fix": found.who_can_fix,
        "advice": found.advice,
        **more,
    }


def title_of(name: str) -> str:
    """What people call a layer or row that is named by a code; others, such as "chosen", are called as they are."""
    return str(explained(name)["title"]) if name in refusals.all_codes() else name


@dataclass(frozen=True, slots=True)
class Answer:
    """What a broker said of one site. `code` is empty when it was chosen.

    gate      place of the reason among those that took sites away, from 1; 0 when it was chosen
    since     since when the same is said without a break, as far as verdicts are looked back at
    gap       by which part of what is needed it falls short; None where nothing is compared
    """

    site: str
    code: str = ""
    sentence: str = ""
    gate: int = 0
    since: datetime | None = None
    weight: float | None = None
    factors: Mapping[str, float] = field(default_factory=dict)
    gap: float | None = None

    @property
    def goes_first(self) -> bool:
        return UNTRIED in self.factors

    @property
    def meaning(self) -> dict[str, Any]:
        return explained(self.code)

    @property
    def away_by(self) -> str:
        """The gap for people."""
        return "" if self.gap is None else f"{max(self.gap * 100, 0.1):.3g} %"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why variants of a queue were skipped. `variants`: of which sizes of jobs it holds; empty when for the whole queue."""

    code: str
    sentence: str
    variants: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueueSkip:
    """A queue that got nothing, and why: one reason, or several where its variants for job sizes were told different ones."""

    queue: str
    reasons: tuple[Reason, ...]


def queue_of(name: str, sizes: Collection[str]) -> tuple[str, str]:
    """The queue that a site of a verdict belongs to, and the size of jobs if it is a variant of it (`QUEUE/SIZE`).

    >>> queue_of("CERN/MCORE", {"MCORE"}), queue_of("CERN/PROD", {"MCORE"})
    (('CERN', 'MCORE'), ('CERN/PROD', ''))
    """
    queue, _, size = name.rpartition("/")
    return (queue, size) if queue and size in sizes else (name, "")


def by_queue(
    skipped: Sequence[Sequence[Any]], chosen: Sequence[Sequence[Any]], sizes: Collection[str]
) -> list[QueueSkip]:
    """Skipped sites of a verdict by queue, in their order; a queue of which a variant was chosen did not get nothing."""
    taken = {queue_of(choice[0], sizes)[0] for choice in chosen}
    found: dict[str, dict[tuple[str, str], list[str]]] = {}
    for name, code, sentence, *_ in skipped:
        queue, size = queue_of(name, sizes)
        if queue not in taken:
            found.setdefault(queue, {}).setdefault((code, sentence), []).append(size)
    return [
        QueueSkip(
            queue,
            tuple(
                Reason(code, sentence, tuple(size for size in variants if size) if len(reasons) > 1 else ())
                for (code, sentence), variants in reasons.items()
            ),
        )
        for queue, reasons in found.items()
    ]


def gap_of(values: Sequence[Any]) -> float | None:
    """Relative difference of two numbers, capped at 1; None when they are not numbers."""
    if len(values) < 2 or not all(isinstance(v, int | float) and not isinstance(v, bool) for v in values[:2]):
        return None
    need, offer = values[:2]
    return float(round(abs(need - offer) / max(abs(need), abs(offer), 1), 4))


def nearest(skipped: Sequence[Sequence[Any]], most: int = MOST_NEAREST) -> list[dict[str, Any]]:
    """Sites that were skipped for a number, the nearest first: what is needed, what they offer, and the part between."""
    found = []
    for site, code, sentence, *rest in skipped:
        values = rest[0] if rest else []
        gap = gap_of(values)
        if gap is not None:
            found.append(
                {"site": site, "code": code, "sentence": sentence, "need": values[0], "offer": values[1], "gap": gap}
            )
    return sorted(found, key=lambda one: (one["gap"], one["site"]))[:most]


def nearest_of(record: VerdictRecord) -> list[dict[str, Any]]:
    """The nearest of the sites that the task may use."""
    skips = [[queue, *skip[1:4]] for queue, skip in _skips(record).items()]
    if record.needs is None or record.kind == NUCLEI:
        return nearest(skips)
    known = grid_of(SiteView(name, parent=name.rpartition("/")[0]) for name, *_ in skips)
    may = allowed(replace(needs_of(record.needs), cloud=""), known).names
    return nearest([skip for skip in skips if skip[0] in may])


def queue_in(kept: Sequence[Any], place: int) -> str:
    """The queue of a choice or a skip as it is kept: behind what is said of a variant stands its queue, at `place`."""
    return str(kept[place] if len(kept) > place else kept[0])


def chosen_queues(record: VerdictRecord) -> dict[str, Sequence[Any]]:
    """The best choice of each queue, best first."""
    found: dict[str, Sequence[Any]] = {}
    for choice in record.chosen:
        found.setdefault(queue_in(choice, 3), choice)
    return found


def _skips(record: VerdictRecord) -> dict[str, Sequence[Any]]:
    """What is kept in full of the reason that counts for each queue: of several variants that of the nearest."""
    codes = {site: code for code, sites in record.reasons.items() for site in sites}
    found: dict[str, Sequence[Any]] = {}
    for skip in record.skipped:
        # In verdicts of former versions each variant stands for itself.
        queue = skip[0] if skip[0] in codes else queue_in(skip, 4)
        if codes.get(queue) == skip[1] and (queue not in found or _gap(skip) < _gap(found[queue])):
            found[queue] = skip
    return found


def _gap(skip: Sequence[Any]) -> float:
    gap = gap_of(skip[3]) if len(skip) > 3 else None
    return 1.0 if gap is None else gap


def answers(record: VerdictRecord, before: Iterable[VerdictRecord] = ()) -> list[Answer]:
    """The answers for all sites: the chosen ones first, best first, then the skipped ones by gate and name.

    before   earlier verdicts of the same task and kind, the newest first, to find since when the same is said
    """
    gates = {step.code: step.gate for step in steps(record)}
    since = _since(record, before)
    chosen = [
        Answer(queue, sentence="chosen", weight=weight, factors=rest[0] if rest else {}, since=since[queue])
        for queue, (_, weight, *rest) in chosen_queues(record).items()
    ]
    told = _skips(record)
    skipped = []
    for code, sites in record.reasons.items():
        for site in sites:
            skip = told.get(site) or [site, code, "", []]
            values = skip[3] if len(skip) > 3 else []
            sentence = skip[2] or explained(code)["title"]
            skipped.append(Answer(site, code, sentence, gates.get(code, 0), since[site], gap=gap_of(values)))
    return [*chosen, *sorted(skipped, key=lambda one: (one.gate, one.site))]


def _since(record: VerdictRecord, before: Iterable[VerdictRecord]) -> dict[str, datetime]:
    now = _codes(record)
    found = dict.fromkeys(now, record.first_at)
    going_on = set(now)
    for earlier in before:
        was = _codes(earlier)
        going_on = {site for site in going_on if was.get(site) == now[site]}
        if not going_on:
            break
        found.update(dict.fromkeys(going_on, earlier.first_at))
    return found


def _codes(record: VerdictRecord) -> dict[str, str]:
    codes = {site: code for code, sites in record.reasons.items() for site in sites}
    return codes | dict.fromkeys(chosen_queues(record), "")


def steps(record: VerdictRecord) -> list[Any]:
    """What each reason took away, in the order of the broker (`funnel.Step`)."""
    return funnel(record.broker, record.kind, len(chosen_queues(record)), record.reasons)


def as_plain(record: VerdictRecord, before: Sequence[VerdictRecord] = (), *, most: int = 2000) -> dict[str, Any]:
    """A verdict as plain values: every site, reasons with counts and advice, the funnel, and which came near."""
    found = answers(record, before)
    return {
        "id": record.id,
        "kind": record.kind,
        "broker": record.broker,
        "at": record.at,
        "first_at": record.first_at,
        "repeats": record.repeats,
        "sentence": record.sentence,
        "code": record.code,
        "stopped": explained(record.stopped[0], detail=record.stopped[1]) if record.stopped else None,
        "chosen": [
            {"site": one.site, "weight": one.weight, "factors": one.factors, "since": one.since}
            for one in found
            if not one.code
        ],
        "reasons": [
            {**explained(code), "sites": len(sites), "examples": sites[:5]}
            for code, sites in sorted(record.reasons.items(), key=lambda pair: (-len(pair[1]), pair[0]))
        ],
        "funnel": [
            {**explained(step.code), "gate": step.gate, "before": step.before, "after": step.after}
            for step in steps(record)
        ],
        "skipped": [
            {
                "site": one.site,
                "code": one.code,
                "sentence": one.sentence,
                "gate": one.gate,
                "since": one.since,
                "advice": one.meaning["advice"],
            }
            for one in found
            if one.code
        ][:most],
        "nearly": nearest_of(record),
    }


def csv_rows(kind: str, found: Iterable[Answer]) -> list[dict[str, Any]]:
    """Answers as rows of a file with CSV_COLUMNS; `away_by` is the gap, a part of 1."""
    return [
        {
            "kind": kind,
            "site": one.site,
            "answer": "skipped" if one.code else "chosen",
            "weight": one.weight,
            "gate": one.gate or None,
            "code": one.code,
            "title": one.meaning["title"] if one.code else "",
            "sentence": one.sentence,
            "since": one.since,
            "away_by": one.gap,
            "who_can_fix": one.meaning["who_can_fix"],
            "advice": one.meaning["advice"],
        }
        for one in found
    ]


@dataclass(frozen=True, slots=True)
class Changes:
    """What is different in a verdict from the one before: sites that were chosen anew or no more, and other reasons.

    reasons   (code before, code now) and the number of sites
    """

    gained: tuple[str, ...]
    lost: tuple[str, ...]
    reasons: tuple[tuple[str, str, int], ...]


def changes(before: VerdictRecord, after: VerdictRecord) -> Changes:
    """Compare two verdicts on the same sites; sites that only one of them asked count as neither."""
    old, new = _codes(before), _codes(after)
    both = [(site, old[site], new[site]) for site in sorted(old.keys() & new.keys()) if old[site] != new[site]]
    moved = Counter((was, now) for _, was, now in both if was and now)
    return Changes(
        tuple(site for site, was, now in both if was and not now),
        tuple(site for site, was, now in both if now and not was),
        tuple((was, now, n) for (was, now), n in moved.most_common()),
    )
