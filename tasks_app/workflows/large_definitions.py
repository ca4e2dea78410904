"""Limits how many large definitions the web server reads at once: each keeps a thread for seconds."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Final

from jedisite.server.places import Places
from jedisite.web.problems import Unavailable

LARGE: Final = 50_000
"""Characters. Shorter ones are read within half a second."""


class TooManyLargeDefinitions(Unavailable):
    default_detail = "Other large definitions are being read; please try again in a moment."
    wait = 10


class OwnLargeDefinition(TooManyLargeDefinitions):
    default_detail = "Another large definition is being read for you; please try again in a moment."


READS: Final = Places(2, 1, TooManyLargeDefinitions, OwnLargeDefinition)


def place_for(characters: int, account: str) -> AbstractContextManager[None]:
    """A place to read a definition of this length. Raises TooManyLargeDefinitions on entry."""
    return READS.place(account) if characters > LARGE else nullcontext()
