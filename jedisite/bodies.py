"""Long bodies of requests, which threads read from their connections as they come, for as long as they come fast enough."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Final

from gunicorn.http.errors import NoMoreData
from gunicorn.http.unreader import SocketUnreader

from jedisite.arrivals import Arrival, Limits, Patience

LOOK_S: Final = 1.0


class TooSlowError(NoMoreData):
    """The rest of a request has not come in time, or will not come."""

    def __str__(self) -> str:
        return "The body of the request came too slowly, or broke off."


class Unreader(SocketUnreader):
    """What the parser reads from: the bytes of an arrival, and for a long body the socket, for as long as it is fast enough."""

    def __init__(
        self, sock: socket.socket, limits: Limits, others_wait: Callable[[], bool], gives_way: Callable[[], bool]
    ) -> None:
        """`gives_way`: whether this body is to be given up, since its account has a place besides and others wait."""
        super().__init__(sock)
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
