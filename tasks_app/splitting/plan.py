"""Which jobs of a chunk go to which of the sites that the broker chose, slab by slab.

A slab is a number of jobs for one site; then the weights are looked at again. The last site that is left gets all at
once. Sites that want their jobs in portions
of a fixed size get whole portions or nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tasks_app.splitting.chunk import Chunk, End, Group, InputFile
from tasks_app.splitting.filling import Filler
from tasks_app.splitting.limits import SplitLimits
from tasks_app.splitting.splitter import Cut

SLAB = 25
SCOUT_SLAB = 2


@dataclass(frozen=True, slots=True)
class Candidate:
    """A site that the broker chose, with the limits of its jobs.

    `queued`: jobs that wait there. `room`: jobs that it still takes, None for any number. `portion`: jobs that it
    takes at a time (job_chunk_size). `files`: ids of the master files that lie there, when the dataset is spread over
    sites; None when it has them all or reads them from elsewhere. A weight of 0 stands for a site that nothing is known
    of: each such site gets one slab first.
    """

    name: str
    limits: SplitLimits
    weight: float = 1.0
    queued: int = 0
    room: int | None = None
    portion: int | None = None
    files: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """Jobs that go to one site in one slab."""

    site: str
    groups: list[Group]


@dataclass(frozen=True, slots=True)
class Plan:
    """Shares in the order in which they were made, and the master files that are left, as in `Split`.

    `too_short` names the sites whose least wall time no job reached, `no_portion` those that did not get a whole
    portion.
    """

    shares: list[Share]
    rest: Sequence[InputFile]
    too_short: tuple[str, ...] = ()
    no_portion: tuple[str, ...] = ()
    short_of: int | None = None
    left_out: Sequence[InputFile] = ()
    ends: dict[End, int] = field(default_factory=dict)

    def by_site(self) -> dict[str, list[Group]]:
        """All jobs of each site, in order."""
        found: dict[str, list[Group]] = {}
        for share in self.shares:
            found.setdefault(share.site, []).extend(share.groups)
        return found


def plan(
    chunk: Chunk,
    candidates: Sequence[Candidate],
    draws: Iterable[float] = (),
    *,
    scouting: bool = False,
    more_to_come: bool = False,
    most_groups: int | None = None,
    skip_short: bool = False,
) -> Plan:
    """Cut a chunk into jobs for several sites; the parameters are those of `split`.

    `draws` are random numbers from 0 to below 1, one for each slab; when they end, the site of the largest weight is
    taken. The candidates differ in the numbers of their limits, not in what boundaries mean. Raises ValueError for a
    portion below 1.
    """
    for candidate in candidates:
        if candidate.portion is not None and candidate.portion < 1:
            raise ValueError(f"{candidate.name} takes portions of {candidate.portion} jobs, and the least is 1.")
    if not candidates:
        return Plan([], chunk.files)
    cut = Cut(Filler(chunk, candidates[0].limits), more_to_come=more_to_come, skip_short=skip_short)
    work = _Work(cut, _Choice(candidates, iter(draws)), SCOUT_SLAB if scouting else SLAB, most_groups)
    work.run(chunk.files)
    return Plan(
        work.shares,
        chunk.files[cut.position :],
        tuple(work.too_short),
        tuple(work.no_portion),
        cut.short_of,
        cut.left_out,
        cut.ends,
    )


@dataclass(slots=True)
class _Site:
    """A candidate whose numbers change while jobs are given to it."""

    given: Candidate
    weight: float
    queued: int
    room: int | None

    def take(self, jobs: int) -> None:
        before, self.queued = self.queued, self.queued + jobs
        self.weight *= (before + 1) / (self.queued + 1)
        if self.room is not None:
            self.room -= jobs

    def takes(self, first: InputFile, most: int | None) -> bool:
        """Whether it can get jobs that begin with this file."""
        files, least = self.given.files, self.given.portion or 1
        if files is not None and first.file_id not in files:
            return False
        return (self.room is None or self.room >= least) and (most is None or most >= least)


class _Choice:
    """Chooses the next site."""

    def __init__(self, candidates: Sequence[Candidate], draws: Iterable[float]) -> None:
        self.sites = [_Site(c, c.weight, c.queued, c.room) for c in candidates]
        self._unknown = [site for site in self.sites if site.weight <= 0]
        self._draws = iter(draws)

    def next(self, first: InputFile, most: int | None) -> _Site | None:
        """A site for the job that begins with this file; None when no site takes it."""
        able = [site for site in self.sites if site.takes(first, most)]
        for site in self._unknown:
            if site in able:
                self._unknown.remove(site)
                return site
        if not able:
            return None
        # When all weights are 0 the sites count the same.
        weights = [max(site.weight, 0.0) for site in able]
        if not any(weights):
            weights = [1 / (site.queued + 1) for site in able]
        return able[_place(weights, next(self._draws, None))]

    def drop(self, site: _Site) -> None:
        self.sites.remove(site)

    def drop_portions(self) -> None:
        """From now on without the sites that want portions."""
        self.sites = [site for site in self.sites if site.given.portion is None]


def _place(weights: Sequence[float], draw: float | None) -> int:
    """The place that a random number chooses; the largest weight, the first of equal ones, without a number."""
    if draw is None:
        return weights.index(max(weights))
    point = draw * sum(weights)
    for place, weight in enumerate(weights):
        point -= weight
        if point < 0:
            return place
    return max(place for place, weight in enumerate(weights) if weight)


@dataclass(slots=True)
class _Work:
    cut: Cut
    choice: _Choice
    slab: int
    most: int | None
    shares: list[Share] = field(default_factory=list)
    too_short: list[str] = field(default_factory=list)
    no_portion: list[str] = field(default_factory=list)

    def run(self, files: Sequence[InputFile]) -> None:
        cut, made = self.cut, 0
        while cut.position < len(files) and not cut.is_over:
            left = None if self.most is None else self.most - made
            site = self.choice.next(files[cut.position], left) if left is None or left > 0 else None
            if site is None:
                return
            made += self._one_slab(site, left)

    def _one_slab(self, site: _Site, left: int | None) -> int:
        """Give a slab to a site and return its jobs; a site that gets none is out."""
        cut, portion = self.cut, site.given.portion
        cut.filler.use(site.given.limits)
        alone = len(self.choice.sites) == 1 and site.given.files is None
        bounds = (portion or (None if alone else self.slab), site.room, left)
        before = (cut.position, cut.filler.marked(), len(cut.left_out), dict(cut.ends))
        groups = self._groups(site, min((bound for bound in bounds if bound is not None), default=None))
        if portion is not None and len(groups) < portion:
            self._give_back(before)
            self.no_portion.append(site.given.name)
            self.choice.drop_portions()
            groups = []
        if cut.too_short:
            self.too_short.append(site.given.name)
            if site in self.choice.sites:
                self.choice.drop(site)
        elif not groups and site in self.choice.sites and not cut.is_over:
            self.choice.drop(site)
        if groups:
            site.take(len(groups))
            self.shares.append(Share(site.given.name, groups))
        return len(groups)

    def _groups(self, site: _Site, number: int | None) -> list[Group]:
        """Up to so many jobs; at a site with a part of the files, until a job ends with a file that is not there."""
        there = site.given.files
        if there is None:
            return self.cut.next_groups(number)
        groups: list[Group] = []
        while number is None or len(groups) < number:
            more = self.cut.next_groups(1)
            groups += more
            if not more or more[0].files[-1].file_id not in there:
                break
        return groups

    def _give_back(self, before: tuple[int, list[int], int, dict[End, int]]) -> None:
        cut = self.cut
        cut.position, mark, left_out, cut.ends = before
        cut.filler.back_to(mark)
        del cut.left_out[left_out:]
        cut.is_over, cut.short_of = False, None
