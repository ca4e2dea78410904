"""Ids of jobs: a number, of a subjob the master's and its own, as a tuple or with a dot between them. Pure."""

from __future__ import annotations

import re
from typing import Union

JobKey = Union[int, str, "tuple[int, ...]", "list[int]"]  # evaluated by Python 3.9, too
_WRITTEN = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?")


def parse_id(key: JobKey) -> tuple[int, ...] | None:
    """The numbers of an id: (4,) for 4 and "4", (4, 2) for (4, 2) and "4.2"; None for a text that is no id, but may be a name.

    Raises ValueError for what can be neither.
    """
    if isinstance(key, str):
        return tuple(map(int, key.split("."))) if _WRITTEN.fullmatch(key) else None
    numbers = (key,) if isinstance(key, int) else tuple(key)
    if not 1 <= len(numbers) <= 2 or any(type(n) is not int or n < 0 for n in numbers):
        raise ValueError(f'{key!r} is not the id of a job: give 4, or of a subjob (4, 2) or "4.2"')
    return numbers


def written_id(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
