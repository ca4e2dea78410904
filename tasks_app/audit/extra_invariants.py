"""Invariants of apps above this one: modules with `ROWS` of (name, sentence, query), which they name here when they are ready."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

_names: list[str] = []


def register(module: str) -> None:
    """The rows of the module of this dotted name belong to the audit. It is imported when there is one."""
    if module not in _names:
        _names.append(module)


def modules() -> list[ModuleType]:
    """The modules that are registered."""
    return [import_module(name) for name in _names]
