"""A decision's reason: a stable code, and a sentence with the numbers."""

from __future__ import annotations

from dataclasses import dataclass

from jedisite import refusals


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something was decided. Raises UnknownRefusalError when the code is not registered."""

    code: str
    detail: str

    def __post_init__(self) -> None:
        refusals.checked(self.code)
