"""The socket of a client: it keeps what the client has not taken of an answer, so that no thread has to wait for that."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import socket
import termios
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from jedisite.server.arrivals import Limits, Patience

PIECE: Final = 256 * 1024
MOST_STREAMED: Final = 256 * 1024
"""Bytes that are kept of an answer that is still being made; then its thread waits for the client."""
LOOK_S: Final = 1.0


class FilePart:
    """What has not been sent of a file."""

    def __init__(self, descriptor: int, at: int, left: int) -> None:
        self.descriptor, self.at, self.left = os.dup(descriptor), at, left

    def close(self) -> None:
        os.close(self.descriptor)


class AnswerSocket(socket.socket):
    """Sends at once what the client takes, and keeps the rest for `flush`, in memory or as a part of an open file."""

    def __init__(self, accepted: socket.socket, limits: Limits, on_close: Callable[[], None]) -> None:
        """`on_close` is called once, when the connection is closed."""
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self._limits = limits
        self._on_close: Callable[[], None] | None = on_close
        self._kept: deque[memoryview | FilePart] = deque()
        self._sent = self._taken = 0
        self._looked = 0.0
        self.memory = 0
        """Bytes of memory that are kept."""
        self.begin()

    def begin(self) -> None:
        """The next request and its answer."""
        self.account = ""
        """Who has sent the request, where a view has said so."""
        self._patience = Patience(self._limits.answer)

    def note_account(self, account: str) -> None:
        self.account = account

    def begin_waiting(self) -> None:
        """From now on it is the client for whom the answer waits."""
        self._looked = time.monotonic()

    @property
    def keeps(self) -> bool:
        return bool(self._kept)

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Send, or keep, all of it. Raises BrokenPipeError when the client takes too little of what is kept already."""
        if not self._kept:
            try:
                sent = self.send(data, socket.MSG_DONTWAIT)
            except BlockingIOError:
                sent = 0
            self._sent += sent
            if sent == len(data):
                return
            data = memoryview(data)[sent:]
        if self.memory >= MOST_STREAMED:
            self.begin_waiting()
            self.flush()
            while self._kept:
                self._wait()
                self.flush()
        part = memoryview(data).cast("B")
        if part.nbytes:
            self._kept.append(part)
            self.memory += part.nbytes
            self.flush()

    def sendfile(self, file: Any, offset: int = 0, count: int | None = None) -> int:
        size = os.fstat(file.fileno()).st_size - offset if count is None else count
        if size > 0:
            self._kept.append(FilePart(file.fileno(), offset, size))
            self.flush()
        return size

    def flush(self, most: int | None = None) -> None:
        """Send what the client takes now, at most about so many bytes. Raises OSError when nothing more can be sent."""
        ends = None if most is None else self._sent + most
        while self._kept and (ends is None or self._sent < ends):
            part = self._kept[0]
            piece = part if isinstance(part, memoryview) else os.pread(part.descriptor, min(PIECE, part.left), part.at)
            if not piece:
                raise BrokenPipeError(errno.EPIPE, "the file has become shorter while it was sent")
            try:
                sent = self.send(piece, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            self._sent += sent
            if isinstance(part, memoryview):
                self.memory -= sent
                if sent == part.nbytes:
                    self._kept.popleft()
                else:
                    self._kept[0] = part[sent:]
            else:
                part.at, part.left = part.at + sent, part.left - sent
                if not part.left:
                    self._kept.popleft()
                    part.close()

    def look(self) -> float:
        """Seconds for which this client is still waited for. To be called about once a second while something is kept."""
        now, taken = time.monotonic(), self._sent - self._under_way()
        self._patience.after(now - self._looked, (taken - self._taken) / self._limits.least, self._limits.answer)
        self._looked, self._taken = now, taken
        return self._patience.left

    def discard(self) -> None:
        """Forget what is kept."""
        self.memory = 0
        while self._kept:
            part = self._kept.popleft()
            if isinstance(part, FilePart):
                part.close()

    def close(self) -> None:
        self.discard()
        super().close()
        left, self._on_close = self._on_close, None
        if left is not None:
            left()

    def _wait(self) -> None:
        if self.look() <= 0:
            raise BrokenPipeError(errno.EPIPE, "the client takes too little of its answer")
        poll = select.poll()
        poll.register(self, select.POLLOUT)
        poll.poll(LOOK_S * 1000)

    def _under_way(self) -> int:
        """Bytes that were sent and that the client's machine has not confirmed."""
        return int.from_bytes(fcntl.ioctl(self, termios.TIOCOUTQ, bytes(4)), "little")
