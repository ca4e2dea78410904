"""Releases of the conditions database, which are datasets: `ddo.000001.Atlas.Ideal.DBRelease.v310701`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

LATEST: Final = "DBR_LATEST"
"""Stands in an item for the newest release."""
_USUAL = re.compile(r"ddo\.(?!user)[^:]*\.Ideal\.DBRelease\.v(\d{1,6})")
"""Releases with a fourth number, or with something behind the version, are for special purposes."""


def latest_of(names: Iterable[str]) -> str | None:
    """The newest of these releases; None when none is a usual one. Two digits are a part of a version."""
    found = [(match[1].ljust(6, "0"), name) for name in names if (match := _USUAL.fullmatch(name))]
    return max(found)[1] if found else None
