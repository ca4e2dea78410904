"""A command line split into words as shlex.split does it, in a time that grows as its length and not as its square. Pure.

shlex puts words together character by character: a user's text of one long word would hold whoever reads it for minutes.
"""

from __future__ import annotations

import re
from typing import Final

_BLANKS: Final = " \t\r\n"
_BLANK: Final = re.compile(rf"[{_BLANKS}]+")
# No repeated groups: the possessive ones of Python before 3.11.5 match wrongly, and the others remember each turn.
_PLAIN: Final = re.compile(rf"""[^{_BLANKS}'"\\]+""")
_IN_QUOTES: Final = re.compile(r"""["\\]""")
_UNCLOSED: Final = "No closing quotation"
_UNESCAPED: Final = "No escaped character"


def words_of(text: str) -> list[str]:
    """The words of a command line. Raises ValueError when a quote is not closed or nothing follows a backslash."""
    words: list[str] = []
    at, end = 0, len(text)
    while True:
        if blank := _BLANK.match(text, at):
            at = blank.end()
        if at == end:
            return words
        pieces: list[str] = []
        while at < end and text[at] not in _BLANKS:
            piece, at = _piece(text, at)
            pieces.append(piece)
        words.append("".join(pieces))


def _piece(text: str, at: int) -> tuple[str, int]:
    """What stands at a place up to the next sign, or the next quotation, or an escaped character; and where it ends."""
    if plain := _PLAIN.match(text, at):
        return plain[0], plain.end()
    if text[at] == "'":
        stop = text.find("'", at + 1)
        if stop < 0:
            raise ValueError(_UNCLOSED)
        return text[at + 1 : stop], stop + 1
    if text[at] == '"':
        return _quoted(text, at + 1)
    if at + 1 == len(text):
        raise ValueError(_UNESCAPED)
    return text[at + 1], at + 2


def _quoted(text: str, at: int) -> tuple[str, int]:
    """What stands between double quotes, where the backslash stays before other characters than these two."""
    parts: list[str] = []
    while found := _IN_QUOTES.search(text, at):
        parts.append(text[at : found.start()])
        at = found.end()
        if found[0] == '"':
            return "".join(parts), at
        if at == len(text):
            raise ValueError(_UNESCAPED)
        parts.append(text[at] if text[at] in '"\\' else f"\\{text[at]}")
        at += 1
    raise ValueError(_UNCLOSED)
