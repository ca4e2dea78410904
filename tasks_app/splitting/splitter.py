"""Cuts the files of a chunk into jobs, greedily and in order.

A job ends when the next bunch of files would break a limit, or where the input says so: events that do not continue,
another boundary, another luminosity block, other fields in the name. How one job is filled stands in `filling`; how
jobs are divided over sites, in `plan`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tasks_app.splitting.chunk import Chunk, End, Group, InputFile, Split
from tasks_app.splitting.filling import Filler, Load
from tasks_app.splitting.limits import SplitLimits


def split(
    chunk: Chunk,
    limits: SplitLimits,
    *,
    more_to_come: bool = False,
    most_groups: int | None = None,
    skip_short: bool = False,
) -> Split:
    """Make the groups of files of the next jobs, each file in exactly one group or in the rest, in order.

    With `more_to_come` (the chunk was cut off when it was read) a last group that could still grow goes to the rest.
    `most_groups` ends the work early; what is left goes to the rest. With `skip_short`, jobs with fewer files or
    events than the limits ask for are not made, and their files are left out.
    """
    cut = Cut(Filler(chunk, limits), more_to_come=more_to_come, skip_short=skip_short)
    groups = cut.next_groups(most_groups)
    return Split(groups, chunk.files[cut.position :], cut.short_of, cut.too_short, cut.left_out, cut.ends)


@dataclass(slots=True)
class Cut:
    """The work on one chunk, which goes on from `position` whenever more groups are asked for.

    `short_of` and `too_short` are those of `Split`, for the last call. `is_over`: nothing more can be made of this
    chunk at any site.
    """

    filler: Filler
    more_to_come: bool = False
    skip_short: bool = False
    position: int = 0
    short_of: int | None = None
    too_short: bool = False
    is_over: bool = False
    left_out: list[InputFile] = field(default_factory=list)
    ends: dict[End, int] = field(default_factory=dict)

    def next_groups(self, most: int | None) -> list[Group]:
        """Up to `most` groups within the filler's present limits."""
        filler, ends, last = self.filler, self.ends, len(self.filler.files)
        self.short_of, self.too_short = None, False
        groups: list[Group] = []
        while self.position < last and (most is None or len(groups) < most):
            begin = self.position
            end, reason = filler.next_end(begin)
            if self.more_to_come and reason is End.INPUT:
                self.is_over = True
                return groups
            load = filler.load(begin, end)
            if self.skip_short and _is_short(filler.limits, end - begin, load.events):
                self.left_out += filler.files[begin:end]
                self.position = end
                continue
            self.short_of = filler.short_of(begin, end)
            if self.short_of is not None:
                self.is_over = True
                return groups
            if _ends_too_soon(filler.limits, load):
                self.too_short = True
                return groups
            groups.append(filler.group(begin, end, load))
            ends[reason] = ends.get(reason, 0) + 1
            self.position = end
        self.is_over = self.position >= last
        return groups


def _is_short(limits: SplitLimits, files: int, events: int) -> bool:
    """Whether a job has fewer files or events than asked for."""
    if limits.files_per_job is not None and files < limits.files_per_job:
        return True
    return limits.events_per_job is not None and not limits.dynamic_events and events < limits.events_per_job


def _ends_too_soon(limits: SplitLimits, load: Load) -> bool:
    """Whether a job is expected to end before the site's least wall time. What is not known is not short."""
    if limits.min_walltime_s is None or not (limits.walltime_s_per_event or limits.walltime_s_per_mb):
        return False
    return load.walltime < limits.min_walltime_s
