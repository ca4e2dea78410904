"""Whether the ranges of a task get on: what is ready, at consumers, without attempts, or waits to be merged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from events_app.rules.range_refusals import GATE, RANGES_NOT_MERGED, RANGES_WITHOUT_ATTEMPTS, RANGES_WITHOUT_CONSUMER
from events_app.rules.range_standing import Counts, Standing
from tasks_app.attention.rules.findings import hours
from tasks_app.domain.words import count, plural
from tasks_app.explaining.rules.answers import Gate

TITLE: Final = "Its ranges of events make progress"
SILENT_AFTER_S: Final = 600
"""From so many seconds without a report on it is said for how long: pilots report what they have every five minutes."""


@dataclass(frozen=True, slots=True)
class RangeFacts:
    """Ranges of a task by how they stand, its open consumers, those of them that have ranges at work, and its merge jobs.

    `is_capped`: at least so many ranges. `begun` of the consumers have been given to a pilot. `silent`: for how many seconds
    the running one that has been silent longest has reported no range; None without any.
    """

    counts: Counts
    consumers: int = 0
    holders: int = 0
    merge_jobs: int = 0
    is_capped: bool = False
    begun: int = 0
    silent: float | None = None

    def number(self, standing: Standing) -> int:
        return self.counts.of.get(standing, 0)


def ask(facts: RangeFacts) -> Gate:
    """The gate of a task with event service."""
    if not facts.counts.total:
        return Gate(
            GATE, TITLE, "not asked", "", "its files have no ranges yet; they are made with its first consumers"
        )
    ready, sent = facts.number(Standing.READY), facts.number(Standing.SENT)
    failed, hopeless = facts.number(Standing.FAILED), facts.number(Standing.HOPELESS)
    waiting, said = facts.number(Standing.DONE), _said(facts)
    at_work = sent or facts.number(Standing.FINISHED) or failed
    if ready and not facts.consumers:
        return Gate(GATE, TITLE, "no", RANGES_WITHOUT_CONSUMER, f"{said}, and no consumer is open that could take them")
    if ready and not at_work and not facts.begun:
        waits = plural(facts.consumers, "consumer waits", "consumers wait")
        return Gate(GATE, TITLE, "not asked", "", f"{said}, and {waits} for a pilot to begin")
    if hopeless and not ready and not at_work:
        return Gate(GATE, TITLE, "no", RANGES_WITHOUT_ATTEMPTS, said)
    if waiting and not ready and not at_work and not facts.consumers and not facts.merge_jobs:
        return Gate(GATE, TITLE, "no", RANGES_NOT_MERGED, f"{said}, and no merge job is open")
    if sent and facts.silent is not None and facts.silent >= SILENT_AFTER_S:
        who = "the consumer" if facts.consumers == 1 else "one of the consumers"
        said = f"{said}; {who} has reported no range for {hours(facts.silent)}"
    return Gate(GATE, TITLE, "yes", "", said)


def _said(facts: RangeFacts) -> str:
    """How the ranges stand, as one sentence without its point."""
    number = facts.number
    ready, sent, finished = number(Standing.READY), number(Standing.SENT), number(Standing.FINISHED)
    parts = []
    if ready:
        parts.append(plural(ready, "range is ready", "ranges are ready"))
    if sent:
        where = plural(facts.holders, "consumer") if facts.holders else "consumers that have ended"
        parts.append(f"{'' if ready else 'no range is ready: '}{_are(sent)} at {where}")
    if finished:
        parts.append(f"{_are(finished)} finished")
    if number(Standing.FAILED):
        parts.append(f"{count(number(Standing.FAILED))} failed and will be tried again")
    if number(Standing.DONE):
        parts.append(f"{count(number(Standing.DONE))} {'waits' if number(Standing.DONE) == 1 else 'wait'} to be merged")
    if number(Standing.MERGED):
        parts.append(f"{_are(number(Standing.MERGED))} merged")
    if number(Standing.HOPELESS):
        parts.append(
            f"{count(number(Standing.HOPELESS))} {'has' if number(Standing.HOPELESS) == 1 else 'have'} no attempt left"
        )
    said = ", ".join(parts)
    if not ready and not sent:
        said = f"of {plural(facts.counts.total, 'range')} {said}"
    return f"{said} (of the first ones, since the task has too many to count)" if facts.is_capped else said


def _are(number: int) -> str:
    return f"{count(number)} {'is' if number == 1 else 'are'}"
