"""A command line split into words as shlex.split does it, in a time that grows as its length and not as its square. Pure.

shlex puts words together character by character: a user's text of one long word would hold whoever reads it for minutes.
"""

from __future__ import annotations

import re
from typing import Final

_BLANKS: Final = " \t\r\n"
_WORD: Final = re.compile(
    rf"""(?:[^{_BLANKS}'"\\]++|'[^']*+'|"(?:[^"\\]++|\\.)*+"|\\.)++""",
    re.DOTALL,
)
"""What was read is never read again, hence the doubled signs."""
_NOT_PLAIN: Final = re.compile(r"""['"\\]""")
_PIECE: Final = re.compile(r"""[^'"\\]++|'[^']*+'|"(?:[^"\\]++|\\.)*+"|\\.""", re.DOTALL)
_ESCAPED: Final = re.compile(r"""\\(["\\])""")
"""Between double quotes; before other characters the backslash stays."""
_BLANK: Final = re.compile(rf"[{_BLANKS}]++")
_OPEN_ESCAPE: Final = re.compile(r"""(?:"(?:[^"\\]++|\\.)*+)?\\\Z""", re.DOTALL)


def words_of(text: str) -> list[str]:
    """The words of a command line. Raises ValueError when a quote is not closed or nothing follows a backslash."""
    words: list[str] = []
    at, end = 0, len(text)
    while True:
        if blank := _BLANK.match(text, at):
            at = blank.end()
        if at == end:
            return words
        found = _WORD.match(text, at)
        stop = found.end() if found else at
        if stop < end and text[stop] not in _BLANKS:
            raise ValueError("No escaped character" if _OPEN_ESCAPE.match(text, stop) else "No closing quotation")
        word = text[at:stop]
        words.append(_unquoted(word) if _NOT_PLAIN.search(word) else word)
        at = stop


def _unquoted(word: str) -> str:
    pieces = _PIECE.findall(word)
    for at, piece in enumerate(pieces):
        first = piece[0]
        if first == "'":
            pieces[at] = piece[1:-1]
        elif first == '"':
            pieces[at] = _ESCAPED.sub(r"\1", piece[1:-1]) if "\\" in piece else piece[1:-1]
        elif first == "\\":
            pieces[at] = piece[1]
    return "".join(pieces)
