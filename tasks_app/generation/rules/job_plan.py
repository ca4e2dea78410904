"""From picked files, sites and limits to the jobs of each site: the plan of one step of a turn, or what it lacks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.verdict import Choice
from tasks_app.generation.rules.sources import DatasetRow, Order, Source, chunk_of
from tasks_app.params.job_groups import JobGroup, JobGroups
from tasks_app.splitting.chunk import Group, InputFile
from tasks_app.splitting.limits import SplitLimits
from tasks_app.splitting.plan import Candidate, plan

FILES_A_STEP: Final = 40_000
"""Files that one transaction hands out at most."""
JOBS_A_STEP: Final = 5_000


@dataclass(frozen=True, slots=True)
class Place:
    """A site that the broker chose: the limits of the task's jobs there, and how many more it takes."""

    site: SiteView
    choice: Choice
    limits: SplitLimits
    room: int

    def candidate(self) -> Candidate:
        site, choice = self.site, self.choice
        return Candidate(site.name, self.limits, choice.weight, choice.queued, self.room, site.portion or None)


@dataclass(frozen=True, slots=True)
class Level:
    """Jobs of files that need the same memory, and the sites that take them, by name so that ties go by name.

    `raised`: the files need more than the task. They come back one by one: more of them may never come.
    """

    memory_mb: int
    places: Sequence[Place]
    raised: bool = False

    def most_jobs(self, wanted: int) -> int:
        """Jobs of one step, of so many that the task may still get."""
        return min(sum(place.room for place in self.places), wanted, JOBS_A_STEP)


@dataclass(frozen=True, slots=True)
class SiteShare:
    """The input of the jobs of one site."""

    place: Place
    groups: Sequence[Group]


@dataclass(frozen=True, slots=True)
class JobPlan:
    """The jobs of each site, and files of incomplete jobs that are not to be made; or what the next job lacks.

    `reads_on`: it needs more files of the master than were read. `short_of`: a secondary dataset has too few files for
    it. `too_short`: sites for which it would be too short. `own_outputs`: how many outputs each of these jobs has that
    its group names itself; None where groups name none.
    """

    jobs: Sequence[SiteShare] = ()
    left_out: Sequence[InputFile] = ()
    reads_on: bool = False
    short_of: Source | None = None
    too_short: tuple[str, ...] = ()
    own_outputs: int | None = None


def by_outputs(plan: JobPlan, groups: JobGroups | None) -> list[JobPlan]:
    """The jobs of a plan apart by how many outputs the groups of `loadXML` name for them: those are stored together."""
    if groups is None:
        return [plan] if plan.jobs else []
    numbers = sorted({len(_own(groups, group).outputs) for share in plan.jobs for group in share.groups})
    return [
        replace(plan, jobs=shares, own_outputs=number)
        for number in numbers
        if (shares := [share for one in plan.jobs if (share := _with_outputs(one, groups, number)).groups])
    ]


def _with_outputs(share: SiteShare, groups: JobGroups, number: int) -> SiteShare:
    return replace(share, groups=[group for group in share.groups if len(_own(groups, group).outputs) == number])


def _own(groups: JobGroups, group: Group) -> JobGroup:
    return groups.groups[group.files[0].boundary or 0]


def files_to_read(master: DatasetRow, limits: SplitLimits, jobs: int) -> int:
    """Files of the master that are read for so many jobs."""
    files = _typical_files(master, limits) * (jobs + 1)
    return files if limits.files_per_job is not None else max(files, limits.max_files + 1)


def _typical_files(master: DatasetRow, limits: SplitLimits) -> int:
    """About how many files a job has."""
    if limits.files_per_job:
        return limits.files_per_job
    if limits.events_per_job and master.events and master.files:
        # A range that is cut short by the end of its file brings a second one along.
        return max(1, math.ceil(limits.events_per_job * master.files / master.events)) + 1
    return min(limits.max_files, 50)


def plan_jobs(
    sources: Sequence[Source],
    level: Level,
    *,
    most: int,
    is_all: bool,
    scouting: bool = False,
    skip_short: bool = False,
) -> JobPlan:
    """Divide the files of one memory level over the sites that take their jobs: `most` jobs altogether.

    `sources` are the master and its secondaries. `is_all`: a step reads no more files of the master than these.
    """
    master, *others = sources
    read = master.picked
    # Of groups, jobs get whole ones only: none of those that are read grows.
    grows = master.dataset.grows and master.dataset.order is not Order.GROUP
    more = (read.is_cut and len(read.files) < master.dataset.files_left) or grows
    cut = plan(
        chunk_of(sources),
        [place.candidate() for place in level.places],
        scouting=scouting,
        more_to_come=more and not level.raised,
        most_groups=most,
        skip_short=skip_short,
    )
    if cut.shares or cut.left_out:
        groups = cut.by_site()
        places = {place.site.name: place for place in level.places}
        return JobPlan([SiteShare(places[name], some) for name, some in groups.items()], cut.left_out)
    if cut.short_of is not None:
        return JobPlan(short_of=next(one for one in others if one.dataset.id == cut.short_of))
    if cut.too_short:
        return JobPlan(too_short=cut.too_short)
    return JobPlan(reads_on=more and not level.raised and not is_all)
