"""A stored verdict on a page: its funnel, and its sites as the address filters them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal
from urllib.parse import urlencode

from brokerage_app.brokers.funnel import NUCLEI, Step
from brokerage_app.models import VerdictRecord
from tasks_app.explaining import stored_verdicts
from tasks_app.explaining.stored_verdicts import Answer

Which = Literal["", "chosen", "skipped", "near"]
ROWS, ALL_ROWS = 25, 1000
"""Sites shown at first, and when all are asked for."""
LONGEST_NAME: Final = 128
WORDS: Final = (("chosen", "chosen"), ("skipped", "skipped"), ("near", "skipped by a number, nearest first"))

PICKS: Final = ("site", "code", "all")
"""The parameters of addresses that pick sites, beside the answer: any text."""
MOST_NEAR = 3


@dataclass(frozen=True, slots=True)
class Picked:
    """What the address asks of the sites of a verdict: a part of their names, a code, which answers."""

    site: str = ""
    code: str = ""
    answer: Which = ""
    all: bool = False

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Picked:
        """From the parameters of an address."""
        answer: Any = given.get("answer", "")
        site, code = given.get("site", "")[:LONGEST_NAME].strip(), given.get("code", "")[:60].strip()
        return cls(site, code, answer, bool(given.get("all")))

    def __bool__(self) -> bool:
        return bool(self.site or self.code or self.answer)

    def pick(self, found: Sequence[Answer]) -> list[Answer]:
        """The answers that fit."""
        part = self.site.lower()
        kept = [one for one in found if part in one.site.lower() and self.code in ("", one.code)]
        if self.answer == "near":
            return sorted((one for one in kept if one.gap is not None), key=lambda one: (one.gap, one.site))
        if self.answer:
            kept = [one for one in kept if bool(one.code) is (self.answer == "skipped")]
        return kept


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step of the funnel with what it means, its bar in percent of all sites, and the address of its sites."""

    step: Step
    total: int
    is_picked: bool
    url: str

    @property
    def gate(self) -> int:
        return self.step.gate

    @property
    def code(self) -> str:
        return self.step.code

    @property
    def gone(self) -> int:
        return self.step.gone

    @property
    def after(self) -> int:
        return self.step.after

    @property
    def meaning(self) -> dict[str, Any]:
        return stored_verdicts.explained(self.step.code)

    @property
    def left_percent(self) -> str:
        return f"{100 * self.step.after / self.total:.2f}"

    @property
    def gone_percent(self) -> str:
        return f"{100 * self.step.gone / self.total:.2f}"


class Part:
    """One verdict of a page. `before`: earlier ones of the task and kind, the newest first."""

    choices = WORDS

    def __init__(self, record: VerdictRecord, before: Sequence[VerdictRecord], picked: Picked) -> None:
        self.record, self.picked = record, picked
        self.answers = stored_verdicts.answers(record, before)
        self.total, self.chosen = len(self.answers), len(stored_verdicts.chosen_queues(record))
        self.is_filtered = bool(picked)
        self.thing = "nucleus" if record.kind == NUCLEI else "site"
        self.fitting = picked.pick(self.answers)
        self.found, self.rows = len(self.fitting), self.fitting[: ALL_ROWS if picked.all else ROWS]

    @property
    def title(self) -> str:
        return {NUCLEI: "Nuclei", "merge": "Sites for merge jobs"}.get(self.record.kind, "Sites")

    @property
    def nothing(self) -> str:
        if not self.total:
            return "The decision ended before any site was checked."
        return f"None of the {self.total} matches the filter."

    @property
    def anchor(self) -> str:
        return f"#sites-{self.record.kind}"

    @property
    def all_url(self) -> str:
        given = {"site": self.picked.site, "code": self.picked.code, "answer": self.picked.answer}
        return f"?{urlencode({name: value for name, value in given.items() if value} | {'all': 1})}{self.anchor}"

    @property
    def chosen_url(self) -> str:
        return f"?answer=chosen{self.anchor}"

    @property
    def chosen_percent(self) -> str:
        return f"{100 * self.chosen / max(self.total, 1):.2f}"

    @cached_property
    def steps(self) -> list[StepRow]:
        return [
            StepRow(step, max(self.total, 1), step.code == self.picked.code, f"?code={step.code}{self.anchor}")
            for step in stored_verdicts.steps(self.record)
        ]

    @cached_property
    def nearest(self) -> list[Answer]:
        """The sites, of those that the task may use, that one number kept out, the nearest first."""
        by_name = {one.site: one for one in self.answers}
        return [by_name[one["site"]] for one in stored_verdicts.nearest_of(self.record) if one["site"] in by_name]

    @property
    def near(self) -> list[Answer]:
        """The first of these that lack no more than a part of what is needed: a site that has a hundredth of it is not near."""
        return [one for one in self.nearest if one.gap is not None and one.gap <= stored_verdicts.NEAR][:MOST_NEAR]
