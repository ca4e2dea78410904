"""Files of ranges of events that are no inputs of the job: jumbo jobs take ranges of files that nobody knew when they were made.

They are brought when the first range of them comes, and go when no range of them is here and another file comes.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from tasks_app.worker_node.pilot.errors import Code, JobFailedError
from tasks_app.worker_node.pilot.job import Input
from tasks_app.worker_node.pilot.range_book import Range
from tasks_app.worker_node.pilot.range_words import Failed
from tasks_app.worker_node.pilot.safe_names import reserved_for

log = logging.getLogger(__name__)
Check = Callable[[], None]


class RangeFiles:
    """The files in a job's folder that were brought for its ranges. `copy` brings one there; raises JobFailedError, and what
    it calls meanwhile raises."""

    def __init__(self, folder: Path, copy: Callable[[Input, Check], object]) -> None:
        self._folder, self._copy = folder, copy
        self._here: set[str] = set()

    def bring(
        self, ranges: Sequence[Range], at_hand: Callable[[], Collection[str]], check: Check
    ) -> tuple[list[Range], list[Failed]]:
        """Those whose files are here now, and why others are not. `at_hand`: names of the files of ranges that are not done.

        Raises what `check` raises, which is called during a copy.
        """
        ready, failed, trouble = list[Range](), list[Failed](), dict[str, Failed]()
        for one in ranges:
            if one.file is None or one.file.lfn in self._here:
                ready.append(one)
                continue
            lfn = one.file.lfn
            if lfn not in trouble:
                self._clear({*at_hand(), *(other.file.lfn for other in ranges if other.file)})
                if why := self._bring(one.file, check):
                    trouble[lfn] = why
                else:
                    ready.append(one)
                    continue
            failed.append(Failed(one.id, trouble[lfn].text, code=trouble[lfn].code))
        return ready, failed

    def _bring(self, file: Input, check: Check) -> Failed | None:
        """None when the file is here. One that stands in the way of something else is not brought."""
        if owner := reserved_for(file.lfn):
            return Failed("", f"Input {file.lfn} has a name of {owner}", code=Code.STAGE_IN_FAILED)
        try:
            self._copy(file, check)
        except JobFailedError as exc:
            log.warning("ranges.file_lacks lfn=%s trouble=%s", file.lfn, exc.failure.diag)
            return Failed("", exc.failure.diag, code=exc.failure.code)
        self._here.add(file.lfn)
        return None

    def _clear(self, needed: Collection[str]) -> None:
        """Make room: what no range needs that is here."""
        for lfn in self._here.difference(needed):
            with contextlib.suppress(OSError):  # the payload may have put something else there
                (self._folder / lfn).unlink()
            self._here.discard(lfn)
