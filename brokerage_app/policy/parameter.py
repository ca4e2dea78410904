"""What a parameter of the configuration is: its name, type, default, unit and meaning. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

Value = int | float | bool | str | list[Any] | dict[str, Any]

JEDI: Final = "jedi"
PANDA: Final = "pandaserver"
"""The applications that parameters belong to: each component is of one."""


class Type(StrEnum):
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    STR = "str"
    JSON = "json"


WORDS: Final[Mapping[str, Type]] = MappingProxyType(
    {
        "str": Type.STR,
        "string": Type.STR,
        "int": Type.INT,
        "integer": Type.INT,
        "float": Type.FLOAT,
        "bool": Type.BOOL,
        "boolean": Type.BOOL,
        "json": Type.JSON,
    }
)
"""What may stand in the column `type`; another word makes the row undefined."""


class UnknownParameterError(LookupError):
    """Nothing of this component and key, or with so many suffixes, is known."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter.

    app, component, key   its name; the key may be followed by `_` and a suffix for each of `per`, the last ones may lack
    type, default, unit   None is no default: the reader says what it does then
    meaning               what it does, in words
    per                   what the suffixes are: label, share, queue, resource, workflow, working_group, ...
    special               (last suffix, default) where a suffix has a default of its own
    default_words         the default in words, where a value alone does not say it
    least, most           values that people may enter; None is no bound
    choices               the texts that a value may be; () for any
    also                  further spellings of the key that are read when it is not set
    """

    app: str
    component: str
    key: str
    type: Type
    default: Value | None
    unit: str
    meaning: str
    per: tuple[str, ...] = ()
    special: tuple[tuple[str, Value], ...] = ()
    default_words: str = ""
    least: float | None = 0
    most: float | None = None
    also: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The key with what may follow it, such as MIN_WEIGHT[_label[_share]]."""
        return self.key + "".join(f"[_{kind}" for kind in self.per) + "]" * len(self.per)

    @property
    def allowed(self) -> str:
        """What people may enter, in words."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.type not in (Type.INT, Type.FLOAT):
            return {Type.BOOL: "true or false", Type.JSON: "JSON: a list or an object"}.get(self.type, "a text")
        bounds = "".join(
            f" {word} {value:g}" for word, value in (("from", self.least), ("to", self.most)) if value is not None
        )
        return ("a whole number" if self.type == Type.INT else "a number") + bounds

    @property
    def default_said(self) -> str:
        """The default in words, with those of special suffixes."""
        words = self.default_words or _shown(self.default)
        return words + "".join(f", {_shown(value)} for {suffix}" for suffix, value in self.special)

    def default_for(self, suffixes: tuple[str, ...]) -> Value | None:
        if suffixes and self.special:
            return dict(self.special).get(suffixes[-1], self.default)
        return self.default


def _shown(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) and abs(value) < 10**6 else str(value)
