"""When a request counts as here, by table."""

from __future__ import annotations

import pytest

from jedisite.server.arrivals import LONGEST_HEAD, SMALL_BODY, Arrival, Patience, merged

HEAD = b"POST /x HTTP/1.1\r\nHost: here\r\n"
LIMITS = merged({"head": "10", "body": "20", "rate": "100"})


@pytest.mark.parametrize(
    ("data", "whole", "long"),
    [
        (b"", False, False),
        (HEAD, False, False),
        (HEAD + b"\r\n", True, False),
        (HEAD + b"content-LENGTH:  3\r\n\r\nab", False, False),
        (HEAD + b"content-LENGTH:  3\r\n\r\nabc", True, False),
        (HEAD + b"Content-Length: 3\r\n\r\nabcGET", True, False),
        (HEAD + b"X-Content-Length: 3\r\n\r\n", True, False),
        (HEAD + b"\r\nContent-Length: 3\r\n\r\n", True, False),
        # The parser refuses it at once; nobody waits for a body of either length.
        (HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", True, False),
        (HEAD + b"Content-Length: %d\r\n\r\n" % SMALL_BODY, False, False),
        (HEAD + b"Content-Length: %d\r\n\r\n" % (SMALL_BODY + 1), False, True),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", False, True),
        (HEAD + b"Expect: 100-continue\r\nContent-Length: 1\r\n\r\n", False, False),
    ],
)
def test_what_is_here_of_a_request(data: bytes, whole: bool, long: bool) -> None:
    at_once, by_bytes = Arrival(LIMITS, 0), Arrival(LIMITS, 0)
    at_once.add(data, 1)
    for place in range(len(data)):
        by_bytes.add(data[place : place + 1], 1)
        if by_bytes.long:
            break
    assert [(one.whole, one.long) for one in (at_once, by_bytes)] == [(whole, long)] * 2


def test_a_head_is_refused_when_it_is_too_long() -> None:
    arrival = Arrival(LIMITS, 0)
    arrival.add(HEAD + b"X: ", 1)
    assert not arrival.refused
    arrival.add(b"x" * LONGEST_HEAD, 1)
    assert arrival.refused and not arrival.long


@pytest.mark.parametrize(
    ("head", "asks"),
    [
        (HEAD + b"expect:100-Continue\r\nContent-Length: 1\r\n\r\n", True),
        (b"POST /x HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n", True),
        (b"\r\n" + HEAD + b"Expect: 100-continue\r\nContent-Length: 1\r\n\r\n", True),
        (HEAD.replace(b"1.1", b"1.0") + b"Expect: 100-continue\r\nContent-Length: 1\r\n\r\n", False),
        (HEAD + b"Expect: wonders\r\nContent-Length: 1\r\n\r\n", False),
        (HEAD + b"X-Expect: 100-continue\r\nContent-Length: 1\r\n\r\n", False),
        (HEAD + b"Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n", False),
    ],
)
def test_a_sender_that_waits_for_leave_is_told_here_unless_a_thread_reads_its_body(head: bytes, asks: bool) -> None:
    arrival = Arrival(LIMITS, 0)
    arrival.add(head, 1)
    assert arrival.asks is asks


def test_who_is_waited_for_gains_time_with_each_byte_and_never_more_than_the_most() -> None:
    patience = Patience(10)
    patience.after(4, 1, 10)
    assert patience.left == 7
    patience.after(1, 500, 10)
    assert patience.left == 10
    patience.after(0, 0, 3)  # others wait now
    assert patience.left == 3
    patience.after(5, 1, 3)
    assert patience.left < 0


def test_the_time_for_a_head_does_not_grow_and_that_for_a_body_begins_with_it() -> None:
    arrival = Arrival(LIMITS, 0)
    arrival.add(HEAD, 9)
    assert arrival.ends == 10
    arrival.add(b"Content-Length: 3\r\n\r\n", 9)
    assert arrival.ends == 29
    arrival.add(b"ab", 9)
    assert arrival.ends == pytest.approx(29 + 2 / 100)
    assert LIMITS.body_ends(9, 1000) == 39


def test_what_is_too_much_for_here_goes_to_a_thread_once_its_head_is_here() -> None:
    arrival = Arrival(LIMITS, 0)
    arrival.add(HEAD, 0)
    arrival.do_not_wait()
    assert not arrival.long
    arrival.add(b"Content-Length: 300\r\n\r\nabc", 0)
    arrival.do_not_wait()
    assert arrival.long and not arrival.whole


@pytest.mark.parametrize("given", [{"neck": "1"}, {"head": "soon"}, {"head": "0"}, {"rate": "nan"}])
def test_limits_that_make_no_sense_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=next(iter(given))):
        merged(given)
