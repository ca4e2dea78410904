"""Links of a simulated grid: files wait, share the rate of their link, fail, and are tried again. No byte is copied.

The mover's own rules decide: how many files a link takes at a time and how fast it is (`MoverSettings.pace`), from where a
file is copied (`choose_source`), and when one that failed is tried again (`next_try`). Files that a link copies at a time have
equal parts of its rate, which is what the allowances of the mover's short turns come to.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from typing import Final

from tasks_app.domain.transfer_states import TransferKind
from tasks_app.transfers.link_settings import MoverSettings
from tasks_app.transfers.rules.pace import LinkPace, Source, choose_source, next_try

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_ALMOST_MB: Final = 1e-6


@dataclass(slots=True)
class SimFile:
    """A file on its way. `ended` is called once, with whether it has arrived; `asked` is when it was asked for, in seconds."""

    kind: TransferKind
    sources: tuple[str, ...]
    destination: str
    size_mb: float
    ended: Callable[[bool], None]
    asked: float = 0.0
    source: str = ""
    attempt: int = 0


@dataclass(slots=True)
class SimLink:
    """A link between two endpoints, and what has gone over it.

    copying      files that are being copied, by how much the link has to have given each in all before they are there
    given_mb     what it has given each file that was copied all the time, up to `at`
    open         files that have not arrived: queued, copied, or tried again later
    failed       attempts that failed; `lost`: files that were given up
    """

    pace: LinkPace
    queued: deque[SimFile] = field(default_factory=deque)
    copying: list[tuple[float, int, SimFile]] = field(default_factory=list)
    given_mb: float = 0.0
    at: float = 0.0
    plan: int = 0
    open: Counter[TransferKind] = field(default_factory=Counter)
    moved_mb: float = 0.0
    files: int = 0
    failed: int = 0
    lost: int = 0
    most_waiting: int = 0


@dataclass(slots=True)
class Links:
    """All links. `at` has something done at a time, `now` is the time, both in seconds; `failing` is the part of attempts."""

    settings: MoverSettings
    rng: Random
    at: Callable[[float, Callable[[], None]], None]
    now: Callable[[], float]
    failing: float
    links: dict[tuple[str, str], SimLink] = field(default_factory=dict)
    waits: dict[TransferKind, list[float]] = field(default_factory=lambda: {kind: [] for kind in TransferKind})
    """Seconds from asking for a file to its arrival."""
    _numbers: count[int] = field(default_factory=count)

    def send(self, file: SimFile) -> None:
        """Bring a file to its destination."""
        file.asked = self.now()
        self._wait(file)

    def link(self, source: str, destination: str) -> SimLink:
        found = self.links.get((source, destination))
        if found is None:
            pace = self.settings.pace(source, destination, is_tape=False)
            found = self.links[source, destination] = SimLink(pace, at=self.now())
        return found

    def _wait(self, file: SimFile) -> None:
        if file.kind != TransferKind.GATHER or not file.source:
            ways = (Source(one, mbps=self.link(one, file.destination).pace.mbps) for one in file.sources)
            file.source = choose_source(ways, failed=file.source)
        link = self.link(file.source, file.destination)
        link.open[file.kind] += 1
        link.queued.append(file)
        self._begin(link)
        link.most_waiting = max(link.most_waiting, len(link.queued))

    def _begin(self, link: SimLink) -> None:
        """Copy as many files as the link takes, and look again when the first of them is there."""
        self._give(link)
        while link.queued and len(link.copying) < link.pace.at_once:
            file = link.queued.popleft()
            file.attempt += 1
            heapq.heappush(link.copying, (link.given_mb + file.size_mb, next(self._numbers), file))
        link.plan += 1
        if link.copying:
            left_mb = max(link.copying[0][0] - link.given_mb, 0.0)
            takes = left_mb * len(link.copying) / link.pace.mbps if link.pace.mbps > 0 else 0.0
            plan = link.plan
            self.at(self.now() + takes, lambda: self._arrive(link, plan))

    def _give(self, link: SimLink) -> None:
        now = self.now()
        if link.copying:
            if link.pace.mbps > 0:
                link.given_mb += (now - link.at) * link.pace.mbps / len(link.copying)
            else:
                link.given_mb = max(link.given_mb, *(needs for needs, _, _ in link.copying))
        link.at = now

    def _arrive(self, link: SimLink, plan: int) -> None:
        if plan != link.plan:
            return  # more files have come since
        self._give(link)
        there = []
        while link.copying and link.copying[0][0] <= link.given_mb + _ALMOST_MB:
            there.append(heapq.heappop(link.copying)[2])
        self._begin(link)
        for file in there:
            self._end(link, file)

    def _end(self, link: SimLink, file: SimFile) -> None:
        is_there = self.rng.random() >= self.failing
        if is_there:
            link.moved_mb += file.size_mb
            link.files += 1
            self.waits[file.kind].append(self.now() - file.asked)
        else:
            link.failed += 1
            now = START + timedelta(seconds=self.now())
            due = next_try(file.attempt, self.settings.attempts, self.settings.wait, now)
            if due is not None:
                self.at((due - START).total_seconds(), lambda: self._try_again(link, file))
                return
            link.lost += 1
        link.open[file.kind] -= 1
        file.ended(is_there)

    def _try_again(self, link: SimLink, file: SimFile) -> None:
        link.open[file.kind] -= 1
        self._wait(file)
