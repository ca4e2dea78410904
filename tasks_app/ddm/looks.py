"""Looks into log archives by the web server: each may unpack much for seconds, so that few are had at once.

Who finds no place is told at once to come again: to wait here would keep a thread from other calls.
"""

from __future__ import annotations

from typing import Final

from jedisite.server.places import Places
from jedisite.web.problems import Unavailable


class TooManyLooks(Unavailable):
    default_detail = "Other log archives are being read; try again in a moment."
    wait = 2


class OwnLookUnderWay(TooManyLooks):
    default_detail = "Another log archive is being read for you; try again in a moment."


class LookTookLong(Unavailable):
    """A look that was ended; a machine that is busy is not asked for the next one at once."""

    wait = 30


LOOKS: Final = Places(2, 1, TooManyLooks, OwnLookUnderWay)
"""With all exports (see `jedisite.web.exports`) and looks there may be, the threads of one process are busy for seconds only."""
