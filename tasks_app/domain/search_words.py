"""Words of names and messages that people search for, as the function `search_words` of the database cuts them. Pure."""

from __future__ import annotations

import re
import string
from typing import Final

LONGEST_WORD, LONGEST_TEXT, MOST_WORDS = 64, 1000, 20
"""Characters of a word and of a text that are looked at, and words of a text that are searched for."""
_RUN: Final = re.compile("[A-Za-z0-9\x80-\U0010ffff]+")
_CUT: Final = re.compile("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")
# As the collation "C" of the database does: other letters keep their case on both sides.
_SMALL: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def clean(text: str) -> str:
    """One line: what cannot be printed, and what turns the direction of writing, is a space.

    >>> clean(" a\\x00b\\u202e ")
    'a b'
    """
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def words_of(text: str) -> list[str]:
    """What stands between dots, underscores, spaces and the like; each once, small letters apart from others.

    >>> words_of("user.ada_MyTask user")
    ['user', 'ada', 'MyTask']
    """
    return list(dict.fromkeys(_RUN.findall(text[:LONGEST_TEXT])))[:MOST_WORDS]


def query_of(text: str) -> str:
    """A `tsquery` for what has all words of the text, each as the start of a word of its own; "" for a text without words.

    A word that is cut at capitals and digits is found whole or in its parts, so `MyTask` finds `notMyTask`.

    >>> query_of("ada_MyTask")
    "'ada':* & ('mytask':* | 'my':* & 'task':*)"
    """
    return " & ".join(_start_of(word) for word in words_of(text))


def _start_of(word: str) -> str:
    parts = list(dict.fromkeys(part for part in _CUT.split(word) if part))
    whole = _lexeme(word)
    return whole if len(parts) < 2 else f"({whole} | {' & '.join(map(_lexeme, parts))})"


def _lexeme(word: str) -> str:
    # A word has no quote and no backslash: both are cuts.
    return f"'{word.translate(_SMALL)[:LONGEST_WORD]}':*"
