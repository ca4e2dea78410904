"""The worker of the web server: gunicorn's threads, which no slow sender, reader or closer holds up.

A request goes to a thread once all of it is here; until then its connection waits in the main loop and costs no thread.
Very long bodies, as those of uploads, are read by threads as they come, in at most half of them at once, and must come at a
least rate. What a client has not taken of its answer is sent by the main loop, and there connections that are closed wait
for their client to have read the answer.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import resource
import selectors
import socket
import struct
import termios
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from gunicorn.http.errors import NoMoreData, ParseException
from gunicorn.workers.gthread import TConn, ThreadWorker

from jedisite.server import connection_counts
from jedisite.server.answer_sockets import AnswerSocket
from jedisite.server.arrivals import READS_REST, WHOSE_BODY, Arrival, Limits
from jedisite.server.bodies import LOOK_S, Unreader

PIECE: Final = 64 * 1024
LINGER_S: Final = 2.0
"""Seconds in which a client may read the end of an answer before its connection is closed."""
UNREAD_S: Final = 10.0
MOST_UNREAD: Final = 32 * 1024 * 1024
"""Seconds and bytes for the rest of a body that nobody reads: many clients look for an answer once they have sent all."""
MOST_LINGERING: Final = 200
MOST_HELD: Final = 64 * 1024 * 1024
"""Bytes of requests that arrive, in all. When there are more, threads read further bodies as they come, but for those of
which little is here: calls are not to wait behind uploads. And bytes of answers that wait for their clients; when there are
more, the slowest client loses its connection."""
ENOUGH: Final = 64 * 1024
"""Bytes: a sender of so many that wait for a thread has its turn before senders of fewer."""
MOST_AT_ONCE: Final = 1024 * 1024
"""Bytes of one answer that the main loop sends before it looks after others."""
OTHER_FILES: Final = 256
"""Open files that are not connections of clients: the database, logs, files that are sent."""
CLOSE_WAIT: Final = 8
"""The kernel's number of that state in `tcp_info`."""
GIVEN_UP_S: Final = 5.0
"""A client that has sent nothing for so long and has hung up before its connection is taken has given up: the web server was
away. Its request is dropped, since nobody reads the answer: a job that is handed out so would be lost for a while."""
TOO_SLOW: Final = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
TOO_LONG: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
TOO_MANY: Final = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 5\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
SEND_IT: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class Connection(TConn):
    """A connection, with what has come of its next request."""

    def __init__(self, worker: Worker, *args: Any) -> None:
        super().__init__(*args)
        self._worker = worker
        self.arrival: Arrival | None = None
        self.may_send = False
        """Whether the sender of the next request has been told to send its body."""
        self.turn = 0.0
        """When a thread began to read its long body."""

    @property
    def waiting(self) -> int:
        """Bytes of its request that are here and that nobody has taken, 0 when that cannot be said."""
        held = len(self.arrival.data) if self.arrival else 0
        with contextlib.suppress(OSError):
            held += int.from_bytes(fcntl.ioctl(self.sock, termios.FIONREAD, bytes(4)), "little")
        return held

    def close(self, graceful: bool = False) -> None:
        if graceful and self._worker.gathers:
            self._worker.linger(self.sock, unread=bool(self.parser and self.parser.unreader.unread_body))
        else:
            super().close(graceful)


class Worker(ThreadWorker):
    """Its main loop looks after connections whose requests arrive; its threads get requests that are here."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        # The site lies at the root of its address; a header that says otherwise comes from a client.
        self.cfg.set("forwarder_headers", "")
        self._arriving: set[Connection] = set()
        self._long: set[Connection] = set()
        self._queued: list[Connection] = []
        self._sending: dict[Connection, Any] = {}
        self._lingering: dict[socket.socket, tuple[float, int]] = {}
        self._held = 0
        self._looked = 0.0
        self._most_long = max(1, self.cfg.threads // 2)
        # TLS and HTTP/2 are read otherwise; then a proxy is to stand in front.
        self.gathers = not self.cfg.is_ssl and self.cfg.http2_cleartext == "off" and self.cfg.protocol == "http"

    def init_process(self) -> None:
        _allow_files(self.worker_connections + MOST_LINGERING + OTHER_FILES)
        super().init_process()

    def load_wsgi(self) -> None:
        super().load_wsgi()
        from django.conf import settings  # the application has said which

        self._limits: Limits = settings.JEDI_SLOW_CLIENTS
        uncounted = [*connection_counts.NEAR, *settings.JEDI_PROXIES]
        self._connections = connection_counts.ByAddress(int(self._limits.address), uncounted)
        if self.gathers:
            application: Callable[..., Iterable[bytes]] = self.app.wsgi()

            def answer(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
                environ[READS_REST] = True
                environ[WHOSE_BODY] = environ["gunicorn.socket"].note_account
                return application(environ, start)

            self.wsgi = answer

    def accept(self, listener: socket.socket) -> None:
        try:
            client, address = listener.accept()
        except OSError as exc:
            if exc.errno in (errno.EAGAIN, errno.EWOULDBLOCK, errno.ECONNABORTED):
                return
            raise
        if isinstance(address, tuple) and has_given_up(client):
            client.close()
            return
        if self.gathers:
            leave = self._connections.let_in(address[0] if isinstance(address, tuple) else "")
            if leave is None:
                self.log.debug("Refusing a connection: %s holds as many as one address may.", address[0])
                self._refuse(client)
                return
            client = AnswerSocket(client, self._limits, leave)
        self.nr_conns += 1
        conn = Connection(self, self.cfg, client, address, listener.getsockname())
        self.enqueue_req(conn)

    def _refuse(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            client.send(TOO_MANY, socket.MSG_DONTWAIT)
        self.linger(client)

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

    def handle_request(self, req: Any, conn: Connection) -> Any:
        if conn.may_send:  # it was told, and has sent
            conn.may_send = req._expected_100_continue = False
        return super().handle_request(req, conn)

    def _keepalive_after(self, conn: Connection, keepalive: Any) -> bool:
        if not self.gathers:
            return bool(super()._keepalive_after(conn, keepalive))
        unreader: Unreader = conn.parser.unreader
        unreader.stop()
        try:
            taken = conn.parser.finish_body()  # of what is here
        except (NoMoreData, ParseException):
            taken = False
        if not taken:  # more of it may come: nobody can say where the next request begins
            return False
        unreader.unread_body = False
        return bool(keepalive)

    def finish_request(self, conn: Connection, fs: Any) -> None:
        """A thread is done with a request. Its client may not have taken all of the answer."""
        if conn in self._long:
            self._long.discard(conn)
            self._next_long()
        if not (self.gathers and conn.sock.keeps):
            super().finish_request(conn, fs)
            return
        self._sending[conn] = fs
        conn.sock.begin_waiting()
        self.poller.register(conn.sock, selectors.EVENT_WRITE, partial(self._send_rest, conn))
        while sum(one.sock.memory for one in self._sending) > MOST_HELD:
            self._end_sending(min(self._sending, key=lambda one: one.sock.look()))

    def _next_long(self) -> None:
        """Threads for long bodies that wait. Those who send come before those who have only said so."""
        while self._queued and len(self._long) < self._most_long:
            conn = max(self._queued, key=lambda one: min(one.waiting, ENOUGH))
            self._queued.remove(conn)
            self._hand_over(conn)

    def _gives_way(self, conn: Connection) -> bool:
        """Whether a long body leaves its place: others wait, and its account has had another place for longer."""
        account = conn.sock.account
        if not self._queued or not account or time.monotonic() < conn.turn + self._limits.turn:
            return False
        return any(one.turn < conn.turn and one.sock.account == account for one in list(self._long))

    def _send_rest(self, conn: Connection, _: object) -> None:
        if conn not in self._sending:
            return  # ended by another event of the same moment
        try:
            conn.sock.flush(MOST_AT_ONCE)
        except OSError:
            self._end_sending(conn)
            return
        if not conn.sock.keeps:
            self.poller.unregister(conn.sock)
            super().finish_request(conn, self._sending.pop(conn))

    def _end_sending(self, conn: Connection) -> None:
        self.poller.unregister(conn.sock)
        del self._sending[conn]
        self.nr_conns -= 1
        # What the system keeps for this client is to be forgotten, too.
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        conn.close()

    def murder_pending(self) -> None:
        """Called by the main loop after all that it does, at least once a second: end what has taken too long."""
        super().murder_pending()
        now = time.monotonic()
        if now < self._looked + LOOK_S:
            return
        self._looked = now
        for conn in [one for one in self._arriving if one.arrival and self._ends(one.arrival, now) <= now]:
            self.log.debug("Closing a connection whose request does not come.")
            self._answer_and_drop(conn, TOO_SLOW if conn.arrival and conn.arrival.data else b"")
        for conn in [one for one in self._sending if one.sock.look() <= 0]:
            self.log.debug("Closing a connection whose client takes too little of its answer.")
            self._end_sending(conn)
        for sock in [one for one, (ends, _) in self._lingering.items() if ends <= now]:
            self._close_lingering(sock)

    def linger(self, sock: socket.socket, *, unread: bool = False) -> None:
        """Close a connection once its client has closed it, or soon: what it has not read of the answer would be lost.

        `unread`: the client may still send a body that nobody reads.
        """
        try:
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            sock.close()
            return
        if len(self._lingering) >= MOST_LINGERING:
            self._close_lingering(next(iter(self._lingering)))
        self._lingering[sock] = (time.monotonic() + (UNREAD_S if unread else LINGER_S), MOST_UNREAD)
        self.poller.register(sock, selectors.EVENT_READ, self._on_lingering)
        self._on_lingering(sock)

    def _on_lingering(self, sock: socket.socket) -> None:
        if sock not in self._lingering:
            return  # closed by another event of the same moment
        ends, left = self._lingering[sock]
        try:
            piece = sock.recv(PIECE, socket.MSG_DONTWAIT)
            if piece and len(piece) < left:
                self._lingering[sock] = (ends, left - len(piece))
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
                if arrival.refused:
                    self._answer_and_drop(conn, TOO_LONG)
                    return
                if self._held > MOST_HELD and len(arrival.data) > ENOUGH and not arrival.whole:
                    arrival.do_not_wait()
        if arrival.asks and not arrival.whole and not arrival.long:
            arrival.asks = False
            conn.may_send = True
            with contextlib.suppress(OSError):
                conn.sock.send(SEND_IT, socket.MSG_DONTWAIT)
        if arrival.whole or arrival.long:
            self._forget(conn)
            if arrival.long:
                self._queued.append(conn)
                self._next_long()
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
            conn.parser.unreader = Unreader(
                conn.sock, self._limits, lambda: bool(self._queued), partial(self._gives_way, conn)
            )
        conn.parser.unreader.begin(arrival)
        conn.sock.begin()
        if arrival.long:
            conn.turn = time.monotonic()
            self._long.add(conn)
        super().enqueue_req(conn)

    def _answer_and_drop(self, conn: Connection, answer: bytes) -> None:
        with contextlib.suppress(OSError):
            conn.sock.send(answer, socket.MSG_DONTWAIT)
        self._drop(conn)

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


def has_given_up(client: socket.socket, after_s: float = GIVEN_UP_S) -> bool:
    """Whether the client of a connection over TCP has hung up, and has sent nothing for so long."""
    state, silent_ms = struct.unpack("B51xI", client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 56))
    return bool(state == CLOSE_WAIT and silent_ms >= after_s * 1000)


def _allow_files(number: int) -> None:
    """Raise the soft limit of open files to that number, as far as the hard one lets: a worker without any left would end."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = number if hard == resource.RLIM_INFINITY else min(number, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
