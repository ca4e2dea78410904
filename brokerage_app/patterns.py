"""Regular expressions that people wrote: compiled once, and never able to crash or to stall a decision.

A pattern of a task is matched against what hundreds of sites publish, in the middle of a pass. Python's engine goes
back over its steps, so a short pattern such as `(a+)+b` can take hours on a short text. Such patterns are refused
by their form: they may not repeat what may match in several ways, and all their choices together are bounded.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Final

LONGEST: Final = 256
LONGEST_TEXT: Final = 128
"""Characters of a published name that are looked at."""
MOST_WAYS: Final = 1_000_000
"""In how many ways a pattern may be laid over 64 characters; names of platforms and of GPUs are shorter."""
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
    repeats, choices = 0, 1
    bars = [0]  # of each open group
    varies = [False]  # whether an open group holds something that may match in several ways
    group_varies = False  # whether the item just read is such a group
    at = 0
    while at < len(pattern):
        char, step, closed_varies = pattern[at], 1, False
        counted = _COUNTED.match(pattern, at)
        if char == "\\":
            step = 2
            if pattern[at + 1] in "123456789":
                return f"{pattern!r} refers back to a group, which could take too long"
        elif char == "[":
            step = _end_of_set(pattern, at) - at
        elif char == "(":
            step = 3 if pattern.startswith("(?:", at) else 1
            if pattern.startswith("(?", at) and step == 1:
                return f"{pattern!r} has a group {pattern[at : at + 3]!r}, and only (...) and (?:...) are allowed"
            bars.append(0)
            varies.append(False)
        elif char == ")":
            choices *= 1 + bars.pop()
            closed_varies = varies.pop()
            varies[-1] |= closed_varies
        elif char == "|":
            bars[-1] += 1
            varies[-1] = True
        elif char in "*+?" or counted is not None:
            if group_varies and char != "?":
                return f"{pattern!r} repeats what may match in several ways, which could take too long"
            if counted is not None and max(int(number or 0) for number in counted.groups()) > _MOST_COUNTED:
                return f"{pattern!r} counts to more than {_MOST_COUNTED}"
            varies[-1] = True
            repeats, choices = (repeats, choices * 2) if char == "?" else (repeats + 1, choices)
            step = len(counted[0]) if counted is not None else 1
            step += pattern[at + step : at + step + 1] in ("?", "+")
        group_varies = closed_varies
        at += step
    ways = choices * (1 + bars[0]) * math.comb(64 + repeats, repeats)
    return f"{pattern!r} could match in {ways} ways, and {MOST_WAYS} are allowed" if ways > MOST_WAYS else ""


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
