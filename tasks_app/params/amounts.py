"""How much may be in a submitted dictionary. What is far too much is refused by its number, before each part of it is looked
at: a submission keeps others waiting. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from jedisite.vocabulary.words import thousands
from tasks_app.params.faults import Faults
from tasks_app.params.keys import KEYS, stream_of_ds_for
from tasks_app.params.kinds import MOST_NAMES, count_fault

MOST_ITEMS: Final = 5000
MOST_TEMPLATES: Final = 250
"""Of inputs, outputs and logs: each is a dataset or more, which the refiner and the feeder look at one by one."""
MOST_KEYS: Final = 1000
"""Of a task, or of an item: far more than there are, with all dsFor<STREAM>."""
MOST_FILES: Final = 100_000
"""That the items of a task name, each as often as it is named."""
MOST_DATASETS: Final = MOST_NAMES
"""That the items of a task name, or its dsFor<STREAM>."""
MOST_PATTERNS: Final = 1000
"""Of files to take or leave out, in all items of a task: each is compiled."""
MOST_PLACEHOLDERS: Final = 10_000
"""In the command line of a task, with what is the shell's: each is compiled, and filled for every job."""
_LISTS: Final = ("jobParameters", "log", "log_merge")
_DIVIDE: Final = "Divide the work among several tasks."


def check_amounts(raw: Mapping[Any, Any], faults: Faults) -> None:
    """Add a fault for each part of the dictionary that is far too much."""
    if len(raw) > MOST_KEYS:
        faults.add("", "length", f"A task has at most {MOST_KEYS} parameters, not {thousands(len(raw))}.")
        return
    for name in _LISTS:
        _check_items(name, raw.get(name), faults)
    if faults:
        return
    _check_contents(raw, faults)
    for name, value in raw.items():
        if isinstance(value, dict) and len(value) > MOST_NAMES:
            said = f"An object has at most {thousands(MOST_NAMES)} keys, not {thousands(len(value))}."
            faults.add(name, "length", said)
        elif isinstance(value, list) and len(value) > MOST_NAMES and name in KEYS and KEYS[name].kind == "names":
            faults.add(name, "length", count_fault(len(value)))


def _check_items(name: str, value: object, faults: Faults) -> None:
    if isinstance(value, list) and len(value) > MOST_ITEMS:
        faults.add(name, "length", f"At most {MOST_ITEMS} items are allowed, not {thousands(len(value))}.")
        return
    templates = 0
    for where, item in _items(name, value):
        templates += item.get("type") == "template"
        if len(item) > MOST_KEYS:
            faults.add(where, "length", f"An item has at most {MOST_KEYS} keys, not {len(item)}.")
    if templates > MOST_TEMPLATES:
        said = f"A task has at most {MOST_TEMPLATES} templates of inputs and outputs, not {templates}."
        faults.add(name, "length", f"{said} {_DIVIDE}")


def _items(name: str, value: object) -> Iterator[tuple[str, dict[Any, Any]]]:
    """The objects of a list of items, or the only one, with their places."""
    for index, one in enumerate(value if isinstance(value, list) else [value]):
        if isinstance(one, dict):
            yield (f"{name}[{index}]" if isinstance(value, list) else name), one


def _check_contents(raw: Mapping[Any, Any], faults: Faults) -> None:
    """A fault for the item, or the parameter, with which names of files, datasets or patterns become too many."""
    files = datasets = patterns = placeholders = 0
    for name in _LISTS:
        for where, item in _items(name, raw.get(name)):
            files += len(named) if isinstance(named := item.get("files"), list) else 0
            datasets += _pieces(item.get("dataset"))
            patterns += _pieces(item.get("include")) + _pieces(item.get("exclude"))
            placeholders += value.count("${") if isinstance(value := item.get("value"), str) else 0
            if placeholders > MOST_PLACEHOLDERS:
                said = (
                    f"The items of a task have at most {thousands(MOST_PLACEHOLDERS)} placeholders, not "
                    f"{thousands(placeholders)}."
                )
                faults.add(f"{where}.value", "length", said)
                return
            if files > MOST_FILES:
                said = (
                    f"The items of a task name at most {thousands(MOST_FILES)} files, and these are {thousands(files)}"
                )
                faults.add(f"{where}.files", "length", f"{said}. {_DIVIDE}")
                return
            if patterns > MOST_PATTERNS:
                key = "include" if item.get("include") else "exclude"
                said = f"A task has at most {MOST_PATTERNS} file patterns, not {patterns}."
                faults.add(f"{where}.{key}", "length", said)
                return
            if datasets > MOST_DATASETS:
                faults.add(f"{where}.dataset", "length", _too_many_datasets(datasets))
                return
    for key, value in raw.items():
        if isinstance(key, str) and stream_of_ds_for(key) is not None:
            datasets += _pieces(value)
            if datasets > MOST_DATASETS:
                faults.add(key, "length", _too_many_datasets(datasets))
                return


def _too_many_datasets(count: int) -> str:
    return f"The inputs of a task name at most {thousands(MOST_DATASETS)} datasets, and these are {thousands(count)}. {_DIVIDE}"


def _pieces(value: object) -> int:
    """How many names a list or a comma text may have."""
    return len(value) if isinstance(value, list) else value.count(",") + 1 if isinstance(value, str) else 0
