"""The worker of the web server: gunicorn's threads, which no slow sender and no slow closer holds up.

A request goes to a thread once all of it is here; until then its connection waits in the main loop and costs no thread.
Very long bodies, as those of uploads, are read by threads as they come, in at most half of them at once, and must come at a
least rate. Connections that are closed wait in the main loop, too, for their client to have read the answer.
"""

from __future__ import annotations

import contextlib
import errno
import resource
import selectors
import socket
import time
from collections import deque
from functools import partial
from typing import Any, Final

from gunicorn.http.errors import NoMoreData
from gunicorn.http.unreader import SocketUnreader
from gunicorn.workers.gthread import TConn, ThreadWorker

from jedisite.arrivals import Arrival, Limits

PIECE: Final = 64 * 1024
LINGER_S: Final = 2.0
"""Seconds in which a client may read the end of an answer before its connection is closed."""
MOST_LINGERING: Final = 200
MOST_HELD: Final = 64 * 1024 * 1024
"""Bytes of requests that arrive, in all. When there are more, threads read further bodies as they come."""
OTHER_FILES: Final = 256
"""Open files that are not connections of clients: the database, logs, files that are sent."""
TOO_SLOW: Final = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class TooSlowError(NoMoreData):
    """The rest of a request has not come in time, or will not come."""

    def __str__(self) -> str:
        return "The body of the request came too slowly, or broke off."


class Connection(TConn):
    """A connection, with what has come of its next request."""

    def __init__(self, worker: Worker, *args: Any) -> None:
        super().__init__(*args)
        self._worker = worker
        self.arrival: Arrival | None = None

    def close(self, graceful: bool = False) -> None:
        if graceful and self._worker.gathers:
            self._worker.linger(self.sock)
        else:
            super().close(graceful)


class Unreader(SocketUnreader):
    """What the parser reads from: the bytes of an arrival, and for a long body the socket, for as long as it is fast enough."""

    def __init__(self, sock: socket.socket, limits: Limits) -> None:
        super().__init__(sock)
        self._limits = limits
        self._received = 0
        self._since: float | None = None

    def begin(self, arrival: Arrival, now: float) -> None:
        """The next request. To be called before a thread has it."""
        self.unread(bytes(arrival.data))
        self._received = 0
        self._since = now if arrival.long else None

    def chunk(self, size_hint: int | None = None) -> bytes:
        if self._since is None:  # all of the request was here, and the parser is of another opinion
            raise TooSlowError
        left = self._limits.body_ends(self._since, self._received) - time.monotonic()
        if left <= 0:
            raise TooSlowError
        others = self.sock.gettimeout()
        self.sock.settimeout(left if others is None else min(left, others))
        try:
            piece: bytes = super().chunk(size_hint)
        except TimeoutError:
            raise TooSlowError from None
        finally:
            self.sock.settimeout(others)
        if not piece:
            raise TooSlowError  # half a body is no body
        self._received += len(piece)
        return piece


class Worker(ThreadWorker):
    """Its main loop looks after connections whose requests arrive; its threads get requests that are here."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        # The site lies at the root of its address; a header that says otherwise comes from a client.
        self.cfg.set("forwarder_headers", "")
        self._arriving: set[Connection] = set()
        self._long: set[Connection] = set()
        self._queued: deque[Connection] = deque()
        self._lingering: dict[socket.socket, float] = {}
        self._held = 0
        self._most_long = max(1, self.cfg.threads // 2)
        # TLS and HTTP/2 are read otherwise; then a proxy is to stand in front.
        self.gathers = not self.cfg.is_ssl and self.cfg.http2_cleartext == "off" and self.cfg.protocol == "http"

    def init_process(self) -> None:
        _allow_files(self.worker_connections + MOST_LINGERING + OTHER_FILES)
        super().init_process()

    def load_wsgi(self) -> None:
        super().load_wsgi()
        from django.conf import settings  # the application has said which

        self._limits: Limits = settings.JEDI_SLOW_SENDERS

    def accept(self, listener: socket.socket) -> None:
        try:
            client, address = listener.accept()
        except OSError as exc:
            if exc.errno in (errno.EAGAIN, errno.EWOULDBLOCK, errno.ECONNABORTED):
                return
            raise
        self.nr_conns += 1
        conn = Connection(self, self.cfg, client, address, listener.getsockname())
        self.enqueue_req(conn)

    def enqueue_req(self, conn: Connection) -> None:
        """A connection has, or may have, the beginning of a request."""
        if not self.gathers:
            super().enqueue_req(conn)
            return
        now = time.monotonic()
        conn.arrival = Arrival(self._limits, now)
        if conn.parser and (ahead := conn.parser.unreader.take_buffered()):
            conn.arrival.add(ahead, now)
            self._held += len(ahead)
        self._gather(conn)

    def finish_request(self, conn: Connection, fs: Any) -> None:
        if conn in self._long:
            self._long.discard(conn)
            while self._queued and len(self._long) < self._most_long:
                self._hand_over(self._queued.popleft())
        super().finish_request(conn, fs)

    def murder_pending(self) -> None:
        """Called by the main loop about once a second: end what has taken too long."""
        super().murder_pending()
        now = time.monotonic()
        for conn in [one for one in self._arriving if one.arrival and self._ends(one.arrival, now) <= now]:
            self.log.debug("Closing a connection whose request does not come.")
            if conn.arrival and conn.arrival.data:
                with contextlib.suppress(OSError):
                    conn.sock.send(TOO_SLOW, socket.MSG_DONTWAIT)
            self._drop(conn)
        for sock in [one for one, ends in self._lingering.items() if ends <= now]:
            self._close_lingering(sock)

    def linger(self, sock: socket.socket) -> None:
        """Close a connection once its client has closed it, or soon: what it has not read of the answer would be lost."""
        try:
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            sock.close()
            return
        if len(self._lingering) >= MOST_LINGERING:
            self._close_lingering(next(iter(self._lingering)))
        self._lingering[sock] = time.monotonic() + LINGER_S
        self.poller.register(sock, selectors.EVENT_READ, self._on_lingering)
        self._on_lingering(sock)

    def _on_lingering(self, sock: socket.socket) -> None:
        try:
            if sock.recv(PIECE, socket.MSG_DONTWAIT):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self._close_lingering(sock)

    def _close_lingering(self, sock: socket.socket) -> None:
        del self._lingering[sock]
        self.poller.unregister(sock)
        sock.close()

    def _ends(self, arrival: Arrival, now: float) -> float:
        """When it is too late; a worker that stops waits for nobody for long."""
        if not self.alive:
            arrival.ends = min(arrival.ends, now + LINGER_S)
        return arrival.ends

    def _gather(self, conn: Connection, _: object = None) -> None:
        """Take what is here of a request; pass it on when that is enough."""
        arrival = conn.arrival
        assert arrival is not None
        if not arrival.whole:
            try:
                piece = conn.sock.recv(PIECE, socket.MSG_DONTWAIT)
            except (BlockingIOError, InterruptedError):
                pass
            except OSError:
                self._drop(conn)
                return
            else:
                if not piece:
                    self._drop(conn)
                    return
                arrival.add(piece, time.monotonic())
                self._held += len(piece)
                if self._held > MOST_HELD and not arrival.whole:
                    arrival.do_not_wait()
        if arrival.whole or arrival.long:
            self._forget(conn)
            if arrival.long and len(self._long) >= self._most_long:
                self._queued.append(conn)
            else:
                self._hand_over(conn)
        elif conn not in self._arriving:
            self._arriving.add(conn)
            self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._gather, conn))

    def _hand_over(self, conn: Connection) -> None:
        arrival = conn.arrival
        assert arrival is not None
        self._let_go(conn)
        if not conn.initialized:
            conn.init()
            conn.parser.unreader = Unreader(conn.sock, self._limits)
        conn.parser.unreader.begin(arrival, time.monotonic())
        if arrival.long:
            self._long.add(conn)
        super().enqueue_req(conn)

    def _drop(self, conn: Connection) -> None:
        self._forget(conn)
        self._let_go(conn)
        self.nr_conns -= 1
        conn.close()

    def _let_go(self, conn: Connection) -> None:
        if conn.arrival is not None:
            self._held -= len(conn.arrival.data)
            conn.arrival = None

    def _forget(self, conn: Connection) -> None:
        if conn in self._arriving:
            self._arriving.discard(conn)
            self.poller.unregister(conn.sock)


def _allow_files(number: int) -> None:
    """Raise the soft limit of open files to that number, as far as the hard one lets: a worker without any left would end."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = number if hard == resource.RLIM_INFINITY else min(number, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
