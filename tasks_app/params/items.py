"""Items of `jobParameters`, `log` and `log_merge`: the table of their keys, their checks, and one frozen value each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from jedisite.vocabulary.patterns import fault_of
from jedisite.vocabulary.words import NOT_ONE_LINE, is_one_line, sentence
from tasks_app.params.faults import Faults, join_path, shown
from tasks_app.params.filelists import why_not_carried
from tasks_app.params.keys import DATASETS, NAME
from tasks_app.params.kinds import NINE_DIGITS, Form, Key, check_value, split_names
from tasks_app.params.not_available import ITEMS
from tasks_app.params.placeholders import serial_width

ParamType = Literal["input", "pseudo_input", "output", "log", "number"]
PARAM_TYPES: tuple[ParamType, ...] = ("input", "pseudo_input", "output", "log", "number")
LONGEST_STREAM = 20
LONGEST_DATASET = 255
LONGEST_FILE_NAME = 255
ATTRIBUTES = Form(r"[\w=,. ]*", "attributes are words such as nosplit or ratio=3, separated by commas")

_FLAGS = {
    "expand": "Use the datasets of the container one by one",
    "hidden": "Leave the item out of the command line",
    "padding": "Put a blank after the value (default: true)",
    "es_only": "For event service only",
    "check": "Check that files agree with the parent task",
    "usedup": "Use duplicated files",
    "random": "Use files in random order",
    "reusable": "Use files again from the start when they run out, and do not count their use; "
    "a closed dataset starts again anyway",
    "indexConsistent": "Use only files whose index is in all datasets",
    "mergeOnly": "For merge jobs only",
    "allowNoOutput": "A job may succeed without this output; a log is always made",
    "pseudo": "The dataset is not in data management",
    "transient": "The dataset is deleted after use",
}


def _key(name: str, kind: Literal["text", "integer", "number", "flag", "any"], meaning: str, **more: Any) -> Key:
    return Key(name, kind, meaning, nullable=more.pop("nullable", True), group="item", **more)


ITEM_KEYS: dict[str, Key] = {
    key.name: key
    for key in (
        _key("type", "text", "constant or template", choices=("constant", "template"), required=True, nullable=False),
        _key("value", "text", "Text with placeholders", longest=200_000, lines=True),
        _key("param_type", "text", "What a template stands for", choices=PARAM_TYPES),
        _key(
            "dataset",
            "text",
            "Dataset, or several separated by commas; containers end with /",
            longest=200_000,
            lines=True,
        ),
        _key("container", "text", "Container of the outputs", longest=132, form=NAME),
        _key("consolidate", "text", "Name of a container: the input is read as one dataset", longest=132, form=NAME),
        _key("token", "text", "Storage token", longest=100),
        _key("destination", "text", "Storage endpoint of the outputs", longest=60),
        _key("offset", "integer", "Files to skip, or where numbers start", low=0, high=10**9),
        _key(
            "attributes",
            "text",
            "Words: nosplit, repeat, ratio=N, distributed, manytime, cvmfs",
            longest=100,
            form=ATTRIBUTES,
        ),
        _key("ratio", "number", "Files for each file of the master", low=0.000001, high=10_000),
        _key("eventRatio", "number", "Events for each event of the master", low=0.000001, high=10_000),
        _key("nFilesPerJob", "integer", "Fixed number of files a job", low=1, high=1000),
        _key("num_records", "integer", "Numbers in the sequence", low=1, high=10**7),
        _key("files", "any", "Use these files only", lines=True),
        _key("include", "text", "Use files that match one of these regular expressions", longest=4000, lines=True),
        _key(
            "exclude", "text", "Leave out files that match one of these regular expressions", longest=4000, lines=True
        ),
        *(_key(name, "flag", meaning) for name, meaning in _FLAGS.items()),
    )
}

_OFFERED = ITEM_KEYS.keys() - ITEMS.keys()
"""What may be meant by an unknown key: never one that is refused."""
_STREAM = re.compile(r"\$\{([^}/\[]*)")
PLACEHOLDER = re.compile(r"\$\{[^{}]*\}|\$(?:JEDITASKID|JOBSETID|PANDAID|ORIGINPANDAID)\b")
PREPROCESSED = re.compile(r"%%[A-Z_]+%%")
"""Stands for what a preprocessing step finds."""
SERIAL = re.compile(r"\$\{SN(?:/P|:[^}]*)?\}|\$PANDAID\b")
# No comma (lists of the pilot's protocol), no slash and no blank (file systems, command lines), no colon (scopes).
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@%#~-]*")

FILE_KEYS = ("lfn", "boundaryID")
"""Keys of a file that an item names by an object."""


@dataclass(frozen=True, slots=True)
class Item:
    """One item. `where` is its path in the dictionary; `raw` the object as submitted."""

    where: str
    type: Literal["constant", "template"]
    value: str
    param_type: ParamType | None
    datasets: tuple[str, ...]
    raw: Mapping[str, Any]

    def flag(self, name: str, default: bool = False) -> bool:
        """Whether a flag of the item is on. Raises KeyError for a name that is no flag."""
        if ITEM_KEYS[name].kind != "flag":
            raise KeyError(name)
        value = self.raw.get(name)
        return default if value is None else bool(value)

    def text(self, name: str) -> str | None:
        value = self.raw.get(ITEM_KEYS[name].name)
        return value if isinstance(value, str) and value else None

    def whole(self, name: str) -> int | None:
        value = self.raw.get(ITEM_KEYS[name].name)
        return value if isinstance(value, int) else None

    def number(self, name: str) -> float | None:
        value = self.raw.get(ITEM_KEYS[name].name)
        return value if isinstance(value, (int, float)) else None

    @property
    def named_files(self) -> dict[str, str]:
        """The files that the item names, without scopes, each with the field that names it first."""
        files = self.raw.get("files")
        found: dict[str, str] = {}
        for index, file in enumerate(files if isinstance(files, list) else ()):
            lfn = str(file.get("lfn") or "") if isinstance(file, dict) else str(file)
            found.setdefault(lfn.rpartition(":")[2], f"{join_path(self.where, 'files')}[{index}]")
        return found

    @property
    def file_groups(self) -> dict[str, list[int]]:
        """The groups (boundaryID) of the files that the item lists, without scopes; nothing when it groups none."""
        files = self.raw.get("files")
        found: dict[str, list[int]] = {}
        for file in files if isinstance(files, list) else ():
            if isinstance(file, dict) and file.get("boundaryID") is not None:
                found.setdefault(str(file["lfn"]).rpartition(":")[2], []).append(int(file["boundaryID"]))
        return {lfn: list(dict.fromkeys(numbers)) for lfn, numbers in found.items()}

    @property
    def is_template(self) -> bool:
        return self.type == "template"

    @property
    def stream(self) -> str | None:
        """Name of the first placeholder of the value: `IN` of `--in=${IN/T}`."""
        match = _STREAM.search(self.value)
        return match[1] if match and match[1] else None

    @property
    def file_name(self) -> str:
        """The file-name template of an output or log: what follows the last `=`, without quotes."""
        return file_name_of(self.value)


def file_name_of(value: str) -> str:
    return value.rpartition("=")[2].strip().strip("\"'")


def parse_item(raw: object, where: str, faults: Faults) -> Item | None:
    """Check one item; None (with faults added) when it cannot be used."""
    if not isinstance(raw, dict):
        faults.add(where, "type", f"Expected an object with type and value, got {shown(raw)}.")
        return None
    before = len(faults.found)
    for name, value in raw.items():
        key = ITEM_KEYS.get(name)
        if key is None:
            faults.add_unknown(join_path(where, name), f"{shown(name)} is not a key of an item", name, _OFFERED)
        else:
            check_value(key, value, join_path(where, name), faults)
    if "type" not in raw:
        faults.add(join_path(where, "type"), "required", "Each item needs a type: constant or template.")
    if len(faults.found) > before:
        return None
    item = Item(
        where=where,
        type=raw["type"],
        value=raw.get("value") or "",
        param_type=raw.get("param_type"),
        datasets=split_names(raw.get("dataset") or ""),
        raw=raw,
    )
    _check_item(item, faults)
    return item if len(faults.found) == before else None


def _check_item(item: Item, faults: Faults) -> None:
    if item.type == "constant":
        if item.raw.get("value") is None:
            faults.add(join_path(item.where, "value"), "required", "A constant needs a value.")
        return
    _check_datasets(item, faults)
    if item.param_type is None:
        faults.add(
            join_path(item.where, "param_type"), "required", f"A template needs one of {', '.join(PARAM_TYPES)} here."
        )
    elif item.param_type in ("output", "log"):
        _check_output(item, faults)
    else:
        _check_stream(item, faults)
    _check_files(item, faults)


def _check_datasets(item: Item, faults: Faults) -> None:
    where = join_path(item.where, "dataset")
    if not item.datasets and item.param_type in ("input", "pseudo_input", "output", "log"):
        faults.add(where, "required", f"A template of type {item.param_type} needs a dataset.")
    if len(item.datasets) > 1 and item.param_type in ("output", "log"):
        faults.add(where, "one", f"An output goes to one dataset, not {len(item.datasets)}.")
    for name in item.datasets:
        if len(name) > LONGEST_DATASET:
            faults.add(where, "length", f"A dataset name has at most {LONGEST_DATASET} characters, not {len(name)}.")
        elif not NAME.fits(name) and PREPROCESSED.fullmatch(name) is None:
            form = DATASETS if item.param_type == "input" else NAME
            faults.add(where, *form.fault(name, "be the name of a dataset"))


def _check_stream(item: Item, faults: Faults) -> None:
    where = join_path(item.where, "value")
    stream = item.stream
    if stream is None:
        if item.param_type != "pseudo_input" or item.value:
            faults.add(
                where, "placeholder", f"A template of type {item.param_type} needs a placeholder such as ${{IN}}."
            )
    elif re.fullmatch(r"\w+", stream) is None:
        faults.add(where, "placeholder", f"{shown(stream)} is not a stream name: use letters, digits and _.")
    elif item.param_type != "number" and len(stream) > LONGEST_STREAM:
        faults.add(where, "length", f"The name in a placeholder has at most {LONGEST_STREAM} characters.")


def _check_output(item: Item, faults: Faults) -> None:
    where = join_path(item.where, "value")
    name = item.file_name
    if name.startswith("regex|"):
        return
    if not name:
        says = f"A template of type {item.param_type} needs a file name here, such as out.${{SN}}.txt"
        faults.add(where, "required", f"{says}; after an =, it is what follows the last one.")
        return
    if (length := len(PLACEHOLDER.sub(_number, name))) > LONGEST_FILE_NAME:
        says = f"A file name has at most {LONGEST_FILE_NAME} characters, and with its numbers this has {length}."
        faults.add(where, "length", says)
    plain = PLACEHOLDER.sub("0", name)
    if _FILE_NAME.fullmatch(plain) is None:
        # A file that begins with - would be an option of most programs, one that begins with a dot is hidden.
        wrong = (
            f"must not begin with {plain[0]!r}: a file name begins with a letter, a digit or _"
            if plain and _FILE_NAME.fullmatch(f"0{plain}")
            else "is not a file name: use only letters, digits and _ . + @ % # ~ -"
        )
        faults.add(where, "file name", f"{shown(name)} {wrong}.")


_DIGITS = {"$JEDITASKID": 8, "$JOBSETID": 8, "$PANDAID": 10}


def _number(placeholder: re.Match[str]) -> str:
    """Digits as the placeholder will have at least: serial numbers have six, or a width of their own."""
    text = placeholder[0]
    width = serial_width(text[:-1].partition(":")[2]) if text.startswith("${SN:") else _DIGITS.get(text, 6)
    return "0" * max(width or 1, 1)


def _check_files(item: Item, faults: Faults) -> None:
    for name in ("include", "exclude"):
        for expression in split_names(item.text(name) or ""):
            if not is_one_line(expression):
                faults.add(join_path(item.where, name), "characters", f"{shown(expression)} {NOT_ONE_LINE}.")
            elif fault := fault_of(expression):
                faults.add(join_path(item.where, name), "regular expression", sentence(fault))
    files = item.raw.get("files")
    if files is None:
        return
    where = join_path(item.where, "files")
    if isinstance(files, str) and PREPROCESSED.fullmatch(files):
        return
    if not isinstance(files, list):
        faults.add(where, "type", f"Expected a list of file names, got {shown(files)}.")
        return
    for index, file in enumerate(files):
        lfn = file.get("lfn") if isinstance(file, dict) else file
        if not isinstance(lfn, str) or not 0 < len(lfn) <= 256:
            faults.add(
                f"{where}[{index}]", "file name", "Expected a name of 1 to 256 characters, or an object with lfn."
            )
        elif not is_one_line(lfn):
            faults.add(f"{where}[{index}]", "characters", f"{shown(lfn)} {NOT_ONE_LINE}.")
        elif bad := why_not_carried(lfn.rpartition(":")[2]):
            faults.add(
                f"{where}[{index}]",
                "file name",
                f"{shown(lfn)} is not the name of a file that a job could read: {bad}.",
            )
        for key in file if isinstance(file, dict) else ():
            if key not in FILE_KEYS:
                where_key = join_path(f"{where}[{index}]", key)
                faults.add_unknown(where_key, f"{shown(key)} is not a key of a file", key, FILE_KEYS)
        boundary = file.get("boundaryID") if isinstance(file, dict) else None
        if boundary is not None and (type(boundary) is not int or not 0 <= boundary <= NINE_DIGITS):
            said = f"A group is a number from 0 to {NINE_DIGITS}, not {shown(boundary)}."
            faults.add(f"{where}[{index}].boundaryID", "groups", said)


def parse_items(raw: object, where: str, faults: Faults) -> tuple[Item, ...]:
    """All items of a list, without those that have faults. Says nothing of a value that is no list."""
    if not isinstance(raw, list):
        return ()
    parsed = [parse_item(one, f"{where}[{index}]", faults) for index, one in enumerate(raw)]
    return tuple(item for item in parsed if item is not None)


def one_or_many(raw: object) -> Sequence[object]:
    """`log` and `log_merge` may be one object or a list of them."""
    return raw if isinstance(raw, list) else [raw]
