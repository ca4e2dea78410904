"""The channel between a payload and its pilot: a socket in the job's folder, which processes behind walls reach, too.

Each message is a packet. Several processes of a payload may talk at once; what they say is in range_words.py. A process that
does not read its answers, or talks without end, is cut off: nothing here waits for a payload.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import socket
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tasks_app.worker_node.pilot.range_words import LONGEST, READY, Failed, Finished, said
from tasks_app.worker_node.pilot.walls import JOB, Walls

log = logging.getLogger(__name__)

VARIABLE: Final = "PILOT_EVENTRANGECHANNEL"
NAME: Final = "payload.channel"
MOST_TALKERS: Final = 256
MOST_READY: Final = 10_000
MOST_NONSENSE: Final = 100
"""Messages without a meaning, each a line of the log, after which whoever sends them is cut off."""
SHOWN: Final = 200
"""Bytes of a message without a meaning that the log gets."""


def address(folder: Path, walls: Walls | None) -> str:
    """Where the payload finds the channel."""
    return f"{JOB}/{NAME}" if walls else str(folder / NAME)


class Channel:
    """`next_range` gives the answer to a payload that is ready, None while there is none; `heard` gets its reports,
    and says whether the payload has the range.

    Made before the payload, so that it is handed over with the folder; `serve` runs in a thread of its own.
    """

    def __init__(
        self, folder: Path, next_range: Callable[[], bytes | None], heard: Callable[[Finished | Failed], bool]
    ) -> None:
        """Raises OSError."""
        self._next_range, self._heard = next_range, heard
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._closing = False
        self._talkers: dict[int, socket.socket] = {}
        self._ready: deque[int] = deque()
        self._nonsense: Counter[int] = Counter()
        self._poll = select.poll()
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # The whole path may be longer than an address can be.
        above = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._door.bind(f"/proc/self/fd/{above}/{NAME}")
        finally:
            os.close(above)
        self._door.listen(MOST_TALKERS)
        self._door.setblocking(False)
        for fd in (self._door.fileno(), self._wake):
            self._poll.register(fd, select.POLLIN)

    def wake(self) -> None:
        """Look again for answers to those that are ready."""
        os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        """End `serve`, when all that the payload said has been heard."""
        self._closing = True
        self.wake()

    def free(self) -> None:
        """When nobody wakes it any more."""
        os.close(self._wake)

    def serve(self) -> None:
        """Until it is closed."""
        try:
            while True:
                events = self._poll.poll()
                for fd, _ in events:
                    if fd == self._door.fileno():
                        self._let_in()
                    elif fd in self._talkers:
                        self._hear(fd)
                if any(fd == self._wake for fd, _ in events):
                    os.eventfd_read(self._wake)
                    if self._closing:
                        self._hear_the_rest()
                        return
                self._answer()
        finally:
            for talker in self._talkers.values():
                talker.close()
            self._door.close()

    def _let_in(self) -> None:
        with contextlib.suppress(OSError):
            talker, _ = self._door.accept()
            if len(self._talkers) >= MOST_TALKERS:
                talker.close()
                return
            talker.setblocking(False)
            self._talkers[talker.fileno()] = talker
            self._poll.register(talker.fileno(), select.POLLIN)

    def _hear(self, fd: int) -> bool:
        """One message of a talker. False when there was none."""
        try:
            message, _, flags, _ = self._talkers[fd].recvmsg(LONGEST)
        except BlockingIOError:
            return False
        except OSError:
            message, flags = b"", 0
        if not message:
            self._cut_off(fd)
            return False
        meant = said(message)
        whole = not flags & socket.MSG_TRUNC
        if whole and meant == READY and len(self._ready) < MOST_READY:
            self._ready.append(fd)
        elif not whole or isinstance(meant, str) or not self._heard(meant):
            self._nonsense[fd] += 1
            log.warning("ranges.message_without_meaning bytes=%d said=%r", len(message), message[:SHOWN])
            if self._nonsense[fd] >= MOST_NONSENSE:
                self._cut_off(fd)
        return True

    def _answer(self) -> None:
        while self._ready and (answer := self._next_range()) is not None:
            fd = self._ready.popleft()
            if fd not in self._talkers:
                continue
            try:
                self._talkers[fd].send(answer)
            except OSError as exc:
                log.warning("ranges.answer_not_read trouble=%s", exc)
                self._cut_off(fd)

    def _hear_the_rest(self) -> None:
        """The payload has ended: what it said before is still in its sockets."""
        while True:
            before = len(self._talkers)
            self._let_in()
            if len(self._talkers) == before:
                break
        for fd in list(self._talkers):
            while fd in self._talkers and self._hear(fd):
                pass

    def _cut_off(self, fd: int) -> None:
        self._poll.unregister(fd)
        self._talkers.pop(fd).close()
        self._nonsense.pop(fd, None)
        self._ready = deque(one for one in self._ready if one != fd)
