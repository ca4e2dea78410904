"""The configuration of the brokers and agents: rows of gdp_config as one frozen value, read by name. Pure.

    configuration.get("jobbroker", "MIN_WEIGHT", "managed", "MC 16 simul", vo="atlas")

gives the value of MIN_WEIGHT_managed_MC 16 simul of the VO atlas, else that of no VO, else MIN_WEIGHT_managed, else MIN_WEIGHT,
else the default of the parameter (JEDI brokerage document, GDP configuration). Verdicts are stored with the
configuration they were made under, and can be made again under another one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

from brokerage_app.policy.parameter import WORDS, Parameter, Type, UnknownParameterError, Value
from brokerage_app.policy.parameters import PARAMETERS, known, nearest, parse_key

__all__ = [
    "DEFAULTS",
    "PARAMETERS",
    "Configuration",
    "Level",
    "Leveled",
    "Parameter",
    "Row",
    "Source",
    "Type",
    "UnknownParameterError",
    "problem_of",
]


class Row(NamedTuple):
    """One row of gdp_config. `vo` is empty for a row of all VOs; `value_json` is text."""

    app: str
    component: str
    key: str
    value: str = ""
    type: str = "str"
    vo: str = ""
    value_json: str = ""


class Source(NamedTuple):
    """Where a value comes from: the row, or None for the default of the parameter."""

    value: Any
    row: Row | None

    @property
    def words(self) -> str:
        if self.row is None:
            return "default"
        return f"{self.row.key} of {self.row.vo}" if self.row.vo else self.row.key


class Level(StrEnum):
    """What a limit of the throttler is compared with."""

    RESOURCE = "resource type"
    CORES = "core class"
    QUEUE = "whole queue"


class Leveled(NamedTuple):
    """A limit of the throttler with the level at which it was found, and the key, with the VO where it is set for one only.

    `value` is None, at the level of the resource type, when it is not set.
    """

    value: int | None
    level: Level
    key: str = ""


@dataclass(frozen=True)
class Configuration:
    """Rows of the configuration. Rows with an unknown name, or a value of the wrong type, are kept but count as not set."""

    rows: tuple[Row, ...] = ()
    _values: dict[tuple[str, str, str], tuple[Value, Row]] = field(init=False, repr=False, compare=False)
    _asked: dict[tuple[Any, ...], Source] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(sorted(self.rows)))
        found = ((row, value) for row in self.rows if (value := _typed(row)) is not None)
        index = {(f"{r.component}/{r.app}", r.key, r.vo): (v, r) for r, v in found}
        object.__setattr__(self, "_values", index)
        object.__setattr__(self, "_asked", {})

    def get(self, component: str, key: str, *suffixes: str | None, vo: str | None = "") -> Any:
        """The value for the most specific key that is set, for the VO before that of all, else the default.

        Suffixes that are empty at the end are left out. Raises UnknownParameterError for a name that is not in PARAMETERS.
        """
        return self.source(component, key, *suffixes, vo=vo).value

    def source(self, component: str, key: str, *suffixes: str | None, vo: str | None = "") -> Source:
        """The same with the row that gave it."""
        asked = (component, key, suffixes, vo)
        answer = self._asked.get(asked)  # brokers ask the same of each queue
        if answer is None:
            answer = self._look_up(component, key, suffixes, vo)
            if answer.row is None or not answer.row.value_json:
                self._asked[asked] = answer
        return answer

    def _look_up(self, component: str, key: str, suffixes: tuple[str | None, ...], vo: str | None) -> Source:
        given = _trimmed(suffixes)
        parameter = known(component, key, len(given))
        found = self._first(parameter, _keys(parameter, given), vo or "")
        if found is not None:
            return found
        return Source(parameter.default_for(given), None)

    def is_set(self, component: str, key: str, *suffixes: str | None, vo: str | None = "") -> bool:
        """Whether a row gives the value, not the default."""
        return self.source(component, key, *suffixes, vo=vo).row is not None

    def leveled(self, component: str, key: str, queue: str, resource: str, *, vo: str | None = "") -> Leveled:
        """A limit of the throttler: for the resource type, then its core class (MCORE* or SCORE*), then the whole queue.

        `resource` is the name of a resource type; empty asks for the whole queue only.
        """
        parameter = known(component, key, 2)
        steps = [(f"{key}_{queue}_{resource}", Level.RESOURCE)] if resource else []
        steps += [(f"{key}_{queue}_{c}*", Level.CORES) for c in ("MCORE", "SCORE") if resource.startswith(c)]
        steps += [(f"{key}_{queue}", Level.QUEUE), (key, Level.QUEUE)]
        for name, level in steps:
            found = self._first(parameter, [name], vo or "")
            if found is not None:
                return Leveled(found.value, level, found.words)
        return Leveled(None, Level.RESOURCE)

    def variants(self, component: str, key: str) -> list[tuple[str, str]]:
        """For each row that sets a parameter what follows the key, as one text, and the VO; in the order of both."""
        parameter = known(component, key)
        rows = (name for name in self._values if name[0] == _place(parameter))
        parsed = ((parse_key(component, stored), vo) for _, stored, vo in rows)
        return sorted({(found[1], vo) for found, vo in parsed if found is not None and found[0] is parameter})

    def having(self, *rows: Row) -> Configuration:
        """This configuration with rows in the place of those of the same name and VO."""
        new = {_identity(row): row for row in (*self.rows, *rows)}
        return Configuration(tuple(new.values()))

    def with_value(self, component: str, key: str, value: Value | None, *, vo: str = "") -> Configuration:
        """This configuration with one value: `key` with its suffixes, as it is stored; None takes the row away.

        Raises UnknownParameterError, and ValueError for a value that is not of the parameter's type.
        """
        parsed = parse_key(component, key)
        if parsed is None:
            raise UnknownParameterError(f"there is no parameter {key} of {component}; {nearest(component, key)}")
        parameter = parsed[0]
        row = row_of(parameter, key, value, vo=vo)
        if value is None:
            return Configuration(tuple(r for r in self.rows if _identity(r) != _identity(row)))
        if _typed(row) is None:
            raise ValueError(f"{value!r} is not of the type {parameter.type.value}, which {parameter.key} has")
        return self.having(row)

    def faults(self) -> Iterator[tuple[Row, str]]:
        """Rows that count as not set, with the sentence why."""
        for row in self.rows:
            problem = problem_of(row.app, row.component, row.key, row.value, row.type, row.value_json)
            if problem is not None:
                yield row, problem[1]

    def as_json(self) -> list[list[str]]:
        """The rows as JSON takes them; `from_json` makes the same configuration of it."""
        return [list(row) for row in self.rows]

    @classmethod
    def from_json(cls, rows: Iterable[Sequence[str]]) -> Configuration:
        return cls(tuple(Row(*row) for row in rows))

    def _first(self, parameter: Parameter, keys: Iterable[str], vo: str) -> Source | None:
        place = _place(parameter)
        for key in keys:
            for of in (vo, "") if vo else ("",):
                found = self._values.get((place, key, of))
                if found is not None:
                    value, row = found
                    return Source(json.loads(row.value_json) if parameter.type == Type.JSON else value, row)
        return None


def _place(parameter: Parameter) -> str:
    return f"{parameter.component}/{parameter.app}"


def _identity(row: Row) -> tuple[str, str, str, str]:
    return row.app, row.component, row.key, row.vo


def _trimmed(suffixes: Sequence[str | None]) -> tuple[str, ...]:
    given = [suffix or "" for suffix in suffixes]
    while given and not given[-1]:
        given.pop()
    return tuple(given)


def _keys(parameter: Parameter, suffixes: tuple[str, ...]) -> Iterator[str]:
    """Stored keys to try, the most specific first, each in all its spellings."""
    for length in range(len(suffixes), -1, -1):
        for spelling in (parameter.key, *parameter.also):
            yield "_".join((spelling, *suffixes[:length]))


def row_of(parameter: Parameter, key: str, value: Value | None, *, vo: str = "") -> Row:
    """The row that sets a value."""
    is_json = parameter.type == Type.JSON
    return Row(
        parameter.app,
        parameter.component,
        key,
        "" if is_json or value is None else str(value),
        parameter.type.value,
        vo,
        json.dumps(value) if is_json else "",
    )


def _typed(row: Row) -> Value | None:
    """The value of a row as its parameter has it; None when the row means nothing or does not convert."""
    parsed = parse_key(row.component, row.key)
    if parsed is None or parsed[0].app != row.app:
        return None
    return _converted(parsed[0], row.value, row.type, row.value_json)


def _converted(parameter: Parameter, value: str, type: str, value_json: str) -> Value | None:
    stored = WORDS.get(type)
    try:
        if stored == Type.JSON:
            found: Value = json.loads(value_json)
        elif stored == Type.INT:
            found = int(value)
        elif stored == Type.FLOAT:
            found = float(value)
        elif stored == Type.BOOL:
            found = value.strip().lower() == "true"
        elif stored == Type.STR:
            found = value
        else:
            return None
    except ValueError:
        return None
    return _fitting(parameter.type, found)


def _fitting(wanted: Type, value: Any) -> Value | None:
    """A value as the parameter's type, when nothing is lost by it."""
    if wanted == Type.JSON:
        return value if isinstance(value, list | dict) else None
    if wanted in (Type.STR, Type.BOOL):
        return value if isinstance(value, str if wanted == Type.STR else bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if wanted == Type.FLOAT:
        return float(value)
    return int(value) if value == int(value) else None


def problem_of(
    app: str, component: str, key: str, value: str, type: str, value_json: str = ""
) -> tuple[str, str] | None:
    """What is wrong with a row that somebody wants to store: the column, and a sentence; None when nothing is."""
    parsed = parse_key(component, key)
    if parsed is None:
        where = "key" if known_component(component) else "component"
        what = f"there is no parameter {key} of {component}" if where == "key" else f"there is no component {component}"
        return where, f"{what}; {nearest(component, key)}"
    parameter = parsed[0]
    if app != parameter.app:
        return "app", f"{parameter.key} belongs to {parameter.app}, not to {app}"
    if type not in WORDS:
        return "type", f"{type} is not a type; {parameter.key} is of the type {parameter.type.value}"
    column = "value_json" if WORDS[type] == Type.JSON else "value"
    found = _converted(parameter, value, type, value_json)
    if found is None:
        text = value_json if column == "value_json" else value
        return column, f"{text!r} as {type} is not of the type {parameter.type.value}, which {parameter.key} has"
    if WORDS[type] == Type.BOOL and value.strip().lower() not in ("true", "false"):
        return column, f"{parameter.key} is true or false, not {value!r}"
    return _out_of_bounds(parameter, found, column)


def _out_of_bounds(parameter: Parameter, value: Value, column: str) -> tuple[str, str] | None:
    if parameter.choices and value not in parameter.choices:
        return column, f"{parameter.key} is {parameter.allowed}, not {value!r}"
    if parameter.type not in (Type.INT, Type.FLOAT) or not isinstance(value, int | float):
        return None
    unit = f" {parameter.unit}" if parameter.unit else ""
    if parameter.least is not None and value < parameter.least:
        return column, f"{parameter.key} is at least {parameter.least:g}{unit}; this is {value:g}"
    if parameter.most is not None and value > parameter.most:
        return column, f"{parameter.key} is at most {parameter.most:g}{unit}; this is {value:g}"
    return None


def known_component(component: str) -> bool:
    return any(parameter.component == component for parameter in PARAMETERS)


DEFAULTS: Final = Configuration()
"""What holds when nothing is set."""
