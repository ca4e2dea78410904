"""The web server's worker, with real sockets: no slow sender keeps others from being answered, and honest ones are served."""

from __future__ import annotations

import http.client
import os
import re
import select
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from jedisite.processes.launch import WEB_WORKER
from jedisite.server.web_worker import has_given_up

ROOT = Path(__file__).resolve().parents[3]
LIMIT_S = 2
PATIENCE_S = 20
"""For what must happen at some time: this machine may be busy."""


@contextmanager
def serving(home: Path, *before: str, limits: str = "") -> Iterator[int]:
    """A server with one worker of four threads, whose clients may pause for two seconds and must send 50 kB/s."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JEDI_")} | {
        "JEDI_HOME": str(home),
        "JEDI_SLOW_CLIENTS": limits or f"head={LIMIT_S},body={LIMIT_S},answer={LIMIT_S}",
    }
    command = [
        sys.executable,
        "-m",
        "gunicorn",
        "--bind",
        "127.0.0.1:0",
        "--worker-class",
        WEB_WORKER,
        "--threads",
        "4",
    ]
    with (home / "log").open("w") as log:
        server = subprocess.Popen(
            [
                *before,
                *command,
                "--no-control-socket",
                "--graceful-timeout",
                "5",
                "tests.jedisite.echo_app:application",
            ],
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=log,
        )
    try:
        ends = time.monotonic() + PATIENCE_S
        while not (found := re.search(r"Listening at: http://127.0.0.1:(\d+)", (home / "log").read_text())):
            assert server.poll() is None and time.monotonic() < ends, (home / "log").read_text()
            select.select([], [], [], 0.05)
        assert ask(int(found[1])) == "0 1"
        yield int(found[1])
    finally:
        server.terminate()
        server.wait(PATIENCE_S)
    assert "Traceback" not in (home / "log").read_text()


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with serving(tmp_path_factory.mktemp("home")) as number:
        yield number


def ask(port: int, body: bytes | Iterator[bytes] = b"", timeout: float = PATIENCE_S, **headers: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("POST", "/", body, headers, encode_chunked=not isinstance(body, bytes))
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def worker_of(port: int) -> psutil.Process:
    """The process that answers there: the child of the one that we started."""
    ours = psutil.Process().children(recursive=True)
    return max(
        (one for one in ours if any(c.laddr.port == port and c.status == "LISTEN" for c in one.net_connections("tcp"))),
        key=lambda one: one.create_time(),
    )


def opened(stack: ExitStack, port: int, begin: bytes) -> socket.socket:
    sender = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S))
    sender.sendall(begin)
    return sender


def is_open(sender: socket.socket) -> bool:
    return not select.select([sender], [], [], 0)[0]


def until_closed(sender: socket.socket) -> bytes:
    said = b""
    while piece := sender.recv(4096):
        said += piece
    return said


def until_closed_or_reset(reader: socket.socket) -> bytes:
    said = b""
    try:
        while piece := reader.recv(65_536):
            said += piece
    except ConnectionResetError:
        pass
    return said


SLOW = {
    "nothing": b"",
    "half a line": b"GET / HT",
    "half a head": b"GET / HTTP/1.1\r\nHost: here\r\nX-",
    "empty lines": b"\r\n\r\n",
    "half a short body": b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 100\r\n\r\nabc",
    "the beginning of a long body": b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 90000000\r\n\r\nabc",
    "the beginning of a chunked body": b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    "a body that is waited for": b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n",
}


def test_calls_are_answered_while_slow_senders_of_all_kinds_wait(port: int) -> None:
    with ExitStack() as stack:
        senders = [opened(stack, port, begin) for begin in SLOW.values() for _ in range(12)]
        assert [ask(port, b"hello") for _ in range(4)] == [f"5 {zlib.adler32(b'hello')}"] * 4
        still = sum(is_open(sender) for sender in senders)
        assert still, "the calls were answered only after all slow senders had been cut off"


def test_senders_that_stop_are_cut_off(port: int) -> None:
    with ExitStack() as stack:
        senders = {kind: opened(stack, port, begin) for kind, begin in SLOW.items()}
        said = {kind: until_closed(sender) for kind, sender in senders.items()}
    told = {kind for kind, answer in said.items() if b" 408 " in answer}
    assert told >= SLOW.keys() - {"nothing", "empty lines"}, said


@pytest.mark.parametrize("begin", [b"GET /", SLOW["the beginning of a long body"]], ids=["head", "body"])
def test_a_byte_now_and_then_does_not_help_a_slow_sender(port: int, begin: bytes) -> None:
    with ExitStack() as stack:
        sender = opened(stack, port, begin)
        ends = time.monotonic() + PATIENCE_S
        with pytest.raises(OSError, match=r"reset|Broken pipe"):
            while time.monotonic() < ends:
                sender.sendall(b"a")
                select.select([], [], [], 0.1)


def test_clients_that_do_not_close_hold_nobody_up(port: int) -> None:
    request = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"
    with ExitStack() as stack:
        waiting = [opened(stack, port, request) for _ in range(12)]
        assert all(b" 200 OK" in until_closed(one) for one in waiting)
        assert ask(port, timeout=8) == "0 1"  # gunicorn's own worker looks after each of them for two seconds
        for one in waiting:  # and they are closed for good
            with pytest.raises(OSError, match=r"reset|Broken pipe"):
                for _ in range(PATIENCE_S * 10):
                    one.sendall(b"a")
                    select.select([], [], [], 0.1)


BODIES = [b"", b"x", b"x" * 65_536, b"x" * 65_537, b"x" * 3_000_000]


@pytest.mark.parametrize("body", BODIES, ids=[str(len(body)) for body in BODIES])
def test_honest_bodies_arrive_whole(port: int, body: bytes) -> None:
    expected = f"{len(body)} {zlib.adler32(body)}"
    assert ask(port, body) == expected
    assert ask(port, iter([body[:10], body[10:]]) if len(body) > 10 else iter([body or b""])) == expected


def test_a_long_body_may_take_longer_than_the_limit_when_it_keeps_coming(port: int) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(LIMIT_S * 10):
            yield b"y" * 40_000  # each 0.2 s: 200 kB/s
            select.select([], [], [], 0.2)

    whole = b"".join(b"y" * 40_000 for _ in range(LIMIT_S * 10))
    assert ask(port, pieces()) == f"{len(whole)} {zlib.adler32(whole)}"


def test_more_long_bodies_than_threads_take_them_are_served_in_turn(port: int) -> None:
    body = b"z" * 1_000_000
    head = b"POST / HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: 1000000\r\n\r\n"
    with ExitStack() as stack:
        senders = [opened(stack, port, head + body[:1]) for _ in range(6)]
        for sender in senders[::-1]:
            sender.setblocking(False)
        left = dict.fromkeys(senders, 1)
        while left:
            _, ready, _ = select.select([], list(left), [], PATIENCE_S)
            assert ready
            for one in ready:
                left[one] += one.send(body[left[one] : left[one] + 100_000])
                if left[one] == len(body):
                    del left[one]
                    one.settimeout(PATIENCE_S)
        assert all(f"1000000 {zlib.adler32(body)}".encode() in until_closed(one) for one in senders)


def test_half_a_body_is_no_body(port: int) -> None:
    with ExitStack() as stack:
        sender = opened(stack, port, SLOW["the beginning of a long body"])
        sender.shutdown(socket.SHUT_WR)
        assert b" 408 " in until_closed(sender)


LONG = b"POST %s HTTP/1.1\r\nHost: here\r\nContent-Length: 90000000\r\n\r\nabc"


def test_an_upload_does_not_wait_for_those_that_nobody_reads_and_who_send_nothing(tmp_path: Path) -> None:
    body = bytes(range(256)) * 50_000
    with serving(tmp_path, limits="head=60,body=600,busy=600") as port, ExitStack() as stack:
        claims = [opened(stack, port, LONG % b"/refuse") for _ in range(48)]
        assert ask(port, body) == f"{len(body)} {zlib.adler32(body)}"
        assert all(b" 401 " in one.recv(4096) for one in claims)


def test_those_who_send_nothing_give_way_to_an_upload_that_waits(tmp_path: Path) -> None:
    body = bytes(range(256)) * 50_000
    with serving(tmp_path, limits="head=60,body=600,busy=1") as port, ExitStack() as stack:
        claims = [opened(stack, port, LONG % b"/") for _ in range(48)]
        assert ask(port, body) == f"{len(body)} {zlib.adler32(body)}"  # 48 of them, two at once, would be 24 seconds
        assert sum(is_open(one) for one in claims) >= 40


def test_who_was_quick_at_first_gives_way_as_well(tmp_path: Path) -> None:
    body = bytes(range(256)) * 50_000
    with serving(tmp_path, limits="head=60,body=600,busy=1") as port, ExitStack() as stack:
        for _ in range(2):
            opened(stack, port, LONG % b"/" + bytes(20_000_000))
        assert ask(port, body) == f"{len(body)} {zlib.adler32(body)}"


def test_a_refused_upload_is_answered_though_its_sender_reads_only_after_all_is_sent(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.request("POST", "/refuse", bytes(25_000_000))
    assert connection.getresponse().status == 401
    connection.close()


def test_a_body_that_nobody_reads_costs_no_more_than_one_that_is_read(tmp_path: Path) -> None:
    """Only the processor's time tells: dropped in small pieces, with the rest moved each time, one took half a minute."""
    body = bytes(10_600_000)  # short enough to be here before a thread has it
    with serving(tmp_path) as port:
        worker = worker_of(port)
        spent = []
        for path in ("/", "/refuse"):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
            before = sum(worker.cpu_times()[:2])
            for _ in range(3):
                connection.request("POST", path, body)
                connection.getresponse().read()
            connection.request("GET", "/")  # once it is answered the bodies are gone
            connection.getresponse().read()
            spent.append(sum(worker.cpu_times()[:2]) - before)
            connection.close()
    read, dropped = spent
    assert dropped < 2 * read + 0.5


def test_who_reads_only_after_all_is_sent_learns_that_it_came_too_slowly(port: int) -> None:
    with ExitStack() as stack:
        sender = opened(stack, port, LONG % b"/")
        assert select.select([sender], [], [], PATIENCE_S)[0]
        for _ in range(10):
            sender.sendall(bytes(20_000))
            select.select([], [], [], 0.02)
        sender.shutdown(socket.SHUT_WR)
        assert re.findall(rb"HTTP/1.1 (\d+)", until_closed(sender)) == [b"408"]


@pytest.mark.parametrize(
    "body", [b"zz\r\n", b"1\r\nabc\r\n", b"0\r\nno trailer\r\n\r\n"], ids=["size", "end", "trailer"]
)
def test_a_request_that_is_answered_gets_no_second_answer_for_its_broken_body(port: int, body: bytes) -> None:
    head = b"POST /refuse HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
    with ExitStack() as stack:
        sender = opened(stack, port, head + body)
        sender.shutdown(socket.SHUT_WR)
        assert re.findall(rb"HTTP/1.1 (\d+)", until_closed(sender)) == [b"401"]


def test_a_head_without_end_is_refused(port: int) -> None:
    with ExitStack() as stack:
        sender = opened(stack, port, b"GET / HTTP/1.1\r\n" + b"X: %s\r\n" % (b"x" * 8000) * 8 + b"Y: ")
        sender.sendall(b"y" * 2000)
        assert b" 431 " in until_closed(sender)


WAYS = ["/memory", "/file", "/pieces"]
BIG = 20_000_000


def asker(stack: ExitStack, port: int, way: str, number: int = BIG, more: str = "") -> socket.socket:
    """A client with little room for what it does not read."""
    sock = stack.enter_context(socket.socket())
    sock.settimeout(PATIENCE_S)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    sock.connect(("127.0.0.1", port))
    sock.sendall(f"GET {way}?{number} HTTP/1.1\r\nHost: here\r\n{more}\r\n".encode())
    return sock


def test_calls_are_answered_while_dozens_of_clients_do_not_read_their_answers(tmp_path: Path) -> None:
    with serving(tmp_path, limits="answer=600") as port, ExitStack() as stack:
        readers = [asker(stack, port, way, 8_000_000) for way in ["/file"] * 24 + ["/memory"] * 4]
        assert ask(port, b"hello") == f"5 {zlib.adler32(b'hello')}"
        assert all(one.recv(100) for one in readers)


def test_who_reads_nothing_loses_the_connection(port: int) -> None:
    with ExitStack() as stack:
        readers = [asker(stack, port, way) for way in WAYS]
        for reader in readers:
            poll = select.poll()
            poll.register(reader, select.POLLHUP | select.POLLERR | select.POLLRDHUP)
            assert poll.poll(PATIENCE_S * 1000)
        assert all(len(until_closed_or_reset(reader)) < BIG for reader in readers)


def test_who_reads_at_an_ordinary_slow_rate_gets_all(port: int) -> None:
    number = 5_000_000
    with ExitStack() as stack:
        said = {asker(stack, port, way, number, more="Connection: close\r\n"): bytearray() for way in WAYS}
        last = time.monotonic()
        ends = last + 3 * LIMIT_S
        while (now := time.monotonic()) < ends:
            for reader in said:
                # 100 kB/s, also where this machine lets us wait: then more at once.
                said[reader] += reader.recv(max(1, int((now - last) * 100_000)))
            last = now
            select.select([], [], [], 0.1)
        left = set(said)
        while left:
            for reader in select.select(left, [], [], PATIENCE_S)[0]:
                piece = reader.recv(1_000_000)
                said[reader] += piece
                if not piece:
                    left.remove(reader)
    assert all(answer.partition(b"\r\n\r\n")[2] == bytes(number) for answer in said.values())


@pytest.mark.parametrize("way", WAYS)
def test_a_connection_is_kept_after_a_long_answer(port: int, way: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    for number in (BIG, 3):
        connection.request("GET", f"{way}?{number}")
        assert connection.getresponse().read() == bytes(number)
        assert connection.sock is not None
    connection.close()


def test_the_memory_of_answers_that_wait_is_bounded(tmp_path: Path) -> None:
    with serving(tmp_path, limits="answer=600") as port, ExitStack() as stack:
        readers = [asker(stack, port, "/memory") for _ in range(8)]
        lost = select.poll()
        for one in readers:
            lost.register(one, select.POLLHUP | select.POLLERR | select.POLLRDHUP)
        assert lost.poll(PATIENCE_S * 1000)
        assert ask(port, b"hello") == f"5 {zlib.adler32(b'hello')}"


def test_a_connection_takes_several_requests_one_after_the_other_and_at_once(port: int) -> None:
    one = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 3\r\n\r\nabc"
    answer = f"3 {zlib.adler32(b'abc')}".encode()
    with ExitStack() as stack:
        sender = opened(stack, port, one + one + one[:20])
        said = b""
        while said.count(answer) < 2:
            said += sender.recv(4096)
        assert is_open(sender)
        sender.sendall(one[20:])
        while said.count(answer) < 3:
            said += sender.recv(4096)
        sender.sendall(one[:30])
        sender.sendall(one[30:])
        while said.count(answer) < 4:
            said += sender.recv(4096)
    assert said.count(b"HTTP/1.1 200 OK") == 4


def test_who_waits_for_leave_to_send_gets_it(port: int) -> None:
    with ExitStack() as stack:
        sender = opened(
            stack, port, SLOW["a body that is waited for"].replace(b"Expect", b"Connection: close\r\nExpect")
        )
        assert b"100 Continue" in sender.recv(4096)
        sender.sendall(b"123456789")
        assert f"9 {zlib.adler32(b'123456789')}".encode() in until_closed(sender)


def test_more_connections_than_files_that_were_allowed_at_first_do_not_end_the_worker(tmp_path: Path) -> None:
    few = ["sh", "-c", 'ulimit -S -n 64 && exec "$@"', "sh"]
    with serving(tmp_path, *few) as port, ExitStack() as stack:
        for _ in range(100):
            opened(stack, port, b"GET / HT")
        assert ask(port, b"hello") == f"5 {zlib.adler32(b'hello')}"


def test_calls_with_bodies_of_ordinary_size_are_answered_while_others_claim_such_and_send_none(port: int) -> None:
    claim = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 1000000\r\n\r\nabc"
    body = bytes(300_000)
    with ExitStack() as stack:
        claims = [opened(stack, port, claim) for _ in range(24)]
        assert ask(port, body) == f"{len(body)} {zlib.adler32(body)}"
        assert any(is_open(one) for one in claims), "the call was answered only after the claims had been cut off"


def test_the_memory_of_requests_that_arrive_is_bounded_and_they_are_answered_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ECHO_MOST_HELD", "100000")
    body = bytes(range(256)) * 2000
    with serving(tmp_path) as port:
        assert [ask(port, body) for _ in range(3)] == [f"{len(body)} {zlib.adler32(body)}"] * 3


def test_calls_whose_bodies_come_late_are_answered_while_silent_senders_hold_all_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ECHO_MOST_HELD", "1000000")
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    with serving(tmp_path, limits="head=60,body=60,busy=60") as port, ExitStack() as stack:
        for _ in range(6):
            opened(stack, port, head % 900_000 + bytes(400_000))
        assert {ask(port) for _ in range(20)} == {"0 1"}  # all that was sent has been read meanwhile
        caller = opened(stack, port, head % 10)
        assert {ask(port) for _ in range(3)} == {"0 1"}
        caller.sendall(b"0123456789")
        caller.settimeout(PATIENCE_S)
        assert caller.recv(1000).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("name", ["SCRIPT_NAME", "PATH_INFO"])
def test_a_client_cannot_say_where_the_site_lies(port: int, name: str) -> None:
    assert ask(port, **{name: "/elsewhere"}) == "0 1"


def served_at(port: int, source: str) -> bool:
    """Whether a request from this address of the machine is answered, and not refused."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S, source_address=(source, 0)) as asks:
        asks.sendall(b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
        said = until_closed_or_reset(asks)
    assert b" 200 OK" in said or (b" 429 " in said and b"Retry-After: 5" in said), said
    return b" 200 OK" in said


def test_an_address_holds_so_many_connections_and_others_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ECHO_IS_FAR", "1")
    with serving(tmp_path, limits="head=60,address=8") as port:
        with ExitStack() as stack:
            for _ in range(8):
                opened(stack, port, b"GET / HT")
            assert not served_at(port, "127.0.0.1")
            assert served_at(port, "127.0.0.2")
        ends = time.monotonic() + PATIENCE_S
        while not served_at(port, "127.0.0.1"):
            assert time.monotonic() < ends, "connections that were closed are still counted"
            select.select([], [], [], 0.05)


def test_a_proxy_on_this_machine_holds_any_number_of_connections(tmp_path: Path) -> None:
    with serving(tmp_path, limits="head=60,address=8") as port, ExitStack() as stack:
        for _ in range(40):
            opened(stack, port, b"GET / HT")
        assert served_at(port, "127.0.0.1")


def claim(account: str) -> bytes:
    return LONG.replace(b"%s", b"/").replace(b"Content", b"X-Account: %s\r\nContent" % account.encode())


def test_an_account_has_one_place_for_long_while_others_wait_to_send(tmp_path: Path) -> None:
    body = bytes(range(256)) * 50_000
    with serving(tmp_path, limits="head=60,body=600,busy=600,turn=1") as port, ExitStack() as stack:
        first, second = (opened(stack, port, claim("ada")) for _ in range(2))
        other = {"X-Account": "bob"}
        assert ask(port, body, **other) == f"{len(body)} {zlib.adler32(body)}"
        (gone,) = (one for one in (first, second) if not is_open(one))
        assert b" 408 " in until_closed(gone)


def test_accounts_with_a_place_each_keep_it(tmp_path: Path) -> None:
    with serving(tmp_path, limits="head=60,body=600,busy=600,turn=0.5") as port, ExitStack() as stack:
        senders = [opened(stack, port, claim(account)) for account in ("ada", "eve", "bob")]
        assert not select.select(senders, [], [], 3)[0]


def test_who_hung_up_while_there_was_no_web_server_is_told_from_who_waits() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        with socket.create_connection(address) as waits, socket.create_connection(address) as gives_up:
            for client in (waits, gives_up):
                client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            gives_up.close()
            (first, _), (second, _) = listener.accept(), listener.accept()
            with first, second:
                assert second.recv(99) and second.recv(99) == b"", "its end has come"
                assert (has_given_up(first, 0), has_given_up(second, 0)) == (False, True)
                assert not has_given_up(second, 3600), "a client may also end its side and read"
