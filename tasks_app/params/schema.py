"""The submitted task dictionary: parsed once, at the door, with every fault found at the same time.

`parse` takes what a client sent and gives a frozen `TaskParams`, or raises `ParamErrors`. Keys are looked up in the
tables of `keys` and `items`; rules that span several keys are in `rules`.

A flag that says false, 0 or null is off. (In PanDA the mere presence of some flags switches them on; no client relies
on it, and it surprises people.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tasks_app.params import not_available, rules
from tasks_app.params.amounts import check_amounts
from tasks_app.params.faults import Faults, FieldError, ParamErrors, join_path, shown
from tasks_app.params.items import ITEM_KEYS, Item, one_or_many, parse_item, parse_items
from tasks_app.params.keys import DS_FOR, DS_FOR_KEY, GROUPS, KEYS, stream_of_ds_for
from tasks_app.params.kinds import Key, check_value, names_of
from tasks_app.params.specs import SPEC_KEYS, check_spec
from tasks_app.params.storable import check_storable

__all__ = ["FieldError", "KeyDescription", "ParamErrors", "TaskParams", "describe", "parse", "sound"]


@dataclass(frozen=True, slots=True)
class TaskParams:
    """A checked dictionary. `raw` is what was submitted; the rest is what later steps ask for, typed.

    `datasets_for` holds the datasets added to streams by `dsFor<STREAM>` keys. `stored`: a task that exists was submitted with
    it, so that rules that span several keys, which may have come since, were not asked.
    """

    raw: Mapping[str, Any]
    items: tuple[Item, ...]
    logs: tuple[Item, ...]
    merge_logs: tuple[Item, ...]
    datasets_for: Mapping[str, tuple[str, ...]]
    stored: bool = False

    def _get(self, name: str, *kinds: str) -> Any:
        if KEYS[name].kind not in kinds:
            raise KeyError(f"{name} is a {KEYS[name].kind}, not a {' or '.join(kinds)}")
        return self.raw.get(name)

    def text(self, name: str, default: str | None = None) -> str | None:
        """A text, or `default` when it is absent, null or empty. Raises KeyError for a name that is no text key."""
        value: str | None = self._get(name, "text")
        return value if value else default

    def whole(self, name: str, default: int | None = None) -> int | None:
        value: int | None = self._get(name, "integer")
        return default if value is None else value

    def number(self, name: str, default: float | None = None) -> float | None:
        value: float | None = self._get(name, "number", "integer")
        return default if value is None else value

    def flag(self, name: str, default: bool = False) -> bool:
        value = self._get(name, "flag")
        return default if value is None else bool(value)

    def names(self, name: str) -> tuple[str, ...]:
        """Names given as a list or a comma text; none when absent."""
        return names_of(self._get(name, "names"))

    def spec(self, name: str) -> Mapping[str, Any] | None:
        """An object such as `mergeSpec`, or None."""
        value: Mapping[str, Any] | None = self._get(name, "object")
        return value

    def given(self, name: str) -> bool:
        """Whether the key is there with a value other than null."""
        return self.raw.get(KEYS[name].name) is not None

    @property
    def task_name(self) -> str:
        return str(self.raw["taskName"])

    @property
    def prod_source_label(self) -> str:
        return str(self.raw["prodSourceLabel"])

    @property
    def task_type(self) -> str:
        return self.text("taskType") or "anal"

    @property
    def vo(self) -> str | None:
        return self.text("vo")

    @property
    def user_name(self) -> str | None:
        return self.text("userName")

    @property
    def architecture(self) -> str | Mapping[str, Any] | None:
        value: str | Mapping[str, Any] | None = self.raw.get("architecture")
        return value or None

    @property
    def events_per_input(self) -> int | None:
        return self.whole("nEventsPerInputFile", self.whole("nEventsPerFile"))

    @property
    def ram_unit(self) -> str | None:
        return self.text("ramUnit", self.text("ramCountUnit"))


@dataclass(frozen=True, slots=True)
class KeyDescription:
    """One key as documentation shows it. `inside` is empty for top-level keys, else the object that holds the key.

    `refused` says why the key is refused here and what to do instead; empty for keys that are accepted.
    """

    inside: str
    group: str
    name: str
    type: str
    required: bool
    meaning: str
    least: float | None
    most: float | None
    longest: int | None
    choices: tuple[str, ...]
    split_rule: str | None
    refused: str


def describe() -> list[KeyDescription]:
    """Every key that may be submitted, in the order of the documentation."""
    top = [_describe(key, "", group) for group, keys in GROUPS for key in keys]
    top.append(_describe(DS_FOR_KEY, "", "steps and items"))
    items = [_describe(key, "item", "items") for key in ITEM_KEYS.values()]
    specs = [_describe(key, spec, "steps") for spec, keys in SPEC_KEYS.items() for key in keys]
    return top + items + specs


_REFUSED = {"": not_available.NOT_AVAILABLE, "item": not_available.ITEMS, **not_available.STEPS}


def _describe(key: Key, inside: str, group: str) -> KeyDescription:
    return KeyDescription(
        inside,
        group,
        key.name,
        key.type_title(),
        key.required,
        key.meaning,
        key.low,
        key.high,
        key.longest,
        key.choices,
        key.code,
        refused.sentence if (refused := _REFUSED.get(inside, {}).get(key.name)) else "",
    )


def parse(raw: object, *, stored: bool = False) -> TaskParams:
    """Check a submitted dictionary, or one that a task is `stored` with: what goes together was decided when it was submitted.

    Raises ParamErrors, and nothing else, whatever JSON (or other Python value) `raw` is.
    """
    faults = Faults()
    if isinstance(raw, dict):
        check_amounts(raw, faults)
        faults.raise_if_any()
    check_storable(raw, faults)
    # What cannot be stored cannot be quoted or measured safely either, so that ends the check.
    faults.raise_if_any()
    if not isinstance(raw, dict):
        faults.add("", "type", f"Task parameters must be an object, not {shown(raw)}.")
        faults.raise_if_any()
    assert isinstance(raw, dict)
    datasets_for = _check_keys(raw, faults)
    params = TaskParams(
        raw=MappingProxyType(dict(raw)),
        items=parse_items(raw.get("jobParameters"), "jobParameters", faults),
        logs=_logs(raw, "log", faults),
        merge_logs=_logs(raw, "log_merge", faults),
        datasets_for=MappingProxyType(datasets_for),
        stored=stored,
    )
    if not stored:
        rules.check_across(params, faults)
    faults.raise_if_any()
    return params


def sound(raw: object, faults: Iterable[FieldError]) -> TaskParams | None:
    """What of a dictionary with these faults can be read: keys and items without any. None when it cannot be looked at."""
    if not isinstance(raw, dict):
        return None
    try:
        check_amounts(raw, rest := Faults())
        rest.raise_if_any()
        check_storable(raw, rest)
        rest.raise_if_any()
        return _sound(raw, faults, rest)
    except ParamErrors:  # nothing of it can be read, or too little
        return None


def _sound(raw: dict[str, Any], faults: Iterable[FieldError], rest: Faults) -> TaskParams:
    wrong = {re.split(r"[.\[]", fault.field, maxsplit=1)[0] for fault in faults} - {"jobParameters", "log", "log_merge"}
    if "prodSourceLabel" in wrong:
        wrong.add("workQueueName")  # whose labels differ
    kept = {name: value for name, value in raw.items() if name not in wrong and name in KEYS}
    return TaskParams(
        raw=MappingProxyType({**_ASSUMED, **kept}),
        items=parse_items(raw.get("jobParameters"), "jobParameters", rest),
        logs=_logs(raw, "log", rest),
        merge_logs=_logs(raw, "log_merge", rest),
        datasets_for=MappingProxyType(
            _check_keys({name: value for name, value in raw.items() if name not in wrong}, rest)
        ),
    )


_OFFERED = (*(name for name in KEYS if name not in not_available.NOT_AVAILABLE), f"{DS_FOR}IN")
"""What may be meant by an unknown name: never a parameter that is refused."""
_ASSUMED = MappingProxyType({"taskName": "", "prodSourceLabel": "user"})


def _check_keys(raw: Mapping[str, Any], faults: Faults) -> dict[str, tuple[str, ...]]:
    datasets_for: dict[str, tuple[str, ...]] = {}
    for name, value in raw.items():
        stream = stream_of_ds_for(name)
        if stream is not None:
            before = len(faults.found)
            check_value(DS_FOR_KEY, value, name, faults)
            if len(faults.found) == before:
                datasets_for[stream] = names_of(value)
        elif name in KEYS:
            check_value(KEYS[name], value, name, faults)
            if name in SPEC_KEYS and isinstance(value, dict):
                check_spec(name, value, faults)
        else:
            faults.add_unknown(name, f"{shown(name)} is not a task parameter", name, _OFFERED)
    for key in KEYS.values():
        if key.required and key.name not in raw:
            faults.add(key.name, "required", f"{key.name} is required: {key.meaning[0].lower()}{key.meaning[1:]}.")
    return datasets_for


def _logs(raw: Mapping[str, Any], name: str, faults: Faults) -> tuple[Item, ...]:
    value = raw.get(name)
    if value is None:
        return ()
    if value == []:
        said = (
            f"This list is empty. Expected one object or a list of at least one; leave {name} out where none is wanted."
        )
        faults.add(name, "not empty", said)
    found: list[Item] = []
    for index, one in enumerate(one_or_many(value)):
        where = f"{name}[{index}]" if isinstance(value, list) else name
        item = parse_item(one, where, faults)
        if item is None:
            continue
        if not item.is_template or item.param_type not in ("log", "output"):
            faults.add(join_path(where, "param_type"), "one of", "A log is a template with param_type log.")
        else:
            found.append(item)
    return tuple(found)
