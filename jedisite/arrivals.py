"""How a request arrives: when enough of it is here for a thread to take it, and how long its sender may take.

Pure: bytes and clocks come in. What is found here only decides who waits where; the web server's parser has the last word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from jedisite import given_numbers

SMALL_BODY: Final = 11 * 1024 * 1024
"""Bytes: more than any call but the upload of a file may have. A longer body is read by a thread as it comes."""
LONGEST_HEAD: Final = 64 * 1024
"""Bytes; the parser refuses heads that are longer than the lines and fields that it allows."""
DEFAULTS: Final[Mapping[str, float]] = {"head": 15, "body": 30, "rate": 50_000}
"""`head`, `body`: seconds; `rate`: bytes a second which a body must reach on average, `body` seconds apart."""
_LENGTH: Final = b"\r\ncontent-length:"
_COMES_LATER: Final = (b"\r\ntransfer-encoding:", b"\r\nexpect:")


@dataclass(frozen=True, slots=True)
class Limits:
    """What senders may take: see DEFAULTS."""

    head: float
    body: float
    rate: float

    def body_ends(self, since: float, received: int) -> float:
        """When a body is too slow of which so many bytes have come since then."""
        return since + self.body + received / self.rate


def merged(given: Mapping[str, str]) -> Limits:
    """The limits in force. Raises ValueError with a sentence for a name or a number that is none."""
    return Limits(**given_numbers.merged(given, DEFAULTS, least=0.001, most=1e9))


class Arrival:
    """A request that is coming in, byte by byte perhaps.

    `whole`: all of it is here. `long`: its head is here, and its body is not waited for here, as it is long or of unknown
    length. `ends`: when its sender has taken too long.
    """

    __slots__ = ("_head", "_limits", "_needed", "_searched", "data", "ends", "long", "since", "whole")

    def __init__(self, limits: Limits, now: float) -> None:
        self.data = bytearray()
        self.whole = self.long = False
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
            self.long = len(self.data) > LONGEST_HEAD
            return
        head = bytes(self.data[: end + 2]).lower()
        length = _length(head)
        self._head = end + 4
        self._needed = self._head + length
        self.long = length > SMALL_BODY or any(one in head for one in _COMES_LATER)
        self.since = now


def _length(head: bytes) -> int:
    """The length of the body by a head in lower case; 0 when it says none that makes sense."""
    at = head.find(_LENGTH)
    if at < 0:
        return 0
    at += len(_LENGTH)
    text = head[at : head.index(b"\r\n", at)].strip()
    return int(text) if text.isdigit() and len(text) < 16 else 0
