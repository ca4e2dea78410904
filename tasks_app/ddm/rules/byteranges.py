"""Which part of a file a request asks for (RFC 9110, Range). Pure."""

from __future__ import annotations

import re
from typing import Final

from jedisite.vocabulary.words import thousands

LONGEST: Final = 100
_ONE = re.compile(r"bytes=\s*([0-9]*)\s*-\s*([0-9]*)\s*", re.ASCII)


class NoSuchRangeError(ValueError):
    """The range begins after the end of the file."""


def wanted(header: str | None, size: int) -> tuple[int, int] | None:
    """(first byte, byte after the last) of a file of `size` bytes; None is all of it: no range, several, or nonsense.

    Raises NoSuchRangeError when there is no byte in the range.
    """
    found = _ONE.fullmatch(header) if header and len(header) <= LONGEST else None
    if found is None or not (found[1] or found[2]):
        return None
    if not found[1]:
        first, end = max(size - int(found[2]), 0), size
    else:
        first, end = int(found[1]), min(int(found[2]) + 1, size) if found[2] else size
        if found[2] and int(found[2]) < int(found[1]):
            return None
    if first >= end:
        raise NoSuchRangeError(f"The file has {thousands(size)} bytes.")
    return first, end
