"""The JSON document of a workflow: the fields of each record. The reader and the JSON Schema follow this table. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from tasks_app.workflows.rules.definition import Acquisition, Keep

FILE_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@%#~-]*")
WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]*")
JOB_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
NODE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/-]*")
DATASET: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.:/-]*)?")
VERSION: Final = re.compile(r"[A-Za-z0-9_.+-]*")
ONE_LINE: Final = re.compile(r"[^\x00-\x1f\x7f\x85\u2028\u2029]*")
ANYTHING: Final = re.compile("")

MOST_STAGES: Final = 100
MOST_LINES: Final = 10_000
MOST_PACKAGES: Final = 100
MOST_BINARIES: Final = 50
MOST_FILES: Final = 1000
MOST_PACKAGES_IN_ALL: Final = 10_000
MOST_FILES_IN_ALL: Final = 100_000
LONGEST_COMMAND: Final = 4000

Kind = Literal["text", "flag", "number", "texts", "counts", "records"]


@dataclass(frozen=True, slots=True)
class DocumentField:
    """One field of a record. `pattern` and `longest` are for texts, `low` and `high` for numbers, `most` and `of` for lists.

    A field without `default` is required. `checked` says that the value has no place in the record: it is compared only.
    """

    name: str
    kind: Kind
    meaning: str
    default: Any = None
    required: bool = False
    pattern: re.Pattern[str] = ANYTHING
    longest: int = 0
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = 0
    most: int = 0
    of: str = ""
    checked: bool = False


def _text(name: str, meaning: str, pattern: re.Pattern[str], longest: int, *, required: bool = False) -> DocumentField:
    return DocumentField(name, "text", meaning, "", required=required, pattern=pattern, longest=longest)


def _choice(name: str, meaning: str, choices: type[Acquisition] | type[Keep], default: str) -> DocumentField:
    return DocumentField(name, "text", meaning, default, choices=tuple(one.value for one in choices))


def _flag(name: str, meaning: str, default: bool) -> DocumentField:
    return DocumentField(name, "flag", meaning, default)


def _number(name: str, meaning: str, high: int, default: int = 0, low: int = 0) -> DocumentField:
    return DocumentField(name, "number", meaning, default, low=low, high=high)


def _records(name: str, meaning: str, of: str, most: int, *, required: bool = True) -> DocumentField:
    return DocumentField(name, "records", meaning, (), required=required, most=most, of=of)


_PLACE: Final = "its place in the record above, counted from 1; it may be left out, and is compared when it is given"

RECORDS: Final[Mapping[str, tuple[DocumentField, ...]]] = {
    "workflow": (
        _text("name", "the job's name", JOB_NAME, 100, required=True),
        _text("originator", "who is told of failures", ONE_LINE, 128),
        _number("priority", "larger runs first", 100_000, low=-100_000),
        _flag("hold", "nothing is scheduled until it is resumed", False),
        DocumentField("restarts", "counts", "restarts for each reason of failure", {}, most=100, high=100),
        _records("stages", "segments of different parallelism", "stage", MOST_STAGES),
    ),
    "stage": (
        DocumentField("number", "number", _PLACE, low=1, high=MOST_STAGES, checked=True),
        _records("lines", "independent sequences of packages", "line", MOST_LINES),
    ),
    "line": (
        DocumentField("number", "number", _PLACE, low=1, high=MOST_LINES, checked=True),
        _flag("early_start", "its first package does not wait for its inputs", False),
        _records("packages", "what runs one after another", "package", MOST_PACKAGES),
    ),
    "package": (
        DocumentField("number", "number", _PLACE, low=1, high=MOST_PACKAGES, checked=True),
        _text("script", "the start of the command that runs its binaries", ONE_LINE, LONGEST_COMMAND),
        DocumentField("nodes", "texts", "it runs on one of these only", (), pattern=NODE, longest=100, most=1000),
        DocumentField("not_nodes", "texts", "it runs on none of these", (), pattern=NODE, longest=100, most=1000),
        _flag("notify", "each failure is told to the originator", True),
        _records("binaries", "the programs that run in it, in order", "binary", MOST_BINARIES),
    ),
    "binary": (
        _text("software", "name of the program", WORD, 60, required=True),
        _text("version", "version of the program", VERSION, 60),
        _text("run", "command line", ONE_LINE, LONGEST_COMMAND),
        _flag("sam", "it needs a SAM station", False),
        _number("cpu_percent", "share of a core that it uses", 100, default=99),
        _number("work_mb", "size of its work files in MB", 10_000_000),
        _number("run_time_s", "expected run time in seconds", 10_000_000),
        _records("inputs", "files that it reads", "input", MOST_FILES, required=False),
        _records("outputs", "files that it writes", "output", MOST_FILES, required=False),
    ),
    "input": (
        _text("name", "base name of the file", FILE_NAME, 150, required=True),
        _choice("acquisition", "how it comes to the binary", Acquisition, Acquisition.NONE),
        _choice("keep", "what becomes of it when nobody needs it", Keep, Keep.DELETABLE),
        _text("dataset", "where it is found, if no package writes it", DATASET, 255),
        _number("size_mb", "expected size in MB", 1_000_000_000),
    ),
    "output": (
        _text("name", "base name of the file", FILE_NAME, 150, required=True),
        _flag("forward", "other packages may read it", True),
        _flag("store", "it is put into permanent storage", False),
        _choice("keep", "what becomes of it when nobody needs it", Keep, Keep.RETAIN),
        _number("size_mb", "expected size in MB", 1_000_000_000),
    ),
}


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a workflow's document."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Workflow",
        **_schema_of("workflow"),
        "$defs": {kind: _schema_of(kind) for kind in RECORDS if kind != "workflow"},
    }


def _schema_of(kind: str) -> dict[str, Any]:
    fields = RECORDS[kind]
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [one.name for one in fields if one.required],
        "properties": {one.name: {**_values_of(one), "description": one.meaning} for one in fields},
    }


def _values_of(one: DocumentField) -> dict[str, Any]:
    if one.kind == "records":
        least = {"minItems": 1} if one.required else {}
        return {"type": "array", "items": {"$ref": f"#/$defs/{one.of}"}, "maxItems": one.most, **least}
    if one.kind == "texts":
        return {"type": "array", "items": _text_schema(one), "maxItems": one.most}
    if one.kind == "counts":
        values = {"type": "integer", "minimum": one.low, "maximum": one.high}
        return {"type": "object", "additionalProperties": values, "maxProperties": one.most}
    if one.kind == "flag":
        return {"type": "boolean", "default": one.default}
    if one.kind == "number":
        default = {} if one.checked else {"default": one.default}
        return {"type": "integer", "minimum": one.low, "maximum": one.high, **default}
    if one.choices:
        return {"type": "string", "enum": list(one.choices), "default": one.default}
    return {**_text_schema(one), **({} if one.required else {"default": one.default})}


def _text_schema(one: DocumentField) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^{one.pattern.pattern}$", "maxLength": one.longest}
