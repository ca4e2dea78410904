"""Faults found in a submitted dictionary: one value a fault, all of them in one exception."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from jedisite.vocabulary.words import rather

T = TypeVar("T")
MOST_COMPARED = 200_000
"""Letters of a name times those of all names with which it is compared: beyond that nothing is said of what was meant. Names that
are made for it take most of a microsecond for each pair of letters."""
MOST_FAULTS = 500
MORE = f"Only the first {MOST_FAULTS} errors are shown; the rest was not checked."
MOST_HINTS = 20
"""Unknown names for which others are offered: looking for near ones among many takes milliseconds each."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault. `field` is a path such as `jobParameters[2].param_type`, empty for the dictionary as a whole.

    `rule` is short and stable (`one of`, `at most`, `required`); `message` is a sentence for people.
    """

    field: str
    rule: str
    message: str


class ParamErrors(ValueError):
    """The dictionary breaks at least one rule; `errors` holds every fault that was found, in reading order."""

    def __init__(self, errors: tuple[FieldError, ...]) -> None:
        self.errors = errors
        super().__init__(" ".join(f"{e.field or 'task parameters'}: {e.message}" for e in errors[:5]))


@dataclass(slots=True)
class Faults:
    """Collects faults. One beyond `MOST_FAULTS` ends the check, so that a hostile dictionary stays cheap to refuse."""

    found: list[FieldError] = field(default_factory=list)

    def add(self, where: str, rule: str, message: str) -> None:
        """Raises ParamErrors with all that were found when there are as many as are told."""
        if len(self.found) >= MOST_FAULTS:
            raise ParamErrors((*self.found, FieldError("", "too many", MORE)))
        self.found.append(FieldError(where, rule, message))

    @property
    def hints(self) -> bool:
        """Whether what is added now may say what was meant: past `MOST_HINTS` faults names are compared with no others."""
        return len(self.found) < MOST_HINTS

    def add_unknown(self, where: str, said: str, name: str, known: Iterable[str], rule: str = "known key") -> None:
        """A name that is not known: `said`, a sentence without its full stop, and what may have been meant."""
        others = list(known) if self.hints else []
        compared = len(name) * sum(map(len, others)) <= MOST_COMPARED
        self.add(where, rule, rather(said, name, others) if others and compared else f"{said}.")

    def take(self, check: Callable[[], T]) -> T | None:
        """What a check returns; when it raises ParamErrors None, and its faults are added for fields that had none."""
        try:
            return check()
        except ParamErrors as exc:
            fields = {fault.field for fault in self.found}
            for error in exc.errors:
                if not error.field or error.field not in fields:
                    self.add(error.field, error.rule, error.message)
        return None

    def __bool__(self) -> bool:
        return bool(self.found)

    def __iter__(self) -> Iterator[FieldError]:
        return iter(self.found)

    def touches(self, *names: str) -> bool:
        """Whether any of these top-level keys already has a fault, so that rules across keys should stay silent."""
        return any(e.field == n or e.field.startswith((f"{n}[", f"{n}.")) for e in self.found for n in names)

    def raise_if_any(self) -> None:
        """Raise ParamErrors when something was found."""
        if self.found:
            raise ParamErrors(tuple(self.found))


def shown(value: object, longest: int = 60) -> str:
    """A value as it can stand in a message: quoted, on one line, shortened."""
    text = repr(value)
    if isinstance(value, str):
        text = text.replace("\\\\", "\\")  # patterns are read as they were written
    return text if len(text) <= longest else f"{text[:longest]}…"


def join_path(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key
