"""Sentences for people. Pure."""

from __future__ import annotations

import re

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Control characters, all that begin a new line, and those that turn the direction of what follows."""
ENDS = (".", "!", "?", "…")


def sentence(said: object) -> str:
    """What an exception or a text says, as a sentence: it begins with a capital letter and has one full stop.

    >>> sentence("it waits"), sentence("It waits.")
    ('It waits.', 'It waits.')
    """
    text = str(said).strip()
    return text[:1].upper() + text[1:] + ("" if not text or text.endswith(ENDS) else ".")


def plural(number: int, one: str, many: str = "") -> str:
    """A number of things: "1 job", "12 jobs"."""
    return f"{number} {one}" if number == 1 else f"{number} {many or one + 's'}"


def is_one_line(text: str) -> bool:
    """Whether a name can stand in a heading, in the head of a mail or in a log: it has no control character in it."""
    return _CONTROL.search(text) is None
