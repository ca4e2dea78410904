"""How many jobs may be queued at a site, and which part of that one user may have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.snapshot import Grid
from brokerage_app.vocabulary.verdict import Choice

MIN_QUEUE: Final = 20
QUEUED_TO_RUNNING: Final = 2
"""As many jobs may be queued at a queue for each that runs there."""
ALWAYS: Final = 5
"""Jobs that a user may always have queued at a site that has places, however many users there are."""


def queue_cap(running: int, min_queue: int = MIN_QUEUE) -> int:
    """How many jobs may be queued at a site that runs so many: twice as many, and never fewer than `min_queue`."""
    return max(min_queue, QUEUED_TO_RUNNING * running)


def room_at(site: SiteView, min_queue: int = MIN_QUEUE) -> int:
    """How many more jobs may be queued at a site."""
    return max(0, queue_cap(site.running, min_queue) - site.queued - site.defined)


@dataclass(frozen=True, slots=True)
class QueueUsers:
    """The number of users with jobs in the queues, and the queued jobs, by queue, of the user for whom the broker decides."""

    users: int = 1
    queued: Mapping[str, int] = field(default_factory=dict)

    def room_at(self, site: SiteView, min_queue: int = MIN_QUEUE) -> int:
        """How many more jobs of the user may be queued at a site, as far as there are places."""
        part = part_of(queue_cap(site.running, min_queue), self.users)
        return max(0, part - self.queued.get(site.queue, 0))

    def on(self, grid: Grid, usual: Grid) -> QueueUsers:
        """The same where fewer jobs wait at a queue than in the usual grid: of the user no more than of all.

        Elsewhere the usual grid may have been read before the user's jobs were counted.
        """

        def waiting(grid: Grid, queue: str) -> int:
            return grid.sites[queue].queued + grid.sites[queue].defined if queue in grid.sites else 0

        fewer = {
            queue: min(jobs, now) if (now := waiting(grid, queue)) < waiting(usual, queue) else jobs
            for queue, jobs in self.queued.items()
        }
        return replace(self, queued=fewer)


ALONE: Final = QueueUsers()


def room_of(choice: Choice, site: SiteView, min_queue: int, queue_users: QueueUsers) -> int:
    """How many more jobs of a task a chosen site takes: as the broker says, or by what waits there now."""
    if choice.cap is not None:
        return max(0, choice.cap - choice.queued)
    return min(room_at(site, min_queue), queue_users.room_at(site, min_queue))


def part_of(places: int, users: int) -> int:
    """How many of the places in a queue one of so many users may have: an even part, and always a few.

    A user who is alone may have all of them.
    """
    return places if users < 2 else max(-(-places // users), min(places, ALWAYS))
