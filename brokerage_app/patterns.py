"""Regular expressions that people wrote: compiled once, and never able to crash or to stall a decision.

A pattern of a task is matched against what hundreds of sites publish, in the middle of a pass. Python's engine goes
back over its steps, so a short pattern such as `(a+)+b` can take hours on a short text. Such patterns are refused
by their form: they may not repeat what repeats already, and repeat only a few times in all.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

LONGEST: Final = 256
MOST_REPEATS: Final = 4
"""How many of `*`, `+` and `{…}` a pattern may have: the steps of a match grow with this power of the text's length."""
MOST_OPTIONS: Final = 8
LONGEST_TEXT: Final = 256
_MOST_COUNTED: Final = 100
_COUNTED: Final = re.compile(r"\{(\d*)(?:,(\d*))?\}")


class PatternError(ValueError):
    """A pattern that is not a regular expression, or that could take too long; the text is a sentence."""


@lru_cache(maxsize=4096)
def fault_of(pattern: str) -> str:
    """Why a pattern cannot be used, as a sentence; empty when it can."""
    if len(pattern) > LONGEST:
        return f"the pattern has {len(pattern)} characters and {LONGEST} are allowed"
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as exc:
        return f"{pattern!r} is not a regular expression: {exc}"
    except Warning as exc:
        return f"{pattern!r} has two meanings: {exc}"
    return _too_costly(pattern)


@lru_cache(maxsize=4096)
def compiled(pattern: str, *, ignore_case: bool = False) -> re.Pattern[str]:
    """The pattern, compiled. Raises PatternError when it is not usable (see `fault_of`)."""
    fault = fault_of(pattern)
    if fault:
        raise PatternError(fault)
    return re.compile(pattern, re.IGNORECASE if ignore_case else 0)


@lru_cache(maxsize=65536)
def fully_matches(pattern: str, text: str) -> bool:
    """Whether the whole text matches. Raises PatternError."""
    return compiled(pattern).fullmatch(text[:LONGEST_TEXT]) is not None


@lru_cache(maxsize=65536)
def starts_with(pattern: str, text: str) -> bool:
    """Whether the text begins with a match, whatever its case. Raises PatternError."""
    return compiled(pattern, ignore_case=True).match(text[:LONGEST_TEXT]) is not None


def _too_costly(pattern: str) -> str:
    """Why a valid pattern could take too long; empty when it could not."""
    repeats = options = 0
    inside = [False]  # for each open group: whether it holds something that may match in several ways
    group_varies = False  # whether the item just read is a group of that kind
    at = 0
    while at < len(pattern):
        char = pattern[at]
        step, varies = 1, False
        if char == "\\":
            step = 2
            if pattern[at + 1] in "123456789":
                return f"{pattern!r} refers back to a group, which could take too long"
        elif char == "[":
            step = _end_of_set(pattern, at) - at
        elif char == "(":
            if pattern.startswith("(?", at) and not pattern.startswith("(?:", at):
                return f"{pattern!r} has a group of the kind '{pattern[at:at + 3]}', and only (…) and (?:…) are allowed"
            step = 3 if pattern.startswith("(?:", at) else 1
            inside.append(False)
        elif char == ")":
            varies = inside.pop()
            inside[-1] = inside[-1] or varies
        elif char == "|":
            inside[-1] = True
        elif char in "*+?" or (counted := _COUNTED.match(pattern, at)) is not None:
            inside[-1] = True
            if char == "?":
                options += 1
            else:
                repeats += 1
                if group_varies:
                    return f"{pattern!r} repeats what has several ways to match already, which could take too long"
            if char == "{":
                assert counted is not None
                if max(int(n or 0) for n in counted.groups("")) > _MOST_COUNTED:
                    return f"{pattern!r} counts to more than {_MOST_COUNTED}"
                step = len(counted[0])
            if pattern[at + step : at + step + 1] in ("?", "+"):
                step += 1
        group_varies = varies
        at += step
    if repeats > MOST_REPEATS or options > MOST_OPTIONS:
        return f"{pattern!r} repeats {repeats} times and has {options} options; {MOST_REPEATS} and {MOST_OPTIONS} are allowed"
    return ""


def _end_of_set(pattern: str, start: int) -> int:
    """Where a valid set `[…]` ends; a bracket that comes first is one of its members."""
    at = start + 1
    if pattern.startswith("^", at):
        at += 1
    if pattern.startswith("]", at):
        at += 1
    while pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1
