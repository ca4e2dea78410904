"""Parameters of an address that are no filters of its list: one that is misspelt must not pass for a list of everything."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from jedisite.words import rather
from tasks_app.dashboard import frame, window

ALWAYS: Final = frozenset((*window.NAMES, *frame.SCOPE, "cursor", "view"))
"""What links of the frame bring to every page."""
MOST_SAID, LONGEST = 5, 60


def faults_of(given: Iterable[str], known: Collection[str], others: Collection[str] = ()) -> dict[str, str]:
    """The sentence on each name that is neither a filter, nor one of `others` or of the frame."""
    names = [name for name in given if name not in known and name not in others and name not in ALWAYS]
    short = {name: name[:LONGEST] for name in names[:MOST_SAID]}
    return {name: rather(f"{said}: There is no such filter here", said, known, most=0) for name, said in short.items()}
