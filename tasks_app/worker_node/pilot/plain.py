"""What a site can store of what payloads say: JSON has no infinity, a database no NUL, and no text half a character. Pure."""

from __future__ import annotations

import math

DEEPEST = 50
"""Lists and objects in each other. Sites take 60, and what is reported is wrapped in some."""


def plain_text(text: str) -> str:
    """The text with a sign in the place of each character that cannot be stored."""
    return text.replace("\0", "\ufffd").encode(errors="surrogatepass").decode(errors="replace")


def fault_of(value: object) -> str:
    """Why a value that came as JSON cannot be stored; "" if it can."""
    todo: list[tuple[object, int]] = [(value, 0)]
    while todo:
        one, depth = todo.pop()
        if isinstance(one, str):
            if plain_text(one) != one:
                return "it contains a character that cannot be stored"
        elif isinstance(one, float):
            if not math.isfinite(one):
                return f"it contains {one}, which is not a JSON number"
        elif isinstance(one, dict | list):
            if depth >= DEEPEST:
                return f"it is nested deeper than {DEEPEST} levels"
            parts = [*one, *one.values()] if isinstance(one, dict) else one
            todo += [(part, depth + 1) for part in parts]
    return ""
