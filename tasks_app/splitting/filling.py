"""Fills one job after the other from the files of a chunk: where each ends, why, and what it weighs.

A job is filled bunch by bunch: a bunch is one file, or `files_per_job` files, or all files of a boundary. The first
bunch always fits, so a file larger than every limit still makes a job.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from tasks_app.params.naming import middle_name
from tasks_app.splitting.chunk import Chunk, End, Group, InputFile, events_of
from tasks_app.splitting.limits import MB, SLACK_BYTES, Boundaries, SplitLimits
from tasks_app.splitting.secondaries import Cursor


class Load(NamedTuple):
    """What files add to a job: input bytes (each name once), output bytes, events, seconds, and names."""

    size: int
    output: float
    events: int
    walltime: float
    names: int


class Filler:
    """The files of one chunk with its secondaries. The limits may change between jobs, their boundaries may not."""

    def __init__(self, chunk: Chunk, limits: SplitLimits) -> None:
        self.files = chunk.files
        self.pairs = limits.boundaries is not Boundaries.NONE
        self.cursors = [Cursor(secondary, by_boundary=self.pairs) for secondary in chunk.secondaries]
        self._has_ranges: bool | None = None
        self._fields: tuple[int, ...] = ()
        self._names: list[str] = []
        self.use(limits)

    def use(self, limits: SplitLimits) -> None:
        """Fill the next jobs within these limits: those of another site of the same task."""
        if limits.boundaries is Boundaries.WHOLE:
            limits = limits.without_limits()
        self.limits = limits
        self.size_limit = limits.size_limit_bytes
        self.max_files = limits.max_files
        self.exact = limits.files_per_job
        if self.exact is not None and (limits.respect_lumiblock or limits.boundaries is Boundaries.TOGETHER):
            # Blocks and boundaries may end at any file, so files are taken step by step up to that number.
            self.max_files, self.exact = self.exact, None
        if self.exact is not None:
            self.exact = min(self.exact, limits.max_total_files)
        if limits.name_fields != self._fields:
            self._fields = limits.name_fields
            self._names = [middle_name(file.lfn, self._fields) for file in self.files] if self._fields else []
        self.ranges = (limits.events_per_job is not None or limits.dynamic_events) and self._any_ranges()
        self.by_size = bool(limits.output_bytes_per_mb or limits.walltime_s_per_mb)
        one_boundary = limits.boundaries in (Boundaries.SPLIT, Boundaries.WHOLE)
        self.watches = self.ranges or limits.respect_lumiblock or one_boundary or bool(self._fields)

    def _any_ranges(self) -> bool:
        if self._has_ranges is None:
            self._has_ranges = any(file.start_event is not None for file in self.files)
        return self._has_ranges

    def marked(self) -> list[int]:
        """Where the secondaries stand, for `back_to`."""
        return [cursor.position for cursor in self.cursors]

    def back_to(self, mark: Sequence[int]) -> None:
        """Give back the secondary files that were taken since the mark."""
        for cursor, position in zip(self.cursors, mark, strict=True):
            cursor.position = position

    def next_end(self, begin: int) -> tuple[int, End]:
        """End of the job that begins at this file, and why; INPUT when more files could still be added to it."""
        if self.exact is not None:
            return self._exact_end(begin, self.exact)
        return self._filled_end(begin)

    def _exact_end(self, begin: int, number: int) -> tuple[int, End]:
        last = len(self.files)
        end = min(begin + number, last)
        reason = End.FILES if end - begin == number else End.INPUT
        if self.watches:
            for index in range(begin + 1, end):
                stop = self._stop_before(index)
                if stop is not None:
                    end, reason = index, stop
                    break
        most = self.limits.max_total_files
        if self.cursors and self._total_files(begin, end) > most:
            # The number of secondary files grows with the number of master files, so the largest that fits is found
            # by halving.
            numbers = range(1, end - begin + 1)
            largest = bisect_right(numbers, most, key=lambda n: self._total_files(begin, begin + n))
            end, reason = begin + max(largest, 1), End.TOTAL
        return end, reason

    def _filled_end(self, begin: int) -> tuple[int, End]:
        files, last = self.files, len(self.files)
        end = self._bunch_end(begin)
        size, output, events, walltime, names = self._weigh(begin, end, "")
        while end < last:
            if self.watches:
                stop = self._stop_before(end)
                if stop is not None:
                    return end, stop
            after = self._bunch_end(end)
            more = self._weigh(end, after, files[end - 1][1])
            size, output, events = size + more[0], output + more[1], events + more[2]
            walltime, names = walltime + more[3], names + more[4]
            broken = self._broken_limit(begin, after, size, output, events, walltime, names)
            if broken is not None:
                return end, broken
            end = after
        # More files of the last boundary may come, even when the job has as many files as it may choose.
        cut_bunch = self.limits.boundaries is Boundaries.TOGETHER and files[-1].boundary is not None
        number = names if self.limits.dynamic_events else end - begin
        # More ranges of the last name may come as well.
        if number >= self.max_files and not cut_bunch and not self.limits.dynamic_events:
            return end, End.FILES
        wanted = self.limits.events_per_job
        return end, End.EVENTS if wanted is not None and events >= wanted and not cut_bunch else End.INPUT

    def _bunch_end(self, begin: int) -> int:
        if self.limits.boundaries is not Boundaries.TOGETHER:
            return begin + 1
        files, last = self.files, len(self.files)
        boundary = files[begin].boundary
        end = begin + 1
        while boundary is not None and end < last and files[end].boundary == boundary:
            end += 1
        return end

    def _weigh(self, begin: int, end: int, last_lfn: str) -> tuple[int, float, int, float, int]:
        """A `Load` as a plain tuple: what these files add to a job whose last file is given."""
        limits, by_size = self.limits, self.by_size
        size, output, events, walltime, names = 0, 0.0, 0, 0.0, 0
        for file in self.files[begin:end]:
            lfn, own_size, first = file[1], file[2], file[4]
            own_events = file[3] or 0 if first is None else events_of(file)
            # Several ranges of one file stand next to each other and need the file once.
            if lfn != last_lfn:
                size += own_size
                names += 1
                last_lfn = lfn
            if by_size:
                share = own_events / file[3] if file[3] and first is not None else 1
                own_mb = own_size * share / MB or 1
                output += limits.output_bytes_per_mb * own_mb
                walltime += limits.walltime_s_per_mb * own_mb
            events += own_events
        if events:
            output += limits.output_bytes_per_event * events
            walltime += limits.walltime_s_per_event * events
        return size, output, events, walltime, names

    def _broken_limit(
        self, begin: int, end: int, size: int, output: float, events: int, walltime: float, names: int
    ) -> End | None:
        """The first limit that a job with these files and sums breaks."""
        limits = self.limits
        total = number = names if limits.dynamic_events else end - begin
        if number > self.max_files:
            return End.FILES
        largest = output
        if self.cursors or limits.merge_growth:
            others, size, output, largest, events, walltime = self._with_others(
                begin, end, size, output, events, walltime
            )
            total += others
        needs = size + limits.work_bytes
        # Small outputs may use the slack, inputs may not.
        if self.size_limit is not None and (
            needs + output > self.size_limit or (output < SLACK_BYTES and needs > self.size_limit - SLACK_BYTES)
        ):
            return End.SIZE
        if limits.max_walltime_s is not None and limits.base_walltime_s + walltime > limits.max_walltime_s:
            return End.WALLTIME
        if limits.events_per_job is not None and events > limits.events_per_job:
            return End.EVENTS
        if limits.max_output_bytes is not None and largest > limits.max_output_bytes:
            return End.OUTPUT
        disk = limits.work_bytes + output + (0 if limits.direct_io else size)
        if limits.max_disk_bytes is not None and disk > limits.max_disk_bytes:
            return End.DISK
        return End.TOTAL if total > limits.max_total_files else None

    def _with_others(
        self, begin: int, end: int, size: int, output: float, events: int, walltime: float
    ) -> tuple[int, int, float, float, int, float]:
        """Number of secondary files, then size, output, largest output, events and wall time with those files.

        When no master file has events, the first secondary says how many the job has. Merged outputs grow with the
        inputs of their own stream.
        """
        limits = self.limits
        masters = self.files[begin:end] if self.pairs else ()
        wanted = [cursor.wanted(masters, end - begin, events) for cursor in self.cursors]
        sizes = [cursor.bytes_for(masters, n) for cursor, n in zip(self.cursors, wanted, strict=True)]
        if not events and self.cursors:
            events = self.cursors[0].events_for(masters, wanted[0])
            output += limits.output_bytes_per_event * events
            walltime += limits.walltime_s_per_event * events
        largest = output
        if limits.merge_growth:
            largest = output + limits.merge_growth * max(size, *sizes, 0)
            output += limits.merge_growth * (size + sum(sizes))
            walltime += limits.walltime_s_per_mb * sum(sizes) / MB
        return sum(wanted), size + sum(sizes), output, largest, events, walltime

    def _total_files(self, begin: int, end: int) -> int:
        masters = self.files[begin:end]
        events = sum(map(events_of, masters))
        return end - begin + sum(cursor.wanted(masters, end - begin, events) for cursor in self.cursors)

    def _stop_before(self, index: int) -> End | None:
        """Why a job that has the file before this one must end there, if it must."""
        limits, before, after = self.limits, self.files[index - 1], self.files[index]
        if self.ranges and not _continues(before, after):
            return End.JUMP
        if limits.boundaries in (Boundaries.SPLIT, Boundaries.WHOLE) and before.boundary != after.boundary:
            return End.BOUNDARY
        if limits.respect_lumiblock and before.lumiblock != after.lumiblock:
            return End.LUMIBLOCK
        return End.NAME if self._fields and self._names[index - 1] != self._names[index] else None

    def short_of(self, begin: int, end: int) -> int | None:
        """The first secondary that has too few files for this job."""
        if not self.cursors:
            return None
        masters = self.files[begin:end]
        events = sum(map(events_of, masters))
        for cursor in self.cursors:
            if not cursor.enough(cursor.wanted(masters, end - begin, events)):
                return cursor.secondary.dataset_id
        return None

    def load(self, begin: int, end: int) -> Load:
        """What a job with these files weighs, its secondaries included; looks ahead and takes nothing."""
        size, output, events, walltime, names = self._weigh(begin, end, "")
        if self.cursors or self.limits.merge_growth:
            _, size, output, _, events, walltime = self._with_others(begin, end, size, output, events, walltime)
        return Load(size, output, events, self.limits.base_walltime_s + walltime, names)

    def group(self, begin: int, end: int, load: Load) -> Group:
        """Make the job and take its secondary files."""
        masters = self.files[begin:end]
        taken: list[Sequence[InputFile]] = []
        if self.cursors:
            events = sum(map(events_of, masters))
            for cursor in self.cursors:
                taken.append(cursor.take(masters, cursor.wanted(masters, end - begin, events)))
        return Group(masters, tuple(taken), load.size, round(load.output), load.events, load.walltime)


def _continues(before: InputFile, after: InputFile) -> bool:
    """Whether the events of `after` follow those of `before`: in the same file, or from one file's end to a start."""
    if before.end_event is None or after.start_event is None:
        return True
    if before.events is not None and before.end_event + 1 >= before.events:
        return after.start_event == 0
    return after.lfn == before.lfn and after.start_event == before.end_event + 1
