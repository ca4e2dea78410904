"""What the tests of the payloads have in common."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from subprocess import CompletedProcess
from types import ModuleType
from typing import Any

TRANSFORMS = Path(__file__).resolve().parents[2] / "tasks_app" / "transforms"
Run = Callable[..., "CompletedProcess[str]"]


def load(name: str) -> ModuleType:
    """A transform as a module; nothing is written beside it."""
    spec = spec_from_loader(name, SourceFileLoader(name, str(TRANSFORMS / name)))
    assert spec and spec.loader
    module = module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


def read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text())
    return content
