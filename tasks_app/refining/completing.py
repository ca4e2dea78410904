"""The submitted dictionary with what a refiner fills in. It is stored back, so that later agents read the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasks_app.params.schema import TaskParams, parse

Raw = dict[str, Any]
ITEM_LISTS = ("log", "log_merge")


def copy_of(params: TaskParams) -> Raw:
    """A dictionary that may be changed; its items are copies too."""
    raw = dict(params.raw)
    raw["jobParameters"] = [dict(item) for item in raw.get("jobParameters") or ()]
    for name in ITEM_LISTS:
        value = raw.get(name)
        if isinstance(value, list):
            raw[name] = [dict(item) for item in value]
        elif isinstance(value, Mapping):
            raw[name] = dict(value)
    return raw


def fill(raw: Raw, **values: Any) -> None:
    """Set keys that are absent or null; values of None are passed over."""
    for name, value in values.items():
        if value is not None and raw.get(name) is None:
            raw[name] = value


def fill_step(raw: Raw, step: str, **values: Any) -> None:
    """Set keys of a step such as buildSpec, if the task has it."""
    if isinstance(raw.get(step), Mapping):
        inner = dict(raw[step])
        fill(inner, **values)
        raw[step] = inner


def completed(params: TaskParams, raw: Raw) -> TaskParams:
    """Checked parameters of a changed dictionary; the same object when nothing changed. Raises ParamErrors."""
    return params if raw == dict(params.raw) else parse(raw, stored=params.stored)
