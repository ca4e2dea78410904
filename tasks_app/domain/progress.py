"""How far a task is, from the counters of its input datasets. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from tasks_app.domain import words


class Counted(Protocol):
    """The counters of a dataset that are read here."""

    files: int
    files_to_be_used: int
    files_used: int
    files_finished: int
    files_failed: int


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a progress bar: a tone, and start and width in percent of the whole."""

    tone: str
    word: str
    count: int
    start: float
    width: float


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts of input files. `working` are in jobs that have not ended.

    `failed` get no attempt more, `missing` are lost or were never there; `tried`: jobs of the task have failed, else the
    failed files were given up before any failed; `removed`: somebody took them out, so that they count in nothing else.
    `unit` is what is counted, where it is not files.
    """

    total: int = 0
    finished: int = 0
    failed: int = 0
    working: int = 0
    missing: int = 0
    tried: bool = True
    removed: int = 0
    unit: str = "file"

    @property
    def failed_word(self) -> str:
        return "failed" if self.tried else "not processed"

    @property
    def waiting(self) -> int:
        return max(self.total - self.finished - self.failed - self.working - self.missing, 0)

    @property
    def percent(self) -> int:
        """Finished files in percent, rounded down, so that 100 means all."""
        return self.finished * 100 // self.total if self.total else 0

    def parts(self) -> list[Part]:
        """The pieces of the bar in drawing order, empty ones left out; widths sum to at most 100."""
        pieces: list[Part] = []
        start = 0.0
        for tone, word, count in (
            ("ok", "finished", self.finished),
            ("bad", self.failed_word, self.failed),
            ("bad", "missing", self.missing),
            ("run", "in jobs", self.working),
        ):
            if not count or not self.total:
                continue
            width = min(round(count * 100 / self.total, 3), round(100 - start, 3))
            pieces.append(Part(tone, word, count, start, width))
            start = round(start + width, 3)
        return pieces

    def label(self) -> str:
        if not self.total:
            return "No input files are known yet"
        text = f"{words.count(self.finished)} of {words.plural(self.total, self.unit)} finished"
        if self.failed:
            text += f", {words.count(self.failed)} {self.failed_word}"
        if self.missing:
            text += f", {words.count(self.missing)} missing"
        if self.working:
            text += f", {words.count(self.working)} in jobs"
        if self.removed:
            text += f", {words.count(self.removed)} removed"
        return text


def of_datasets(datasets: Iterable[Counted], missing: int = 0) -> Progress:
    """Progress over the given (input, master) datasets together. `missing`: files that are lost or could not be
    staged, counted in addition.

    A file counts in `files_used` from when a job is made for it until it ends or comes back for another attempt.
    """
    total = finished = failed = used = 0
    for dataset in datasets:
        total += max(dataset.files, dataset.files_to_be_used)
        finished += dataset.files_finished
        failed += dataset.files_failed
        used += dataset.files_used
    return Progress(total + missing, finished, failed, max(used - finished - failed, 0), missing)
