"""How many files of each secondary dataset a job gets, and which."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from tasks_app.splitting.chunk import InputFile, Secondary, events_of

MOST_PER_JOB = 10_000


class Cursor:
    """Reads one secondary dataset from front to back, job by job.

    `bytes_for` and `events_for` look ahead and change nothing; `take` moves on. `position` may be set back.
    """

    def __init__(self, secondary: Secondary, *, by_boundary: bool) -> None:
        self.secondary = secondary
        self.files = secondary.files
        self.position = 0
        self._sizes = [0, *accumulate(file.size for file in self.files)]
        self._events_before: list[int] | None = None
        self._of_boundary: dict[int, list[InputFile]] | None = None
        if by_boundary and any(file.boundary is not None for file in self.files):
            self._of_boundary = {}
            for file in self.files:
                if file.boundary is not None:
                    self._of_boundary.setdefault(file.boundary, []).append(file)

    @property
    def _events(self) -> list[int]:
        """Events before each file, and of all. Counted when somebody asks."""
        if self._events_before is None:
            self._events_before = [0, *accumulate(events_of(file) for file in self.files)]
        return self._events_before

    @property
    def wraps(self) -> bool:
        return self.secondary.repeat or self.secondary.reusable

    def wanted(self, masters: Sequence[InputFile], number_of_masters: int, events: int) -> int:
        """Files that a job with so many master files and events gets. A job never gets one file twice.

        The files themselves are read only where boundaries pair master and secondary files.
        """
        secondary, all_files = self.secondary, len(self.files)
        if self._of_boundary is not None:
            return sum(len(self._of_boundary.get(b, ())) for b in {f.boundary for f in masters} if b is not None)
        if secondary.nosplit:
            return all_files
        if secondary.files_per_job is not None:
            number = secondary.files_per_job
        elif secondary.event_ratio is not None:
            number = self._until_events(math.ceil(secondary.event_ratio * events))
        else:
            number = math.ceil(secondary.ratio * number_of_masters)
        return min(number, all_files) if self.wraps else number

    def _until_events(self, wanted: int) -> int:
        if wanted <= 0:
            return 0
        start = self.position
        end = bisect_left(self._events, self._events[start] + wanted, lo=start)
        if end < len(self._events):
            return min(end - start, MOST_PER_JOB)
        if not self.wraps:
            # One more than there are: the events do not suffice.
            return len(self.files) - start + 1
        missing = wanted - (self._events[-1] - self._events[start])
        return min(len(self.files) - start + bisect_left(self._events, missing), MOST_PER_JOB)

    def enough(self, number: int) -> bool:
        """Whether that many files are left."""
        if self.wraps or self.secondary.nosplit or self._of_boundary is not None:
            return True
        return self.position + number <= len(self.files)

    def bytes_for(self, masters: Sequence[InputFile], number: int) -> int:
        if self._of_boundary is not None:
            return sum(file.size for file in self._matching(masters))
        return self._sum_of_next(self._sizes, number)

    def events_for(self, masters: Sequence[InputFile], number: int) -> int:
        """Events of the files that a job would get."""
        if self._of_boundary is not None:
            return sum(events_of(file) for file in self._matching(masters))
        return self._sum_of_next(self._events, number)

    def _sum_of_next(self, before: list[int], number: int) -> int:
        if self.secondary.nosplit:
            return before[-1]
        start = self._start(number)
        end = start + number
        last = len(self.files)
        if end <= last:
            return before[end] - before[start]
        around = before[end - last] if self.wraps else 0
        return before[-1] - before[start] + around

    def take(self, masters: Sequence[InputFile], number: int) -> Sequence[InputFile]:
        """The files of the next job."""
        if self._of_boundary is not None:
            return self._matching(masters)
        if self.secondary.nosplit:
            return self.files
        start = self._start(number)
        end = start + number
        last = len(self.files)
        if end <= last or not self.wraps:
            self.position = end % last if self.wraps and last else min(end, last)
            return self.files[start:end]
        self.position = end - last
        return [*self.files[start:], *self.files[: end - last]]

    def _start(self, number: int) -> int:
        by_number = self.secondary.event_ratio is None
        if self.secondary.reusable and by_number and self.position + number > len(self.files):
            return 0
        return self.position

    def _matching(self, masters: Sequence[InputFile]) -> list[InputFile]:
        assert self._of_boundary is not None
        wanted = dict.fromkeys(file.boundary for file in masters if file.boundary is not None)
        return [file for boundary in wanted for file in self._of_boundary.get(boundary, ())]
