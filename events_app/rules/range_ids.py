"""The id of an event range as pilots are given it: the right to report on one hand-out of it.

`<jediTaskID>-<PandaID>-<fileID>-<job_processID>-<attemptNr>`: five whole numbers. When the range is handed out again,
it has another id: the job differs, and as a rule the attempts that are left.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from jedisite.vocabulary.words import plural

LARGEST: Final = 2**63 - 1
MOST_ATTEMPTS: Final = 2**15 - 1
LONGEST: Final = 5 * 19 + 4
_ID: Final = re.compile(r"([0-9]{1,18})-([0-9]{1,18})-([0-9]{1,18})-([0-9]{1,18})-([0-9]{1,4})")
"""Ids whose numbers cannot be too large, which all real ones are: a report may have a hundred thousand."""


class RangeIdError(ValueError):
    """A text is no id of a range; the sentence says what is wrong with it."""


class RangeId(NamedTuple):
    """The parts of an id. `job_id` is that of the consumer; for fine-grained jobs it may be that of their jobset.

    `process_id` is the number of the first event, from 1. `attempts` is how many were left when it was handed out.
    """

    task_id: int
    job_id: int
    file_id: int
    process_id: int
    attempts: int

    def __str__(self) -> str:
        return "-".join(map(str, self))


def parse_range_id(text: object) -> RangeId:
    """Read an id. Raises RangeIdError."""
    if not isinstance(text, str):
        raise RangeIdError(f"the id of a range is a text, not {type(text).__name__}")
    if plain := _ID.fullmatch(text):
        return RangeId._make(map(int, plain.groups()))
    if len(text) > LONGEST:
        raise RangeIdError(f"the id of a range has at most {LONGEST} characters, this one has {len(text)}")
    parts = text.split("-")
    if len(parts) != len(RangeId._fields):
        raise RangeIdError(f"{text!r} has {plural(len(parts), 'part')}, the id of a range has {len(RangeId._fields)}")
    wrong = next((part for part in parts if not (part.isascii() and part.isdecimal())), None)
    if wrong is not None:
        raise RangeIdError(f"{wrong!r} in {text!r} is not a whole number")
    found = RangeId(*map(int, parts))
    if max(found) > LARGEST or found.attempts > MOST_ATTEMPTS:
        raise RangeIdError(f"a number in {text!r} is too large")
    return found
