"""The clients of the benchmarks against a web server."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from tasks_app.labs.bench import clients

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def serve(door: socket.socket, seen: Event) -> None:
    """Answer one client, close the connection that it no longer uses, and only then answer the other."""
    for line in [door.accept()[0] for _ in range(2)]:
        assert line.recv(1000)
        line.sendall(ANSWER)
        assert seen.wait(60)
        line.close()


def test_a_connection_that_is_closed_when_its_client_has_no_more_to_send_is_no_fault() -> None:
    seen = Event()

    def is_good(answer: bytes) -> bool:
        seen.set()
        return answer.endswith(b"ok")

    with socket.create_server((clients.HOST, 0)) as door, ThreadPoolExecutor(1) as pool:
        served = pool.submit(serve, door, seen)
        request = clients.head("GET", "/", "", keep=True)
        found = clients.load(door.getsockname()[1], iter([request, request]), is_good, 2, 60, keep=True)
        served.result()
    assert (found.good, found.other) == (2, 0)
