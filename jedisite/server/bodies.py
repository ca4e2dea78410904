"""Long bodies of requests, which threads read from their connections as they come, for as long as they come fast enough."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Final

from gunicorn.http.errors import NoMoreData
from gunicorn.http.unreader import SocketUnreader

from jedisite.server.arrivals import Arrival, Limits, Patience

LOOK_S: Final = 1.0


class TooSlowError(NoMoreData):
    """The rest of a request has not come in time, or will not come."""

    def __str__(self) -> str:
        return "The body of the request arrived too slowly or was cut off."


class _Held:
    """Bytes that are here and not taken yet. What is taken at their beginning does not move the rest."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes = b"") -> None:
        self._data, self._at = data, 0

    def __len__(self) -> int:
        return len(self._data) - self._at

    def getvalue(self) -> bytes:
        """All of them, as the web server asks to see whether there are any."""
        return self._data[self._at :]

    def take(self, size: int) -> bytes:
        """So many, or all when there are fewer."""
        found = self._data[self._at : self._at + size]
        self._at += len(found)
        if not len(self):
            self._data, self._at = b"", 0
        return found


class Unreader(SocketUnreader):
    """What the parser reads from: the bytes of an arrival, and for a long body the socket, for as long as it is fast enough."""

    def __init__(
        self, sock: socket.socket, limits: Limits, others_wait: Callable[[], bool], gives_way: Callable[[], bool]
    ) -> None:
        """`gives_way`: whether this body is to be given up, since its account has a place besides and others wait."""
        super().__init__(sock)
        self.buf = _Held()
        self._limits = limits
        self._others_wait = others_wait
        self._gives_way = gives_way
        self._patience: Patience | None = None
        self.unread_body = False
        """Whether some of a long body may still come that nobody reads."""

    def begin(self, arrival: Arrival) -> None:
        """The next request. To be called before a thread has it."""
        self.unread(bytes(arrival.data))
        self._patience = Patience(self._limits.body) if arrival.long else None
        self.unread_body = arrival.long

    def take_buffered(self) -> bytes:
        """What is here, without a look at the socket."""
        return self.buf.take(len(self.buf))

    def unread(self, data: bytes) -> None:
        self.buf = _Held(data + self.buf.getvalue())

    def read(self, size: int | None = None, read_ahead: int | None = None) -> bytes:
        """`size` bytes, fewer at the end; without a size what is here, else a piece. `read_ahead`: bytes that may be taken.

        The library's own moves all that is held at each call: a body of ten megabytes, read in kilobytes, took a minute.
        """
        if size is None or size < 0:
            return self.take_buffered() or self.chunk(read_ahead)
        if len(self.buf) < size:
            self._fill(size, max(size, read_ahead or 0))
        return self.buf.take(size)

    def _fill(self, least: int, most: int) -> None:
        """Read from the socket until so many bytes are here, or none come. What has come is kept when one is too slow."""
        pieces = [self.take_buffered()]
        have = len(pieces[0])
        try:
            while have < least and (piece := self.chunk(most - have)):
                pieces.append(piece)
                have += len(piece)
        finally:
            self.buf = _Held(b"".join(pieces))

    def stop(self) -> None:
        """The answer is made: nothing more is read from the socket."""
        self._patience = None

    def chunk(self, size_hint: int | None = None) -> bytes:
        patience = self._patience
        if patience is None:  # all of it was here, and the parser is of another opinion; or it is answered
            raise TooSlowError
        piece = None
        while piece is None:
            most = self._limits.busy if self._others_wait() else self._limits.body
            patience.after(0, 0, most)
            if patience.left <= 0 or self._gives_way():
                raise TooSlowError
            began = time.monotonic()
            self.sock.settimeout(min(patience.left, LOOK_S))
            try:
                piece = super().chunk(size_hint)
            except TimeoutError:
                pass
            finally:
                self.sock.settimeout(None)
            # Only what is spent here counts: a request may wait for the disk or the database between two pieces.
            patience.after(time.monotonic() - began, len(piece or b"") / self._limits.rate, most)
        if not piece:
            self.unread_body = False
            raise TooSlowError  # half a body is no body
        return piece
