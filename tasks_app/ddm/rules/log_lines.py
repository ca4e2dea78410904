"""What is shown of a long text: its end, or the lines around one of them, with the lines that tell of errors or hold a word.

The text comes in pieces and is kept nowhere as a whole. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

AROUND: Final = 200
"""Lines before and after the one that was asked for."""
MOST_HITS: Final = 100
MOST_ERRORS: Final = 20
SHOWN_OF_HIT: Final = 300
LONGEST_LINE: Final = 64 * 1024
"""Bytes; a longer one is counted as several."""
ERROR: Final = re.compile(
    rb"traceback \(most recent|\b(?:\w*error|\w*exception|fatal|critical|segmentation fault|core dumped|command not found|"
    rb"no such file|permission denied|out of memory|aborted|killed)\b(?! ?[:=]? ?(?:0\b|none\b))",
    re.IGNORECASE,
)
"""Lines that tell of an error, but not of none: `errors: 0`."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line with its number in the whole text, which begins with 1."""

    number: int
    text: str
    is_error: bool = False
    is_hit: bool = False


@dataclass(slots=True)
class LineReader:
    """Reads a text piece by piece. `limit`: bytes that are shown at most; `find`: a text to look for, in any case; `around`:
    the number of the line that is shown with those near it, 0 for the end."""

    limit: int
    find: str = ""
    around: int = 0
    lines: int = 0
    """How many lines there are."""
    errors: list[int] = field(default_factory=list)
    """Numbers of the first lines that tell of errors."""
    hits: list[Line] = field(default_factory=list)
    hit_count: int = 0
    _rest: bytes = b""
    _tail: bytes = b""
    _near: list[bytes] = field(default_factory=list)
    _word: bytes = field(init=False, default=b"")

    def __post_init__(self) -> None:
        self._word = self.find.encode("utf-8", "replace").lower()

    def _holds_word(self, text: bytes) -> bool:
        return bool(self._word) and self._word in text.lower()

    def feed(self, piece: bytes) -> None:
        if not self.around:
            self._tail = (self._tail + piece)[-self.limit :]
        data = self._rest + piece
        end = data.rfind(b"\n") + 1
        if not end and len(data) > LONGEST_LINE:
            data, end = data + b"\n", len(data) + 1
        self._rest = data[end:]
        if end:
            self._take(data[: end - 1])

    def close(self) -> None:
        """After the last piece."""
        if self._rest:
            self._take(self._rest)
            self._rest = b""

    def _take(self, block: bytes) -> None:
        """Whole lines, without the end of the last one."""
        first, count = self.lines + 1, block.count(b"\n") + 1
        self.lines += count
        near = self.around and first <= self.around + AROUND and first + count > self.around - AROUND
        looks = len(self.errors) < MOST_ERRORS and ERROR.search(block) is not None
        found = self._holds_word(block)
        if not (near or looks or found):
            return
        for number, line in enumerate(block.split(b"\n"), first):
            if near and abs(number - self.around) <= AROUND:
                self._near.append(line)
            if looks and len(self.errors) < MOST_ERRORS and ERROR.search(line):
                self.errors.append(number)
            if found and self._holds_word(line):
                self.hit_count += 1
                if len(self.hits) < MOST_HITS:
                    self.hits.append(Line(number, _text(line[:SHOWN_OF_HIT]), is_hit=True))

    def skipped(self, size: int) -> int:
        """Bytes before the end of a text of that size that are not shown; 0 when it is not its end that is shown."""
        return 0 if self.around else max(size - len(self._tail), 0)

    def shown(self) -> list[Line]:
        """The lines to be shown, in order, at most `limit` bytes of them."""
        if self.around:
            first = max(self.around - AROUND, 1)
            low, high = _fitting([len(line) for line in self._near], self.around - first, self.limit)
            lines, first = self._near[low:high], first + low
        else:
            text = self._tail.removesuffix(b"\n")
            lines = text.split(b"\n") if text else []
            first = self.lines - len(lines) + 1
        return [
            Line(
                number,
                _text(line[: self.limit]),
                ERROR.search(line) is not None,
                self._holds_word(line),
            )
            for number, line in enumerate(lines, first)
        ]


def _fitting(sizes: Sequence[int], at: int, limit: int) -> tuple[int, int]:
    """From which line to before which one, around the one at place `at`, so that they have `limit` bytes at most."""
    if at >= len(sizes):
        return 0, 0
    low, high, left = at, at + 1, limit - sizes[at]
    grows = True
    while grows:
        grows = False
        if high < len(sizes) and sizes[high] <= left:
            left -= sizes[high]
            high, grows = high + 1, True
        if low > 0 and sizes[low - 1] <= left:
            low, grows = low - 1, True
            left -= sizes[low]
    return low, high


def _text(line: bytes) -> str:
    return line.decode("utf-8", errors="replace").replace("\x00", "\ufffd").rstrip("\r")
