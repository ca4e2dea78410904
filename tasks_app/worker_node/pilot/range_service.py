"""A job's ranges of events while its payload runs: fetched ahead, handed over, and their outputs stored and reported.

Three threads, so that neither the server nor the storage holds up the payload: one speaks with it, one fetches, one stores and
reports. A range counts only when the server has heard that its output is stored: whoever ends us loses the others.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tasks_app.worker_node.pilot.errors import DIAG_LIMIT, Code, Failure, JobFailedError
from tasks_app.worker_node.pilot.job import Job, Output
from tasks_app.worker_node.pilot.latch import Latch
from tasks_app.worker_node.pilot.range_book import MOST_TROUBLES, RangeBook
from tasks_app.worker_node.pilot.range_calls import RangeCalls
from tasks_app.worker_node.pilot.range_channel import Channel
from tasks_app.worker_node.pilot.range_files import RangeFiles
from tasks_app.worker_node.pilot.range_words import Failed, Finished, offer
from tasks_app.worker_node.pilot.range_zips import SCOPE, pack, remove_outputs, zip_name
from tasks_app.worker_node.pilot.site_client import InterruptedCallError, RefusedError, UnreachableError
from tasks_app.worker_node.pilot.stageout import Stored, stage_out, take_back

log = logging.getLogger(__name__)

PARTING_S: Final = 5.0
"""How long a job that is given up waits for a report that is under way."""
ZIP_EVERY_S: Final = 300.0
"""Where the queue does not say it (zip_time_gap): how long an output waits for others."""


def zip_every_s(queue_data: Mapping[str, Any]) -> float:
    """What a queue says, if it is a number above 0."""
    said = queue_data.get("zip_time_gap")
    return float(said) if isinstance(said, int | float) and said > 0 else ZIP_EVERY_S


@dataclass(frozen=True, slots=True)
class RangeStore:
    """The storage that outputs of ranges go to: its folder here, its number at the site, and what stops a copy by raising."""

    base: Path
    number: int
    check: Callable[[], None]


class RangeService:
    """From `start` to `finish`. `trouble` says why the payload must be stopped, and `stopped` is set then."""

    def __init__(
        self,
        job: Job,
        folder: Path,
        calls: RangeCalls,
        store: RangeStore,
        until: Sequence[Latch],
        zip_every_s: float = ZIP_EVERY_S,
        clock: Callable[[], float] = time.monotonic,
        files: RangeFiles | None = None,
    ) -> None:
        """Open the channel. `until`: what interrupts calls; `files` brings what is no input. Raises OSError."""
        self.trouble: Failure | None = None
        self.stopped = Latch()
        self._job, self._folder, self._calls, self._store = job, folder, calls, store
        self._until, self._clock, self._files = tuple(until), clock, files
        self._book = RangeBook(job.cores, zip_every_s, clock())
        self._changed = threading.Condition()
        self._ended = Latch()
        self._untold: list[tuple[Stored, list[Finished]]] = []
        """Files that are stored, and not reported."""
        self._channel = Channel(folder, self._next, self._heard)
        works = {"channel": self._channel.serve, "fetching": self._fetch, "storing": self._report}
        self._threads = {
            name: threading.Thread(target=self._guarded, args=(work,), name=f"ranges-{name}", daemon=True)
            for name, work in works.items()
        }

    @property
    def events(self) -> int:
        """Events of the ranges that the server has as finished."""
        return self._book.events_done

    def start(self) -> None:
        for thread in self._threads.values():
            thread.start()

    def softly_stop(self) -> None:
        """The payload gets no more ranges, and ends by itself when it has done those that it has."""
        with self._changed:
            self._book.stop()
            self._changed.notify_all()
        self._channel.wake()
        log.info("ranges.softly_stopped job=%d", self._job.id)

    def finish(self, patience_s: float | None = None, until: Sequence[Latch] | None = None) -> None:
        """The payload has ended: store and report all that is left. What cannot be stored any more is reported as failed.

        `patience_s` and `until` are those of the calls, if others than usually. Raises JobFailedError, InterruptedCallError.
        """
        if not self._end_threads(patience_s):
            return
        until = self._until if until is None else until
        try:
            self._tell_stored(patience_s, until)
            while self._book.packs_in(self._clock()) is not None:
                self._store_some(last=True)
                self._tell_stored(patience_s, until)
            self._tell_failures(patience_s, until)
        except UnreachableError as exc:
            raise JobFailedError(Code.SERVER_UNREACHABLE, f"The server did not answer about ranges: {exc}") from exc
        except RefusedError as exc:
            raise JobFailedError(
                Code.KILLED_BY_SERVER, f"The server takes no reports on ranges of this job: {exc}"
            ) from exc

    def abandon(self) -> None:
        """End without storing or reporting: nobody would take it. What is being stored at this moment is taken back."""
        self._end_threads(PARTING_S)

    def close(self) -> bool:
        """Free the latches. False when a thread still looks at them, as one may that waits for an answer of the server."""
        if any(thread.is_alive() for thread in self._threads.values()):
            return False
        for latch in (self.stopped, self._ended):
            latch.close()
        self._channel.free()
        return True

    def _end_threads(self, patience_s: float | None) -> bool:
        """False when one is still storing or reporting after that time. The one that fetches is not waited for."""
        self._channel.close()
        self._threads["channel"].join()
        with self._changed:
            self._ended.set()
            self._changed.notify_all()
        self._threads["storing"].join(patience_s)
        return not self._threads["storing"].is_alive()

    def _guarded(self, work: Callable[[], None]) -> None:
        """A thread's work; when it cannot go on, neither can the payload."""
        try:
            work()
        except InterruptedCallError:
            pass
        except UnreachableError as exc:
            self._give_up(Code.SERVER_UNREACHABLE, f"The server did not answer about ranges of events: {exc}")
        except RefusedError as exc:
            self._give_up(Code.KILLED_BY_SERVER, f"The server gives or takes no ranges of this job: {exc}")
        except Exception as exc:
            log.exception("ranges.pilot_problem")
            self._give_up(Code.PILOT_PROBLEM, f"The pilot itself failed: {type(exc).__name__}: {exc}")

    def _give_up(self, code: Code, diag: str) -> None:
        if self.trouble is None:
            self.trouble = Failure(code, diag[:DIAG_LIMIT])
            self.stopped.set()

    # The thread of the channel.

    def _next(self) -> bytes | None:
        with self._changed:
            one = self._book.hand_out(self._clock())
            if one is not None:
                self._changed.notify_all()
                return offer([one.said])
            return offer([]) if self._book.over else None

    def _heard(self, report: Finished | Failed) -> bool:
        with self._changed:
            book, now = self._book, self._clock()
            known = book.failed(report) if isinstance(report, Failed) else book.finished(report, now)
            self._changed.notify_all()
            return known

    # The thread that fetches.

    def _fetch(self) -> None:
        until = (*self._until, self._ended)
        while True:
            with self._changed:
                while not (count := self._book.wanted(self._clock())):
                    if self._ended.is_set:
                        return
                    self._changed.wait()
            given = self._calls.acquire(count, until)
            ranges, failed = self._files.bring(given, self._at_hand, self._go_on) if self._files else (given, [])
            with self._changed:
                self._book.take_in(ranges, more=bool(given))
                self._book.lose(failed)
                self._changed.notify_all()
            self._channel.wake()

    def _go_on(self) -> None:
        """Raises InterruptedCallError when no range is wanted any more."""
        if any(latch.is_set for latch in (*self._until, self._ended)):
            raise InterruptedCallError("the job ends")

    def _at_hand(self) -> set[str]:
        with self._changed:
            return self._book.at_hand

    # The thread that stores and reports; `finish` goes on with it.

    def _report(self) -> None:
        while True:
            with self._changed:
                while not self._ended.is_set:
                    now = self._clock()
                    due_s, begun_s = self._book.packs_in(now), self._book.begun_in(now)
                    if self._book.has_failures or 0 in (due_s, begun_s):
                        break
                    self._changed.wait(min([one for one in (due_s, begun_s) if one is not None], default=None))
                else:
                    return
                begun = self._book.begun(now)
            self._tell_failures(None, self._until)
            if begun:
                self._calls.tell_begun(begun, self._until)
            if due_s == 0:
                self._store_some(last=False)
                self._tell_stored(None, self._until)

    def _tell_failures(self, patience_s: float | None, until: Sequence[Latch]) -> None:
        with self._changed:
            failures = self._book.failures()
        if not failures:
            return
        try:
            self._calls.tell_failed(failures, patience_s, until)
        except BaseException:
            with self._changed:
                self._book.lose(failures)
            raise
        log.info("ranges.failed count=%d first=%s", len(failures), failures[0].text)

    def _store_some(self, *, last: bool) -> None:
        """One zip file, which is told next. `last`: what cannot be stored is not tried again."""
        with self._changed:
            batch = self._book.outputs()
        target = self._folder / zip_name(batch[0])
        try:
            batch, failed = pack(batch, self._folder, target)
            with self._changed:
                self._book.lose(failed)
            if batch:
                check = (lambda: None) if last else self._store.check
                stored = stage_out(Output(target.name, SCOPE, ""), self._store.base, self._folder, check)
                self._untold.append((stored, batch))
        except (OSError, JobFailedError) as exc:
            self._not_stored(batch, exc, last=last)
        finally:
            target.unlink(missing_ok=True)

    def _tell_stored(self, patience_s: float | None, until: Sequence[Latch]) -> None:
        """Report what is stored. A file whose report may have been heard stays, and is told again: that changes nothing."""
        while self._untold:
            stored, packed = self._untold[0]
            names = [one.range_id for one in packed]
            try:
                taken = self._calls.tell_stored(stored, self._store.number, names, patience_s, until)
            except RefusedError:
                take_back([stored])
                self._untold.clear()
                raise
            self._untold.pop(0)
            log.info("ranges.stored lfn=%s ranges=%d taken=%d", stored.lfn, len(names), len(taken))
            with self._changed:
                self._book.told(taken)
            if not taken:
                take_back([stored])
            remove_outputs(packed, self._folder)

    def _not_stored(self, batch: list[Finished], exc: Exception, *, last: bool) -> None:
        log.warning("ranges.not_stored ranges=%d trouble=%s", len(batch), exc)
        with self._changed:
            if last:
                why = f"The output could not be stored: {exc}"[:DIAG_LIMIT]
                self._book.lose([Failed(one.range_id, why, code=Code.STAGE_OUT_FAILED) for one in batch])
                return
            self._book.give_back(batch, self._clock())
            troubles = self._book.troubles
        if troubles >= MOST_TROUBLES:
            self._give_up(Code.STAGE_OUT_FAILED, f"Outputs of ranges could not be stored {troubles} times: {exc}")
