"""Limits how many log archives the web server reads at once: each may unpack much data for seconds.

Who finds no place is told at once to come again: to wait here would keep a thread from other calls.
"""

from __future__ import annotations

from typing import Final

from jedisite.server.places import Places
from jedisite.web.problems import Unavailable


class TooManyLogReads(Unavailable):
    default_detail = "Too many log archives are being read; please try again in a moment."
    wait = 2


class OwnLogReadUnderWay(TooManyLogReads):
    default_detail = "Another log archive is being read for you; please try again in a moment."


class LogReadTookTooLong(Unavailable):
    """Reading was ended after too long; the client should wait before the next attempt."""

    wait = 30


LOOKS: Final = Places(2, 1, TooManyLogReads, OwnLogReadUnderWay)
"""With all exports (see `jedisite.web.exports`) and looks there may be, the threads of one process are busy for seconds only."""
