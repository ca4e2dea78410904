"""Regular expressions that people write for the texts of errors: those that could take too long are refused. Pure.

A text that is made for it costs a pattern like (a+)+b time that doubles with each character. Nothing can interrupt a
match in Python, so what is looked at is the pattern: repetitions that contain one another, and how many stand side by
side. A repetition that cannot take the character that has to follow it costs nothing, nor does the last one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from re import _constants as ops  # type: ignore[attr-defined] # nothing else says how Python reads a pattern
from re import _parser  # type: ignore[attr-defined]
from typing import Any, Final

LONGEST: Final = 512
FEW: Final = 8
"""Times that something may be repeated before it counts as without end."""
MOST_REPETITIONS: Final = 3
"""Open-ended repetitions side by side. Of a text of 500 characters three can make 20 million steps, some tenths of a second."""
MOST_CHOICES: Final = 10
"""Optional pieces and alternatives, each of which may double the time."""

Item = tuple[Any, Any]


class _TooSlowError(Exception):
    pass


def trouble(pattern: str | None) -> str:
    """Why a pattern is not taken, as a sentence; empty when it is."""
    if not pattern:
        return ""
    if len(pattern) > LONGEST:
        return f"A pattern has {LONGEST} characters at most; this has {len(pattern)}."
    try:
        re.compile(pattern)
        parsed = _parser.parse(pattern)
    except (re.error, OverflowError, RecursionError) as exc:
        return f"This is not a regular expression: {exc}."
    try:
        repetitions, choices = _cost(parsed.data, followed=False)
    except _TooSlowError as exc:
        return f"A text could be made for which this takes for ever: {exc}."
    if repetitions > MOST_REPETITIONS:
        return (
            f"This has {repetitions} open-ended repetitions such as .* that are followed by something, and may have "
            f"{MOST_REPETITIONS}: a text could be made for which it takes minutes."
        )
    if choices > MOST_CHOICES:
        return f"This has {choices} optional pieces or alternatives, and may have {MOST_CHOICES}: each may double its time."
    return ""


def _cost(items: Sequence[Item], *, followed: bool) -> tuple[int, int]:
    """Open-ended repetitions and choices on one way through. `followed`: something comes behind that may fail."""
    repetitions = choices = 0
    for place, (op, value) in enumerate(items):
        behind = place + 1 < len(items) or followed
        after = items[place + 1] if place + 1 < len(items) else None
        more, options = _cost_of(op, value, after, behind)
        repetitions, choices = repetitions + more, choices + options
    return repetitions, choices


def _cost_of(op: Any, value: Any, after: Item | None, behind: bool) -> tuple[int, int]:
    if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
        return _repeated(op, value, after, behind)
    if op is ops.SUBPATTERN:
        return _cost(value[-1].data, followed=behind)
    if op is ops.ATOMIC_GROUP:
        return _cost(value.data, followed=True)
    if op in (ops.ASSERT, ops.ASSERT_NOT):
        return _cost(value[1].data, followed=True)
    if op is ops.BRANCH:
        costs = [_cost(branch.data, followed=behind) for branch in value[1]]
        return max(cost for cost, _ in costs), max(options for _, options in costs) + int(behind)
    if op in (ops.GROUPREF, ops.GROUPREF_EXISTS):
        raise _TooSlowError("it refers back to a group")
    return 0, 0


def _repeated(op: Any, value: Any, after: Item | None, behind: bool) -> tuple[int, int]:
    least, most, body = value
    inner, options = _cost(body.data, followed=True)
    if most > FEW and (inner or options):
        raise _TooSlowError("a repetition contains another one, or alternatives")
    inner, options = inner * int(most), options * int(most)
    if least == most or op is ops.POSSESSIVE_REPEAT or not behind or _ends_before(body.data, after):
        return inner, options
    return (inner + 1, options) if most > FEW else (inner, options + int(most) - int(least))


def _ends_before(body: Sequence[Item], after: Item | None) -> bool:
    """Whether what is repeated is one character that cannot be the one that has to follow."""
    if after is None or len(body) != 1 or after[0] is not ops.LITERAL:
        return False
    letter = chr(after[1])
    return not any(_takes(body[0], one) for one in {letter, letter.lower(), letter.upper()} if len(one) == 1)


def _takes(item: Item, letter: str) -> bool:
    """Whether a piece of a pattern takes a character; pieces that are more than a character take every one."""
    op, value = item
    if op is ops.LITERAL:
        return bool(ord(letter) == value)
    if op is ops.NOT_LITERAL:
        return bool(ord(letter) != value)
    if op is ops.IN:
        return _among(value, letter)
    return True


def _among(members: Iterable[Item], letter: str) -> bool:
    found, negated = False, False
    for op, value in members:
        if op is ops.NEGATE:
            negated = True
        elif op is ops.LITERAL:
            found |= ord(letter) == value
        elif op is ops.RANGE:
            found |= value[0] <= ord(letter) <= value[1]
        elif op is ops.CATEGORY:
            found |= re.match(_CATEGORIES[value], letter) is not None
    return found != negated


_CATEGORIES: Final = {
    ops.CATEGORY_DIGIT: r"\d", ops.CATEGORY_NOT_DIGIT: r"\D", ops.CATEGORY_SPACE: r"\s", ops.CATEGORY_NOT_SPACE: r"\S",
    ops.CATEGORY_WORD: r"\w", ops.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip
