"""A flag that is set once and that any number of threads, and `select`, can wait for."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Sequence


class Latch:
    """Set once, never cleared.

    Unlike `threading.Event` it may be set in a signal handler at any moment: setting takes no lock. The byte in the
    pipe is never read, so that everybody who waits wakes.
    """

    def __init__(self) -> None:
        self.is_set = False
        self._since = 0.0
        self._read, self._write = os.pipe()

    def set(self) -> None:
        if not self.is_set:
            self._since = time.monotonic()
            self.is_set = True
            os.write(self._write, b"!")

    def age_s(self) -> float:
        """Seconds since it was set; 0 as long as it is not."""
        return time.monotonic() - self._since if self.is_set else 0.0

    def fileno(self) -> int:
        return self._read

    def close(self) -> None:
        for end in (self._read, self._write):
            os.close(end)


def wait_any(latches: Sequence[Latch], seconds: float, *more_fds: int) -> bool:
    """Wait until a latch is set or one of the descriptors can be read. False when the time was over first."""
    poll = select.poll()  # not `select`, which cannot watch descriptors above 1023
    for fd in (*(latch.fileno() for latch in latches), *more_fds):
        poll.register(fd, select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1000))
