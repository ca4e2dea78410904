"""Values of brokerage as JSON and back: what is stored is decided again exactly as it was."""

from __future__ import annotations

import json
import zlib
from collections.abc import Set
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

from cattrs import Converter

from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.snapshot import Grid

Value = TypeVar("Value")


@cache
def _converter() -> Converter:
    # Left out defaults: most fields of most queues say nothing.
    converter = Converter(omit_if_default=True, forbid_extra_keys=True, unstruct_collection_overrides={Set: sorted})
    converter.register_unstructure_hook(datetime, datetime.isoformat)
    converter.register_structure_hook(datetime, lambda text, _: datetime.fromisoformat(text))
    return converter


def as_json(value: Any) -> Any:
    """Plain lists, dictionaries, numbers and texts of a frozen dataclass."""
    return _converter().unstructure(value)


def from_json(kind: type[Value], plain: Any) -> Value:
    """The value again. Raises an exception group of cattrs when the JSON does not fit, naming the fields."""
    return _converter().structure(plain, kind)


def pack(grid: Grid) -> bytes:
    return zlib.compress(json.dumps(as_json(grid), separators=(",", ":")).encode())


def unpack(body: bytes) -> Grid:
    return from_json(Grid, json.loads(zlib.decompress(body)))


def needs_of(plain: Any) -> TaskNeeds:
    return from_json(TaskNeeds, plain)
