"""HTTP clients of the site's web server, in one process and one thread: they take little of the processor's time."""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

HOST = "127.0.0.1"
LARGEST_READ = 1 << 18
ANSWER_LIMIT_S = 30.0


def head(method: str, path: str, token: str, *, keep: bool, kind: str = "", length: int | None = None) -> bytes:
    """The head of a request. `keep`: the connection is for further requests; PanDA's pilots close it after each."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {HOST}", f"Authorization: Bearer {token}", "Accept: application/json"]
    if kind:
        lines.append(f"Content-Type: {kind}")
    if length is not None:
        lines.append(f"Content-Length: {length}")
    if not keep:
        lines.append("Connection: close")
    return "\r\n".join([*lines, "", ""]).encode()


def post(path: str, token: str, body: dict[str, Any], *, keep: bool = True) -> bytes:
    """A request with a JSON body as bytes, ready to be sent many times."""
    data = json.dumps(body).encode()
    return head("POST", path, token, keep=keep, kind="application/json", length=len(data)) + data


def form(path: str, token: str, body: dict[str, Any], *, keep: bool = True) -> bytes:
    """A request with a form as bytes, ready to be sent many times."""
    data = urlencode(body).encode()
    return head("POST", path, token, keep=keep, kind="application/x-www-form-urlencoded", length=len(data)) + data


@dataclass(slots=True)
class Load:
    """What clients saw: good answers, others, seconds of the whole and of each request."""

    good: int = 0
    other: int = 0
    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    example: bytes = b""

    @property
    def rate(self) -> float:
        return self.good / self.seconds if self.seconds else 0.0

    def percentile_ms(self, percent: float) -> float:
        ordered = sorted(self.latencies)
        return 1000 * ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))] if ordered else 0.0


@dataclass(slots=True)
class _Client:
    line: socket.socket | None = None
    sent_at: float = 0.0
    buffer: bytes = b""


class _Crowd:
    """Clients that each send the next request when their last one was answered."""

    def __init__(
        self, port: int, requests: Iterator[bytes], is_good: Callable[[bytes], bool], limit_s: float, *, keep: bool
    ) -> None:
        self.port, self.requests, self.is_good, self.limit_s, self.keep = port, requests, is_good, limit_s, keep
        self.selector = selectors.DefaultSelector()
        self.seen = Load()
        self.busy = 0
        self.began = time.perf_counter()

    def send(self, client: _Client) -> None:
        """Send the next request, if there is one; its time begins before the connection is made."""
        request = next(self.requests, None)
        if request is None:
            self.close(client)
            return
        client.buffer = b""
        client.sent_at = time.perf_counter()
        if client.line is None:
            client.line = socket.create_connection((HOST, self.port))
            client.line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.selector.register(client.line, selectors.EVENT_READ, client)
        client.line.sendall(request)
        self.busy += 1

    def take(self, client: _Client) -> None:
        """Read what has come; when the answer is whole, note it and send the next request."""
        assert client.line
        data = client.line.recv(LARGEST_READ)
        if not data:
            raise ConnectionError(f"the web server closed a connection after {client.buffer[:500]!r}")
        client.buffer += data
        head, found, body = client.buffer.partition(b"\r\n\r\n")
        if not found or len(body) < _length(head):
            return
        self.busy -= 1
        self.seen.latencies.append(time.perf_counter() - client.sent_at)
        if self.is_good(client.buffer):
            self.seen.good += 1
        else:
            self.seen.other += 1
            self.seen.example = client.buffer[:2000]
        self.seen.seconds = time.perf_counter() - self.began
        if not self.keep:
            self.close(client)
        if self.seen.seconds < self.limit_s and not self.seen.other:
            self.send(client)
        else:  # the server would close a connection that is kept and not used, while others are still waited for
            self.close(client)

    def close(self, client: _Client) -> None:
        if client.line is not None:
            self.selector.unregister(client.line)
            client.line.close()
            client.line = None


def load(
    port: int,
    requests: Iterator[bytes],
    is_good: Callable[[bytes], bool],
    clients: int,
    seconds: float,
    *,
    keep: bool,
) -> Load:
    """Let clients send requests for so long, on connections that they keep or on a new one for each.

    Stops early when there are no further requests, or an answer is not good. Every request that was sent is waited for.
    """
    crowd = _Crowd(port, requests, is_good, seconds, keep=keep)
    everybody = [_Client() for _ in range(clients)]
    with contextlib.ExitStack() as stack:
        stack.enter_context(crowd.selector)
        for client in everybody:
            stack.callback(crowd.close, client)
            crowd.send(client)
        while crowd.busy:
            ready = crowd.selector.select(timeout=ANSWER_LIMIT_S)
            if not ready:
                raise TimeoutError(f"the web server has not answered for {ANSWER_LIMIT_S:g} s")
            for key, _ in ready:
                crowd.take(key.data)
    return crowd.seen


def _length(head: bytes) -> int:
    _, _, rest = head.lower().partition(b"content-length:")
    return int(rest.partition(b"\r\n")[0])
