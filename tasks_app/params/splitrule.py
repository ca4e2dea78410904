"""The split rule: a task's options packed into one column as two-letter codes, `NF=10,US=2,AN=2,3`.

`SplitRule` is the parsed, frozen form; `CODES` says what each code means and what its value may be. A flag is on when
its code is there with any digits, so `XX=0` is on as well, except for the codes of `NEEDS_MORE_THAN_ZERO`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from tasks_app.params.split_codes import CODES, FORGOTTEN, NEEDS_MORE_THAN_ZERO

_VALUES: dict[Literal["int", "flag", "enum", "signed", "text", "fields", "rules"], re.Pattern[str]] = {
    "int": re.compile(r"\d{1,18}"),
    "flag": re.compile(r"\d{1,9}"),
    "enum": re.compile(r"\d{1,2}"),
    "signed": re.compile(r"-?\d{1,18}"),
    "text": re.compile(r"[^,=]{1,64}"),
    "fields": re.compile(r"\d{1,4}(?:,\d{1,4})*"),
    "rules": re.compile(r"[A-Z]{2}:\d{1,18}(?:\|[A-Z]{2}:\d{1,18})*"),
}


class SplitRuleError(ValueError):
    """A split rule, or one value of it, cannot be read; the message names the piece."""


@dataclass(frozen=True, slots=True)
class SplitRule:
    """Values by code, in the order in which they were set. `str(rule)` is the form for the column."""

    values: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def parse(cls, text: str | None) -> SplitRule:
        """Read the column. None and the empty text are the empty rule. Raises SplitRuleError."""
        values: dict[str, str] = {}
        last = ""
        for piece in text.split(",") if text else ():
            code, equals, value = piece.partition("=")
            if not equals and piece.isdecimal() and last == "AN":
                values["AN"] = _checked("AN", f"{values['AN']},{piece}")
                continue
            if not equals:
                raise SplitRuleError(f"{piece!r} in the split rule is not of the form XX=value.")
            if code in FORGOTTEN:
                continue
            if code in values:
                raise SplitRuleError(f"{code} is twice in the split rule.")
            values[code] = _checked(code, value)
            last = code
        return cls(MappingProxyType(values))

    def __str__(self) -> str:
        return ",".join(f"{code}={value}" for code, value in self.values.items())

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __contains__(self, code: object) -> bool:
        return code in self.values

    def __hash__(self) -> int:
        return hash(str(self))

    def get_int(self, code: str) -> int | None:
        """The number of a code, or None. Raises KeyError for a code that does not exist."""
        if CODES[code].kind in ("text", "fields", "rules"):
            raise KeyError(f"{code} is no number")
        value = self.values.get(code)
        return None if value is None else int(value)

    def flag(self, code: str) -> bool:
        """Whether the code is on."""
        value = self.get_int(code)
        return value is not None and (value > 0 or code not in NEEDS_MORE_THAN_ZERO)

    def get_str(self, code: str) -> str | None:
        """The value of a code as text, or None."""
        return self.values.get(CODES[code].code)

    @property
    def name_fields(self) -> tuple[int, ...]:
        """AN: fields of the input's name, counted from 1, that go into output names."""
        value = self.values.get("AN")
        return tuple(int(piece) for piece in value.split(",")) if value else ()

    @property
    def before_retries(self) -> SplitRule:
        """RM: the values that the retry rules keep from before they changed them."""
        value = self.values.get("RM")
        pairs = (piece.split(":") for piece in value.split("|")) if value else ()
        return SplitRule(MappingProxyType({code: number for code, number in pairs}))

    def having(self, code: str, value: int | str | bool) -> SplitRule:
        """A rule with this value, in the place of the old one if there was any. Raises SplitRuleError."""
        text = str(int(value)) if isinstance(value, bool) else str(value)
        return SplitRule(MappingProxyType({**self.values, code: _checked(code, text)}))

    def without(self, *codes: str) -> SplitRule:
        return SplitRule(MappingProxyType({c: v for c, v in self.values.items() if c not in codes}))

    def files_per_job(self) -> int | None:
        """NF; with dynamic numbers of events it counts event ranges: NF × (EI ÷ DY) when EI is larger than DY."""
        files, smallest, in_file = self.get_int("NF"), self.get_int("DY"), self.get_int("EI")
        if files is not None and smallest and in_file and in_file > smallest:
            return files * (in_file // smallest)
        return files


def _checked(code: str, value: str) -> str:
    spec = CODES.get(code)
    if spec is None:
        raise SplitRuleError(f"{code!r} is not a code of the split rule.")
    if _VALUES[spec.kind].fullmatch(value) is None or not value.isascii():
        raise SplitRuleError(f"{value!r} is not a value for {code} ({spec.meaning}).")
    if spec.values and int(value) not in spec.values:
        raise SplitRuleError(f"{code} ({spec.meaning}) takes {', '.join(map(str, spec.values))}, not {value}.")
    return value
