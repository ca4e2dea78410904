"""Arrival of a request: when a thread can take it, and how long clients may take.

Pure: bytes and clocks come in. What is found here only decides who waits where; the web server's parser has the last word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from jedisite.vocabulary import given_numbers

SMALL_BODY: Final = 11 * 1024 * 1024
"""Bytes: more than any call but the upload of a file may have. A longer body is read by a thread as it comes."""
LONGEST_HEAD: Final = 64 * 1024
"""Bytes. A longer one is refused: whoever waits for its end waits long."""
DEFAULTS: Final[Mapping[str, float]] = {
    "head": 15,
    "body": 30,
    "rate": 50_000,
    "busy": 5,
    "answer": 30,
    "least": 10_000,
    "address": 250,
    "turn": 300,
}
"""`head`, `body`, `answer`: seconds that a client has for them, or may pause; `rate`, `least`: bytes a second that give time
back, of bodies and of answers; `busy`: seconds in place of `body` while others wait to send; `address`: connections that one
address may hold in a worker, but this machine and proxies; `turn`: seconds after which an account's second long body gives
way to others that wait."""
READS_REST: Final = "jedisite.reads_rest"
"""In the environ of a request: what is not read of its body is read later by the server, and no thread waits for it."""
WHOSE_BODY: Final = "jedisite.whose_body"
"""In the environ of a request: to be called with the account that sends, before a long body is read."""
_LENGTH: Final = b"\r\ncontent-length:"
_CHUNKED: Final = b"\r\ntransfer-encoding:"
_ASKS: Final = re.compile(rb"(?:\r\n)?[^\r\n]* http/1\.1(?=\r\n).*\r\nexpect:[ \t]*100-continue[ \t]*\r\n", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Limits:
    """Time limits for clients: see DEFAULTS."""

    head: float
    body: float
    rate: float
    busy: float
    answer: float
    least: float
    address: float
    turn: float

    def body_ends(self, since: float, received: int) -> float:
        """When a body is too slow of which so many bytes have come since then."""
        return since + self.body + received / self.rate


def merged(given: Mapping[str, str]) -> Limits:
    """The limits in force. Raises ValueError with a sentence for a name or a number that is none."""
    return Limits(**given_numbers.merged(given, DEFAULTS, least=0.001, most=1e9))


class Patience:
    """For how many seconds a client is still waited for. They pass while it lets us wait and come back as bytes move, up to
    a most: so whoever was quick at first cannot pause long."""

    __slots__ = ("left",)

    def __init__(self, left: float) -> None:
        self.left = left

    def after(self, waited: float, gained: float, most: float) -> None:
        """So many seconds were waited, and so many are given back for what has moved."""
        self.left = min(self.left - waited + gained, most)


class Arrival:
    """A request that is coming in, byte by byte perhaps.

    `whole`: all of it is here. `long`: its head is here, and its body is not waited for here, as it is long or of unknown
    length. `asks`: its sender waits for leave to send the body. `refused`: its head is too long. `ends`: when its sender
    has taken too long.
    """

    __slots__ = (
        "_head",
        "_limits",
        "_needed",
        "_searched",
        "asks",
        "data",
        "ends",
        "long",
        "refused",
        "since",
        "whole",
    )

    def __init__(self, limits: Limits, now: float) -> None:
        self.data = bytearray()
        self.whole = self.long = self.asks = self.refused = False
        self.since = now
        self.ends = now + limits.head
        self._limits = limits
        self._searched = self._head = 0
        self._needed: int | None = None

    def add(self, piece: bytes, now: float) -> None:
        self.data += piece
        if self._needed is None:
            self._look_for_head(now)
        if self._needed is not None and not self.long:
            self.whole = len(self.data) >= self._needed
            self.ends = self._limits.body_ends(self.since, len(self.data) - self._head)

    def do_not_wait(self) -> None:
        """No more is kept of it here: if its head is here, a thread reads the rest."""
        self.long = self._needed is not None

    def _look_for_head(self, now: float) -> None:
        end = self.data.find(b"\r\n\r\n", max(0, self._searched - 3))
        self._searched = len(self.data)
        if end < 0:
            self.refused = len(self.data) > LONGEST_HEAD
            return
        head = bytes(self.data[: end + 2]).lower()
        length = _length(head)
        self._head = end + 4
        self._needed = self._head + length
        self.long = length > SMALL_BODY or _CHUNKED in head
        self.asks = not self.long and _ASKS.match(head) is not None
        self.since = now


def _length(head: bytes) -> int:
    """The length of the body by a head in lower case; 0 when it says none that makes sense, or more than one."""
    at = head.find(_LENGTH)
    if at < 0 or head.find(_LENGTH, at + 1) >= 0:
        return 0
    at += len(_LENGTH)
    text = head[at : head.index(b"\r\n", at)].strip()
    return int(text) if text.isdigit() and len(text) < 16 else 0
