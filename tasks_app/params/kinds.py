"""The kinds of values that keys take, and the check of one value against its kind."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlsplit

from jedisite.vocabulary.words import NOT_ONE_LINE, is_one_line, thousands
from tasks_app.params.faults import Faults, join_path, shown
from tasks_app.params.schedule import moment

Kind = Literal["text", "integer", "number", "flag", "names", "object", "items", "any"]

# What a person reads about each kind.
KIND_TITLES: dict[Kind, str] = {
    "text": "text",
    "integer": "whole number",
    "number": "number",
    "flag": "true or false (or 1 and 0)",
    "names": "list of names, or one text with names separated by commas",
    "object": "object",
    "items": "list of objects",
    "any": "any JSON value",
}

_ARTICLES: dict[Kind, str] = {"text": "", "flag": "", "object": "an ", "any": ""}

MOST_NAMES = 10_000
NINE_DIGITS = 999_999_999


WILDCARDS: Final = frozenset("*?[")
WILDCARD: Final = "wildcard"
"""The rule that is broken by a pattern where one whole name is wanted."""


@dataclass(frozen=True, slots=True)
class Form:
    """What a text may look like: a regular expression for all of it, and the same in words, for messages.

    `wild`: what is said of a text with a wildcard, where people may expect that it is expanded.
    """

    pattern: str
    words: str
    wild: str = ""

    def fits(self, text: str) -> bool:
        return re.fullmatch(self.pattern, text) is not None

    def fault(self, text: str, kind: str = "stand here") -> tuple[str, str]:
        """The rule that a text breaks which does not fit, and a sentence."""
        if self.wild and not WILDCARDS.isdisjoint(text):
            return WILDCARD, f"{shown(text)} {self.wild}."
        return "pattern", f"{shown(text)} cannot {kind}: {self.words}."


@dataclass(frozen=True, slots=True)
class Address(Form):
    """What can be read as an address as well, when it looks like one."""

    def fits(self, text: str) -> bool:
        try:
            urlsplit(text)
        except ValueError:
            return False
        return Form.fits(self, text)


class Moment(Form):
    """A time of ISO 8601, or nothing."""

    def fits(self, text: str) -> bool:
        return not text or moment(text) is not None


@dataclass(frozen=True, slots=True)
class Key:
    """One key that may stand in the submitted dictionary, or in an object inside it.

    `longest` counts characters of a text, or of each name of a list. `code` is the split-rule code that the key
    becomes, if it does. `rule` says how: the value itself (`value`), 1 when true (`flag`), or in a way that the
    split-rule module knows (`own`).
    `lines`: a text that may have several lines, such as a command line; or one with a table or a check of its own for what is
    inside. All other texts, also inside of objects, are names and words, and have no control characters.
    `title` and `hint`: what forms and the audit trail call the parameter of an act, and a sentence below its field.
    """

    name: str
    kind: Kind
    meaning: str
    required: bool = False
    nullable: bool = False
    low: float | None = None
    high: float | None = None
    longest: int | None = None
    choices: tuple[str, ...] = ()
    code: str | None = None
    rule: Literal["value", "flag", "own", ""] = ""
    form: Form | None = None
    group: str = ""
    lines: bool = False
    title: str = ""
    hint: str = ""

    def type_title(self) -> str:
        return KIND_TITLES[self.kind] + (", or null" if self.nullable else "")

    def wanted(self) -> str:
        """The same within a sentence, with its article."""
        return f"{_ARTICLES.get(self.kind, 'a ')}{self.type_title()}"


def check_value(key: Key, value: object, where: str, faults: Faults) -> None:
    """Add a fault for each way in which `value` breaks what `key` promises."""
    if value is None:
        if not key.nullable:
            faults.add(where, "not null", f"null is not allowed here; leave the key out or give {key.wanted()}.")
        return
    if key.kind == "text":
        _check_text(key, value, where, faults)
    elif key.kind in ("integer", "number"):
        _check_number(key, value, where, faults)
    elif key.kind == "flag":
        if not isinstance(value, bool) and not (isinstance(value, int) and value in (0, 1)):
            _wrong_type(key, value, where, faults)
    elif key.kind == "names":
        _check_names(key, value, where, faults)
    elif key.kind == "object":
        if not isinstance(value, dict):
            _wrong_type(key, value, where, faults)
    elif key.kind == "items":
        if not isinstance(value, list):
            _wrong_type(key, value, where, faults)
        elif key.required and not value:
            faults.add(where, "not empty", f"This list is empty. Expected {key.wanted()}, at least one.")
    if key.kind in ("any", "object", "items") and not key.lines:
        _check_inside(value, where, faults)


def _check_inside(value: object, where: str, faults: Faults) -> None:
    """Add a fault for each text in a value that is not one line, and for keys that are not."""
    left = [(value, where)]
    while left:
        inner, place = left.pop()
        if isinstance(inner, str) and not is_one_line(inner):
            faults.add(place, "characters", f"{shown(inner)} {NOT_ONE_LINE}.")
        elif isinstance(inner, list):
            left += [(one, f"{place}[{index}]") for index, one in enumerate(inner)]
        elif isinstance(inner, dict):
            for name, one in inner.items():
                if not isinstance(name, str) or is_one_line(name):
                    left.append((one, join_path(place, f"{name}")))
                else:
                    faults.add(place, "characters", f"The key {shown(name)} {NOT_ONE_LINE}.")


def _wrong_type(key: Key, value: object, where: str, faults: Faults) -> None:
    faults.add(where, "type", f"Expected {key.wanted()}, got {_json_type(value)} {shown(value)}.")


def _json_type(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return {"str": "text", "list": "list", "tuple": "list", "dict": "object", "NoneType": "null"}.get(
        type(value).__name__, "value"
    )


def _check_text(key: Key, value: object, where: str, faults: Faults) -> None:
    if not isinstance(value, str):
        _wrong_type(key, value, where, faults)
        return
    _check_characters(key, value, where, faults)
    if key.choices and value not in key.choices:
        faults.add(where, "one of", f"Expected one of {', '.join(key.choices)}; got {shown(value)}.")


def _check_characters(key: Key, value: str, where: str, faults: Faults) -> None:
    if not key.lines and not is_one_line(value):
        faults.add(where, "characters", f"{shown(value)} {NOT_ONE_LINE}.")
    elif key.longest is not None and len(value) > key.longest:
        faults.add(where, "length", f"At most {key.longest} characters are allowed, not {len(value)}.")
    elif key.required and not value.strip():
        faults.add(where, "not empty", "This text must not be empty.")
    elif key.form is not None and not key.form.fits(value):
        faults.add(where, *key.form.fault(value))


def _check_number(key: Key, value: object, where: str, faults: Faults) -> None:
    wanted = int if key.kind == "integer" else (int, float)
    if isinstance(value, bool) or not isinstance(value, wanted):
        _wrong_type(key, value, where, faults)
        return
    if value != value:  # NaN compares with no limit
        faults.add(where, "finite", "This must be a number, and NaN is not one.")
        return
    if key.low is not None and value < key.low:
        faults.add(where, "at least", f"The minimum is {key.low:g}, and this is {value}.")
    if key.high is not None and value > key.high:
        faults.add(where, "at most", f"The maximum is {thousands(int(key.high))}, and this is {thousands(value)}.")


def _check_names(key: Key, value: object, where: str, faults: Faults) -> None:
    if isinstance(value, str):
        names: list[object] = list(split_names(value))
    elif isinstance(value, list):
        names = value
    elif isinstance(value, int) and not isinstance(value, bool):
        names = [str(value)]
    else:
        _wrong_type(key, value, where, faults)
        return
    if len(names) > MOST_NAMES:
        faults.add(where, "length", count_fault(len(names)))
        return
    for index, name in enumerate(names):
        place = f"{where}[{index}]" if isinstance(value, list) else where
        if isinstance(name, int) and not isinstance(name, bool):
            name = str(name)
        if isinstance(name, str):
            _check_characters(key, name, place, faults)
        else:
            faults.add(place, "type", f"Expected a name, got {_json_type(name)} {shown(name)}.")


def count_fault(count: int) -> str:
    """The sentence on a list of more names than `MOST_NAMES`."""
    return f"At most {thousands(MOST_NAMES)} names are allowed, not {thousands(count)}."


def split_names(text: str) -> tuple[str, ...]:
    """The names of a comma text, without blanks and empty pieces."""
    return tuple(piece.strip() for piece in text.split(",") if piece.strip())


def names_of(value: object) -> tuple[str, ...]:
    """The names of a value that `check_value` accepted for a key of kind `names`; none for null."""
    if value is None:
        return ()
    if isinstance(value, str):
        return split_names(value)
    if isinstance(value, list):
        return tuple(str(name) for name in value)
    return (str(value),)
