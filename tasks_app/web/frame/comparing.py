"""Two things side by side: which attributes differ. Pure but for the names of a model's fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Model

HIDDEN: Final = frozenset({"fence", "secret_hash", "locked_by", "locked_time"})
LONGEST: Final = 2000


@dataclass(frozen=True, slots=True)
class Difference:
    """An attribute with its two values as texts."""

    name: str
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class Differences:
    """Attributes that differ, and the names of those that are equal."""

    differ: list[Difference]
    equal: list[str]


def attributes(row: Model) -> dict[str, Any]:
    """The columns of a row by name, without those that only the machinery reads."""
    return {f.name: getattr(row, f.attname) for f in row._meta.concrete_fields if f.name not in HIDDEN}


def flat(value: Any, name: str = "") -> dict[str, Any]:
    """A JSON value as one level: {"a": {"b": [1]}} -> {"a.b.0": 1}."""
    if isinstance(value, Mapping) and value:
        return {k: v for key in value for k, v in flat(value[key], f"{name}.{key}" if name else str(key)).items()}
    if isinstance(value, list) and value:
        return {k: v for i, item in enumerate(value) for k, v in flat(item, f"{name}.{i}").items()}
    return {name: value}


def differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> Differences:
    """What differs between two sets of attributes, in the order in which they come."""
    names = [name for name in dict.fromkeys([*first, *second]) if name]
    differ, equal = [], []
    for name in names:
        one, other = first.get(name), second.get(name)
        if one == other and (name in first) == (name in second):
            equal.append(name)
        else:
            differ.append(Difference(name, _text(one), _text(other)))
    return Differences(differ, equal)


def _text(value: Any) -> str:
    if value is None or value == "":
        return "–"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return str(value)[:LONGEST]
