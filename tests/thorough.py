"""How much of what could be tested without end is tested: what finds almost all faults, or far more with JEDI_TEST_ALL=full."""

from __future__ import annotations

import os

FULL = os.environ.get("JEDI_TEST_ALL") == "full"


def cases(usual: int, full: int) -> int:
    return full if FULL else usual
