"""What may be in a submitted dictionary at all, whatever its keys mean: it must be JSON that PostgreSQL can store."""

from __future__ import annotations

import math
import re

from tasks_app.params.faults import Faults, join_path

LONGEST_TEXT = 1_000_000
LARGEST_DICTIONARY = 8_000_000
DEEPEST = 8
LARGEST_INTEGER = 2**63 - 1
LONGEST_KEY = 100

# NUL cannot be stored in a text column, and half a surrogate pair cannot be encoded.
_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")


class _Walk:
    """One pass over the values, counting characters about as JSON text would."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.size = 0

    def value(self, value: object, where: str, depth: int) -> None:
        if self.size > LARGEST_DICTIONARY:
            return
        if isinstance(value, str):
            self.text(value, where)
        elif value is None or isinstance(value, bool):
            self.size += 5
        elif isinstance(value, int):
            self.size += 20
            if abs(value) > LARGEST_INTEGER:
                self.faults.add(where, "range", f"A number must lie within ±{LARGEST_INTEGER}.")
        elif isinstance(value, float):
            self.size += 20
            if not math.isfinite(value):
                self.faults.add(where, "finite", "NaN and infinity are not numbers that can be stored.")
            elif abs(value) > LARGEST_INTEGER:  # the database gives it back as a whole number
                self.faults.add(where, "range", f"A number must lie within ±{LARGEST_INTEGER}.")
        elif isinstance(value, (dict, list, tuple)):
            self.nest(value, where, depth + 1)
        else:
            self.faults.add(where, "JSON", f"A value of type {type(value).__name__} is not JSON.")

    def nest(self, value: dict[object, object] | list[object] | tuple[object, ...], where: str, depth: int) -> None:
        if depth > DEEPEST:
            self.faults.add(where, "depth", f"Values may be nested at most {DEEPEST} levels deep.")
            return
        self.size += 2
        if isinstance(value, dict):
            for key, inner in value.items():
                if not isinstance(key, str):
                    self.faults.add(where, "JSON", f"A key of type {type(key).__name__} is not JSON.")
                elif len(key) > LONGEST_KEY or _NOT_STORABLE.search(key):
                    self.faults.add(where, "key", f"A key has at most {LONGEST_KEY} characters, all of them printable.")
                else:
                    self.size += len(key) + 4
                    self.value(inner, join_path(where, key), depth)
        else:
            for index, inner in enumerate(value):
                self.size += 1
                self.value(inner, f"{where}[{index}]", depth)

    def text(self, value: str, where: str) -> None:
        self.size += len(value) + 2
        if len(value) > LONGEST_TEXT:
            self.faults.add(where, "length", f"A text has at most {LONGEST_TEXT} characters, not {len(value)}.")
        elif _NOT_STORABLE.search(value):
            self.faults.add(where, "characters", "A text must not contain NUL or half a surrogate pair.")


def check_storable(raw: object, faults: Faults) -> None:
    """Add a fault for whatever in `raw` is not JSON, too deep, too large or not storable.

    Raises ParamErrors when there are more than are told.
    """
    walk = _Walk(faults)
    walk.value(raw, "", 0)
    if walk.size > LARGEST_DICTIONARY:
        faults.add("", "size", f"As JSON, task parameters may have at most {LARGEST_DICTIONARY} characters.")
