"""What is known of a window of time, as it was read. Times are UTC, windows end before `until`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ErrorFact:
    """Failures of one fingerprint in the window: `key` is component and code, `cause` the one that somebody named, in words,
    `spread` says where they were."""

    number: int
    key: str
    text: str
    jobs: int
    wasted_core_s: int
    first_seen: datetime
    known_until: datetime | None
    ticket: str
    cause: str = ""
    spread: str = ""


@dataclass(frozen=True, slots=True)
class RateFact:
    """Ended jobs of a site in the window, and in the 24 hours before it."""

    site: str
    finished: int
    failed: int
    before_finished: int
    before_failed: int


@dataclass(frozen=True, slots=True)
class StoppedFact:
    """A task that came into `status` in the window; `now` is its status now."""

    task_id: int
    name: str
    user: str
    status: str
    now: str
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class DeedFact:
    """One action that somebody did `times` times to one kind of things, last at `at` to `object_id`."""

    actor: str
    action: str
    title: str
    object_type: str
    kind: str
    times: int
    at: datetime
    object_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class StatusFact:
    """A status of a queue; `until` is its planned end and `after` what follows then."""

    queue: str
    old: str
    new: str
    by: str
    reason: str
    at: datetime
    until: datetime | None
    after: str


@dataclass(frozen=True, slots=True)
class ItemFact:
    """An item of the page Attention that is not resolved."""

    key: str
    tone: str
    sentence: str
    path: str
    since: datetime
    acknowledged_by: str
    snoozed_until: datetime | None
    ticket: str


@dataclass(frozen=True, slots=True)
class WaitingFact:
    """A task that waits for long without being an item of the page Attention yet."""

    task_id: int
    user: str
    status: str
    since: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class ShiftFacts:
    """All of a window. `kinds` and `new_kinds` count the fingerprints of all failures, `failures` their jobs."""

    since: datetime
    until: datetime
    now: datetime
    errors: tuple[ErrorFact, ...] = ()
    kinds: int = 0
    new_kinds: int = 0
    failures: int = 0
    rates: tuple[RateFact, ...] = ()
    stopped: tuple[StoppedFact, ...] = ()
    deeds: tuple[DeedFact, ...] = ()
    moves: tuple[StatusFact, ...] = ()
    ending: tuple[StatusFact, ...] = ()
    items: tuple[ItemFact, ...] = ()
    waiting: tuple[WaitingFact, ...] = ()
