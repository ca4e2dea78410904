"""Reading and writing a workflow's JSON document: every fault of form at once, each with the path of its field. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields as fields_of
from typing import Any, Final

from jedisite.vocabulary.words import is_one_line, thousands
from tasks_app.params.faults import Faults, join_path, shown
from tasks_app.workflows.rules.definition import (
    Acquisition,
    Binary,
    Definition,
    InputFile,
    Keep,
    Line,
    OutputFile,
    Package,
    Stage,
)
from tasks_app.workflows.rules.document_fields import (
    DATASET,
    FILE_NAME,
    JOB_NAME,
    MOST_FILES_IN_ALL,
    MOST_PACKAGES_IN_ALL,
    NODE,
    ONE_LINE,
    RECORDS,
    VERSION,
    WORD,
    DocumentField,
)

_MADE: Final[Mapping[str, type]] = {
    "workflow": Definition,
    "stage": Stage,
    "line": Line,
    "package": Package,
    "binary": Binary,
    "input": InputFile,
    "output": OutputFile,
}
_ENUMS: Final[Mapping[str, type[Acquisition] | type[Keep]]] = {"acquisition": Acquisition, "keep": Keep}
SAID_OF_PATTERN: Final[Mapping[re.Pattern[str], str]] = {
    FILE_NAME: "a base name has letters, digits and _ . + @ % # ~ -, and begins with a letter, a digit or _",
    WORD: "it has letters, digits and _ . + -, and begins with a letter",
    JOB_NAME: "it has letters, digits and _ . -, and begins with a letter or a digit",
    NODE: "it has letters, digits and _ . : / -, and begins with a letter or a digit",
    DATASET: "it has letters, digits and _ . : / -, and begins with a letter or a digit",
    VERSION: "it has letters, digits and _ . + -",
    ONE_LINE: "it must stand on one line",
}
_LIMITS: Final[Mapping[str, tuple[str, int]]] = {
    "package": ("packages", MOST_PACKAGES_IN_ALL),
    "input": ("files", MOST_FILES_IN_ALL),
    "output": ("files", MOST_FILES_IN_ALL),
}


def an(word: str) -> str:
    return f"{'an' if word[:1] in 'aeiou' else 'a'} {word}"


def read_document(document: object, faults: Faults) -> Definition | None:
    """The definition that a document holds; None when its form has faults, which are added. Raises ParamErrors past the most."""
    before = len(faults.found)
    made = _Reader(faults).record("workflow", document, "")
    return made if len(faults.found) == before and isinstance(made, Definition) else None


def as_document(definition: Definition) -> dict[str, Any]:
    """The document of a definition: what `read_document` makes the same definition of."""
    return _written("workflow", definition)


def _written(kind: str, record: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in RECORDS[kind]:
        if one.checked:
            continue
        value = getattr(record, one.name)
        if one.kind == "records":
            value = [_written(one.of, inner) for inner in value]
        elif one.kind == "texts":
            value = list(value)
        elif one.kind == "counts":
            value = dict(value)
        elif one.kind == "text":
            value = str(value)
        if one.required or value != (list(one.default) if isinstance(one.default, tuple) else one.default):
            found[one.name] = value
    return found


class _Reader:
    """Reads records of the table. Their depth is that of the table, whatever the document holds."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.numbers = {"packages": 0, "files": 0}

    def record(self, kind: str, value: object, where: str) -> Any:
        """The record, or None when it has a fault."""
        if not isinstance(value, Mapping):
            self.faults.add(where, "type", f"Expected an object, got {shown(value)}.")
            return None
        known = {one.name: one for one in RECORDS[kind]}
        before = len(self.faults.found)
        for name in value:
            if name not in known:
                said = f"{shown(name)} is not a field of {an(kind)}"
                self.faults.add_unknown(join_path(where, str(name)[:40]), said, str(name)[:100], known)
        values = {}
        for one in known.values():
            at = join_path(where, one.name)
            if one.name in value:
                read = self._value(one, value[one.name], at)
            elif one.required:
                self.faults.add(at, "required", f"{an(kind).capitalize()} needs {one.name}: {one.meaning}.")
                read = None
            else:
                read = one.default
            if not one.checked:
                values[one.name] = _ENUMS[one.name](read) if one.name in _ENUMS and read is not None else read
        if len(self.faults.found) > before:
            return None
        assert values.keys() == {one.name for one in fields_of(_MADE[kind])}
        return _MADE[kind](**values)

    def _value(self, one: DocumentField, value: object, at: str) -> Any:
        add = self.faults.add
        if one.kind == "records":
            return self._records(one, value, at)
        if one.kind == "texts":
            if not isinstance(value, list | tuple):
                return add(at, "type", f"Expected a list, got {shown(value)}.")
            if len(value) > one.most:
                return add(at, "at most", f"At most {one.most} are allowed, not {thousands(len(value))}.")
            return tuple(self._text(one, inner, f"{at}[{n}]") for n, inner in enumerate(value))
        if one.kind == "counts":
            return self._counts(one, value, at)
        if one.kind == "flag":
            return value if isinstance(value, bool) else add(at, "type", f"Expected true or false, got {shown(value)}.")
        if one.kind == "number":
            return self._number(one, value, at)
        return self._text(one, value, at)

    def _records(self, one: DocumentField, value: object, at: str) -> tuple[Any, ...] | None:
        if not isinstance(value, list | tuple):
            self.faults.add(at, "type", f"Expected a list, got {shown(value)}.")
            return None
        if one.required and not value:
            self.faults.add(at, "at least", f"It is empty, and at least one {one.of} is needed.")
        if len(value) > one.most:
            said = f"At most {thousands(one.most)} are allowed, not {thousands(len(value))}."
            self.faults.add(at, "at most", said)
            return None
        if one.of in _LIMITS:
            what, most = _LIMITS[one.of]
            self.numbers[what] += len(value)
            if self.numbers[what] > most:
                said = f"With these the workflow has more than {thousands(most)} {what}: divide it among several workflows."
                self.faults.add(at, "at most", said)
                return None
        found = []
        for number, inner in enumerate(value, 1):
            where = f"{at}[{number - 1}]"
            found.append(self.record(one.of, inner, where))
            given = inner.get("number") if isinstance(inner, Mapping) else None
            if isinstance(given, int) and not isinstance(given, bool) and given != number:
                lacks = f": {one.of} {number} is missing" if given > number else ""
                said = f"This is {one.of} {number}, and it says that it is {given}{lacks}."
                self.faults.add(f"{where}.number", "in order", said)
        return tuple(found)

    def _counts(self, one: DocumentField, value: object, at: str) -> dict[str, int] | None:
        if not isinstance(value, Mapping) or len(value) > one.most:
            self.faults.add(at, "type", f"Expected an object with at most {one.most} reasons, got {shown(value)}.")
            return None
        found = {}
        for name, number in value.items():
            if not isinstance(name, str) or not 0 < len(name) <= 100 or not is_one_line(name):
                self.faults.add(at, "length", "A reason is a text of 1 to 100 characters on one line.")
            else:
                found[name] = self._number(one, number, f"{at}.{name}")
        return found

    def _number(self, one: DocumentField, value: object, at: str) -> Any:
        if isinstance(value, bool) or not isinstance(value, int):
            return self.faults.add(at, "type", f"Expected a whole number, got {shown(value)}.")
        if not one.low <= value <= one.high:
            said = f"Expected {thousands(one.low)} to {thousands(one.high)}, got {shown(value)}."
            return self.faults.add(at, "between", said)
        return value

    def _text(self, one: DocumentField, value: object, at: str) -> Any:
        if not isinstance(value, str):
            return self.faults.add(at, "type", f"Expected a text, got {shown(value)}.")
        if one.choices:
            if value not in one.choices:
                return self.faults.add_unknown(
                    at, f"{shown(value)} is no {one.name}", value[:100], one.choices, "one of"
                )
            return value
        if len(value) > one.longest:
            return self.faults.add(at, "length", f"At most {one.longest} characters are allowed, not {len(value)}.")
        if one.pattern.fullmatch(value) is None:
            said = f"{shown(value)} cannot be {an(one.name)}: {SAID_OF_PATTERN[one.pattern]}."
            return self.faults.add(at, "form", said)
        return value
