"""Regular expressions that people write, on an engine whose time grows with the length of the text and no faster. Pure.

Python's engine goes back over its steps: a short pattern such as `(a+)+b` can hold a process for hours, and nothing can
interrupt it. RE2 never goes back; what cannot be done that way (looking ahead or behind, referring back to a group) it
refuses. Whatever a person may write is compiled here and nowhere else; `re` is for the patterns of our own code.

The syntax is RE2's. It differs from Python's in little that people write: `\\d`, `\\w`, `\\s` and `\\b` are about ASCII,
`$` is the very end, and the end of a text that has several lines is `\\z`, which Python writes `\\Z`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

import re2

from jedisite.vocabulary.words import plural

LONGEST: Final = 512
"""Characters of a pattern."""
MOST_MEMORY: Final = 1 << 19
"""Bytes that a compiled pattern may take, with what the engine keeps of the texts that it has seen."""
MOST_STEPS: Final = 1000
"""Steps of a compiled pattern. Each character of a text costs one of them as a rule, and all of them at worst."""

_LOOKS_ROUND: Final = ("(?=", "(?!", "(?<", "(?<=", "(?<!")
_UNBOUNDED_BELOW: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(\{,\d+\})", re.DOTALL)


class PatternError(ValueError):
    """A pattern that is not taken; the text is a sentence without its full stop."""


class Pattern:
    """A compiled pattern; `text` is what was written. The methods say whether it fits, whatever the text has in it."""

    __slots__ = ("_compiled", "text")

    def __init__(self, text: str, program: Any) -> None:
        self.text = text
        self._compiled = program

    def search(self, text: str) -> bool:
        """Whether some part of the text matches."""
        return self._compiled.search(_encoded(text)) is not None

    def match(self, text: str) -> bool:
        """Whether the text begins with a match."""
        return self._compiled.match(_encoded(text)) is not None

    def fullmatch(self, text: str) -> bool:
        """Whether the whole text matches."""
        return self._compiled.fullmatch(_encoded(text)) is not None


@lru_cache(maxsize=256)
def compiled(pattern: str, *, ignore_case: bool = False, across_lines: bool = False) -> Pattern:
    """The pattern, ready for use; with `across_lines` a dot takes the end of a line too. Raises PatternError."""
    if len(pattern) > LONGEST:
        raise PatternError(f"the pattern has {plural(len(pattern), 'character')} and {LONGEST} are allowed")
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = MOST_MEMORY
    options.case_sensitive = not ignore_case
    options.dot_nl = across_lines
    try:
        program = re2.compile(pattern.encode(), options)
    except (re2.error, UnicodeEncodeError) as exc:
        raise PatternError(_objection(pattern, exc)) from None
    if program.programsize > MOST_STEPS:
        raise PatternError(f"{pattern!r} repeats too much: {program.programsize} steps, and {MOST_STEPS} are allowed")
    if found := next((one for one in _UNBOUNDED_BELOW.finditer(pattern) if one[1]), None):
        raise PatternError(f"{pattern!r} has {found[1]} in it: write {{0{found[1][1:]} for that")
    return Pattern(pattern, program)


def fault_of(pattern: str) -> str:
    """Why a pattern is not taken, as a sentence without its full stop; empty when it is."""
    try:
        compiled(pattern)
    except PatternError as exc:
        return str(exc)
    return ""


def _encoded(text: str) -> bytes:
    return text.encode(errors="replace")


def _objection(pattern: str, error: Exception) -> str:
    """Why the engine does not take a pattern, for people."""
    if isinstance(error, UnicodeEncodeError):
        return f"{pattern!r} contains half of a surrogate pair"
    said, _, piece = error.args[0].decode(errors="replace").partition(": ")
    if piece in _LOOKS_ROUND:
        return f"{pattern!r} looks ahead or behind with {piece}, which is not supported"
    if piece == "(?P" or re.fullmatch(r"\\[1-9]", piece):
        return f"{pattern!r} refers back to a group, which is not supported"
    if piece == r"\Z":
        return rf"{pattern!r} has \Z in it: write \z for the end of the text"
    if said.startswith("pattern too large"):
        return f"{pattern!r} repeats too much"
    return f"{pattern!r} is not a regular expression: {said}{f' at {piece!r}' if piece not in ('', pattern) else ''}"
