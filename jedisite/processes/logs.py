"""Short errors in the log. A traceback is at most `MOST_LINES` lines, and no values of variables are in it."""

from __future__ import annotations

import traceback
from types import TracebackType
from typing import Final

from jedisite.vocabulary.words import plural

MOST_LINES: Final = 40
MOST_OF_A_LINE: Final = 300
_HEAD: Final = 8
"""Lines that are kept of the beginning: where the call came from. The end says what went wrong."""

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]


def short_traceback(exc_info: ExcInfo) -> str:
    """The traceback as text of at most MOST_LINES lines; what is in the middle is left out, with a line that says so."""
    lines = "".join(traceback.format_exception(*exc_info)).rstrip("\n").split("\n")
    if len(lines) > MOST_LINES:
        tail = MOST_LINES - _HEAD - 1
        lines = [
            *lines[:_HEAD],
            f"  … {plural(len(lines) - _HEAD - tail, 'line is', 'lines are')} left out …",
            *lines[-tail:],
        ]
    return "\n".join(line if len(line) <= MOST_OF_A_LINE else f"{line[: MOST_OF_A_LINE - 1]}…" for line in lines)


def sentence_of(error: BaseException, longest: int = 1000) -> str:
    """An error in one line that the database can keep: its kind and what it says."""
    text = " ".join(f"{type(error).__name__}: {error}".replace("\x00", "�").split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
