"""The site's own web server, and eight clients of it in one process that spends little time on being a client."""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from jedisite import launch
from jedisite.children import open_log
from jedisite.identity import issue_token
from jedisite.supervisor import Process
from tasks_app.benchmarks.database import Place

STOP_LIMIT_S = 15.0


@contextlib.contextmanager
def running(place: Place, *names: str) -> Iterator[launch.Options]:
    """Start processes of the site as `manage.py up` does, the web server always; end them all afterwards."""
    options = launch.Options(place.home, launch.choose_port("127.0.0.1", None), workers=False)
    wanted = [p for p in launch.processes(options) if p.name == "web" or p.name in names]
    with contextlib.ExitStack() as stack:
        for process in wanted:
            stack.enter_context(_started(process))
        _wait(options.url + launch.ALIVE_PATH)
        yield options


@contextlib.contextmanager
def _started(process: Process) -> Iterator[None]:
    assert process.log
    process.log.parent.mkdir(parents=True, exist_ok=True)
    with open_log(process.log) as log:
        child = subprocess.Popen(process.argv, env=dict(process.env or {}), cwd=process.cwd, stdout=log, stderr=log)
    try:
        yield
    finally:
        child.terminate()
        try:
            child.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _wait(url: str, limit_s: float = 30.0) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + limit_s
    while True:
        try:
            with opener.open(url, timeout=5):
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def pilot_token() -> str:
    return issue_token("bench", "pilot", lifetime=timedelta(hours=1))


def post(path: str, token: str, body: dict[str, Any]) -> bytes:
    """A request as bytes, ready to be sent many times."""
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


@dataclass(slots=True)
class Load:
    """What clients saw: good answers, others, seconds in all and of each request."""

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
    line: socket.socket
    place: int
    sent_at: float = 0.0
    buffer: bytes = b""


def load(port: int, requests: Sequence[bytes], is_good: Callable[[bytes], bool], clients: int, seconds: float) -> Load:
    """Let clients send requests, each the next when the last was answered. Stops early when an answer is not good."""
    seen = Load()
    with contextlib.ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        for place in range(clients):
            line = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client = _Client(line, place)
            selector.register(line, selectors.EVENT_READ, client)
            _send(client, requests, clients)
        began = time.perf_counter()
        while (now := time.perf_counter()) - began < seconds and not seen.other:
            for key, _ in selector.select(timeout=1.0):
                _take(key.data, seen, is_good, requests, clients)
            seen.seconds = now - began
    return seen


def _send(client: _Client, requests: Sequence[bytes], clients: int) -> None:
    client.buffer = b""
    client.sent_at = time.perf_counter()
    client.line.sendall(requests[client.place % len(requests)])
    client.place += clients


def _take(
    client: _Client, seen: Load, is_good: Callable[[bytes], bool], requests: Sequence[bytes], clients: int
) -> None:
    """Read what has come; when the answer is whole, note it and send the next request."""
    data = client.line.recv(65536)
    if not data:
        raise ConnectionError("the web server closed a connection")
    client.buffer += data
    head, found, body = client.buffer.partition(b"\r\n\r\n")
    if not found or len(body) < _length(head):
        return
    seen.latencies.append(time.perf_counter() - client.sent_at)
    if is_good(client.buffer):
        seen.good += 1
    else:
        seen.other += 1
        seen.example = client.buffer[:2000]
    _send(client, requests, clients)


def _length(head: bytes) -> int:
    _, _, rest = head.lower().partition(b"content-length:")
    return int(rest.partition(b"\r\n")[0])
