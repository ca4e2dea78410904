"""Cuts the files of a chunk into jobs, greedily and in order.

A job is filled bunch by bunch: a bunch is one file, or `files_per_job` files, or all files of a boundary. The first
bunch always fits, so a file larger than every limit still makes a job. A job ends when the next bunch would break a
limit, or where the input says so: events that do not continue, another boundary, another luminosity block.

Seams for what comes later: `_stops` for further reasons to end a job at a file, `_fits` for further limits. Which site
a job goes to is decided before; the caller passes the limits of the site and the files that it has left.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from tasks_app.splitting.chunk import Chunk, Group, InputFile, Split, events_of
from tasks_app.splitting.limits import MB, SLACK_BYTES, Boundaries, SplitLimits
from tasks_app.splitting.secondaries import Cursor


def split(chunk: Chunk, limits: SplitLimits, *, more_to_come: bool = False, most_groups: int | None = None) -> Split:
    """Make the groups of files of the next jobs, each file in exactly one group or in the rest, in order.

    With `more_to_come` (the chunk was cut off when it was read) a last group that could still grow goes to the rest.
    `most_groups` ends the work early; what is left goes to the rest.
    """
    if limits.boundaries is Boundaries.WHOLE:
        limits = limits.without_limits()
    filler = _Filler(chunk, limits)
    groups: list[Group] = []
    begin, last = 0, len(chunk.files)
    short_of: int | None = None
    while begin < last and (most_groups is None or len(groups) < most_groups):
        end, is_open = filler.next_end(begin)
        if more_to_come and is_open:
            break
        short_of = filler.short_of(begin, end)
        if short_of is not None:
            break
        groups.append(filler.group(begin, end))
        begin = end
    return Split(groups, chunk.files[begin:], short_of)


class _Filler:
    """Fills one job after the other from one chunk."""

    def __init__(self, chunk: Chunk, limits: SplitLimits) -> None:
        self.files = chunk.files
        self.limits = limits
        self.pairs = limits.boundaries is not Boundaries.NONE
        self.cursors = [Cursor(secondary, by_boundary=self.pairs) for secondary in chunk.secondaries]
        self.size_limit = limits.size_limit_bytes
        self.max_files = limits.max_files
        self.exact = limits.files_per_job
        if self.exact is not None and (limits.respect_lumiblock or limits.boundaries is Boundaries.TOGETHER):
            # Blocks and boundaries may end at any file, so files are taken step by step up to that number.
            self.max_files, self.exact = self.exact, None
        if self.exact is not None:
            self.exact = min(self.exact, limits.max_total_files)
        counts_events = limits.events_per_job is not None or limits.dynamic_events
        self.ranges = counts_events and any(file.start_event is not None for file in chunk.files)
        one_boundary = limits.boundaries in (Boundaries.SPLIT, Boundaries.WHOLE)
        self.watches = self.ranges or limits.respect_lumiblock or one_boundary

    def next_end(self, begin: int) -> tuple[int, bool]:
        """End of the job that begins at this file, and whether more files could still be added after the last one."""
        if self.exact is not None:
            return self._exact_end(begin, self.exact)
        return self._filled_end(begin)

    def _exact_end(self, begin: int, number: int) -> tuple[int, bool]:
        files, last = self.files, len(self.files)
        end = min(begin + number, last)
        stopped = end - begin == number
        if self.watches:
            for index in range(begin + 1, end):
                if self._stops(files[index - 1], files[index]):
                    end, stopped = index, True
                    break
        if self.cursors and self._total_files(begin, end) > self.limits.max_total_files:
            # The number of secondary files grows with the number of master files, so the largest that fits is found
            # by halving.
            numbers = range(1, end - begin + 1)
            largest = bisect_right(
                numbers, self.limits.max_total_files, key=lambda n: self._total_files(begin, begin + n)
            )
            end, stopped = begin + max(largest, 1), True
        return end, not stopped

    def _filled_end(self, begin: int) -> tuple[int, bool]:
        files, last = self.files, len(self.files)
        end = self._bunch_end(begin)
        size, output, events, walltime = self._weigh(begin, end, "")
        while end < last:
            if self.watches and self._stops(files[end - 1], files[end]):
                return end, False
            after = self._bunch_end(end)
            more = self._weigh(end, after, files[end - 1].lfn)
            size, output, events, walltime = size + more[0], output + more[1], events + more[2], walltime + more[3]
            if not self._fits(begin, after, size, output, events, walltime):
                return end, False
            end = after
        # More files of the last boundary may come, even when the job has as many files as it may choose.
        cut_bunch = self.limits.boundaries is Boundaries.TOGETHER and files[-1].boundary is not None
        return end, cut_bunch or end - begin < self.max_files

    def _bunch_end(self, begin: int) -> int:
        if self.limits.boundaries is not Boundaries.TOGETHER:
            return begin + 1
        files, last = self.files, len(self.files)
        boundary = files[begin].boundary
        end = begin + 1
        while boundary is not None and end < last and files[end].boundary == boundary:
            end += 1
        return end

    def _weigh(self, begin: int, end: int, last_lfn: str) -> tuple[int, float, int, float]:
        """Input bytes, output bytes, events and seconds that these files add to a job whose last file is given."""
        limits = self.limits
        size, output, events, walltime = 0, 0.0, 0, 0.0
        for index in range(begin, end):
            file = self.files[index]
            own_size = file[2]
            own_events = events_of(file)
            # Several ranges of one file stand next to each other and need the file once.
            if file[1] != last_lfn:
                size += own_size
                last_lfn = file[1]
            if limits.output_bytes_per_mb or limits.walltime_s_per_mb:
                share = own_events / file.events if file.events and file.start_event is not None else 1
                own_mb = own_size * share / MB or 1
                output += limits.output_bytes_per_mb * own_mb
                walltime += limits.walltime_s_per_mb * own_mb
            output += limits.output_bytes_per_event * own_events
            walltime += limits.walltime_s_per_event * own_events
            events += own_events
        return size, output, events, walltime

    def _fits(self, begin: int, end: int, size: int, output: float, events: int, walltime: float) -> bool:
        limits = self.limits
        number = end - begin
        if number > self.max_files or number > limits.max_total_files:
            return False
        if limits.events_per_job is not None and events > limits.events_per_job:
            return False
        if limits.max_walltime_s is not None and limits.base_walltime_s + walltime > limits.max_walltime_s:
            return False
        if limits.max_output_bytes is not None and output > limits.max_output_bytes:
            return False
        if self.cursors:
            masters = self.files[begin:end] if self.pairs else ()
            wanted = [cursor.wanted(masters, number, events) for cursor in self.cursors]
            if number + sum(wanted) > limits.max_total_files:
                return False
            size += sum(cursor.bytes_for(masters, n) for cursor, n in zip(self.cursors, wanted, strict=True))
        needs = size + limits.work_bytes
        # Small outputs may use the slack, inputs may not.
        if self.size_limit is not None and (
            needs + output > self.size_limit or (output < SLACK_BYTES and needs > self.size_limit - SLACK_BYTES)
        ):
            return False
        disk = limits.work_bytes + output + (0 if limits.direct_io else size)
        return limits.max_disk_bytes is None or disk <= limits.max_disk_bytes

    def _total_files(self, begin: int, end: int) -> int:
        masters = self.files[begin:end]
        events = sum(map(events_of, masters))
        return end - begin + sum(cursor.wanted(masters, end - begin, events) for cursor in self.cursors)

    def _stops(self, before: InputFile, after: InputFile) -> bool:
        """Whether a job that has `before` must end there."""
        limits = self.limits
        if self.ranges and not _continues(before, after):
            return True
        if limits.boundaries in (Boundaries.SPLIT, Boundaries.WHOLE) and before.boundary != after.boundary:
            return True
        return limits.respect_lumiblock and before.lumiblock != after.lumiblock

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

    def group(self, begin: int, end: int) -> Group:
        masters = self.files[begin:end]
        size, output, events, walltime = self._weigh(begin, end, "")
        taken: list[Sequence[InputFile]] = []
        for cursor in self.cursors:
            number = cursor.wanted(masters, end - begin, events)
            size += cursor.bytes_for(masters, number)
            taken.append(cursor.take(masters, number))
        return Group(masters, tuple(taken), size, round(output), events, self.limits.base_walltime_s + walltime)


def _continues(before: InputFile, after: InputFile) -> bool:
    """Whether the events of `after` follow those of `before`: in the same file, or from one file's end to a start."""
    if before.end_event is None or after.start_event is None:
        return True
    if before.events is not None and before.end_event + 1 >= before.events:
        return after.start_event == 0
    return after.lfn == before.lfn and after.start_event == before.end_event + 1
