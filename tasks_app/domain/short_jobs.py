"""Files that are left out, since the job that would read them would be incomplete (skipShortOutput): what the log of a task
says of them, and how many those are by its log, for they are no inputs any more. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from jedisite.vocabulary.words import plural, some

MARK: Final = "left out (skipShortOutput)"
MOST_NAMED: Final = 3
_COUNT: Final = re.compile(r"([\d\s]+) input files? (?:is|are) left out \(skipShortOutput\)")


def noted(lfns: Sequence[str]) -> str:
    """`1 input file is left out (skipShortOutput), as its job would be incomplete: a.root.`"""
    files = list(dict.fromkeys(lfns))
    are, they = ("is", "its job") if len(files) == 1 else ("are", "their jobs")
    return f"{plural(len(files), 'input file')} {are} {MARK}, as {they} would be incomplete: {some(files, MOST_NAMED)}."


def counted(notes: Iterable[str]) -> int:
    """How many files these sentences of a log are about."""
    return sum(int("".join(found[1].split())) for note in notes if (found := _COUNT.match(note)))
