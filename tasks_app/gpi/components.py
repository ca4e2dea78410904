"""Parts of a job (application, splitter, backend, ...): named attributes with defaults, stored as JSON.

A class lists its attributes in `fields`, with their defaults, which give the type. Whoever owns a part hears of each change.
"""

from __future__ import annotations

import copy
import difflib
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from tasks_app.gpi.ganga_errors import GangaAttributeError, GangaTypeError

KINDS: dict[str, type[Component]] = {}
"""All classes of parts, by name."""


class Component:
    """One part. Attributes that `fields` does not list are refused, and so are values of another type than the default."""

    fields: ClassVar[Mapping[str, Any]] = {}
    positional: ClassVar[tuple[str, ...]] = ()
    """Attributes that may be given without their names."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        KINDS[cls.__name__] = cls

    def __init__(self, *values: Any, **given: Any) -> None:
        object.__setattr__(self, "_owner", None)
        if len(values) > len(self.positional):
            raise GangaTypeError(f"{type(self).__name__} takes {len(self.positional)} values without a name")
        given.update(zip(self.positional, values))  # noqa: B905 - Python 3.9 has no strict
        for name, default in self.fields.items():
            object.__setattr__(self, name, copy.deepcopy(default))
        for name, value in given.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.fields:
            raise unknown_attribute(self, name, self.fields)
        value = self.checked(name, value)
        own(value, self._changed)
        object.__setattr__(self, name, value)
        self._changed()

    def _changed(self) -> None:
        if self._owner is not None:
            self._owner()

    def checked(self, name: str, value: Any) -> Any:
        """The value as it is kept. Raises GangaTypeError."""
        default = self.fields[name]
        if isinstance(default, bool) or default is None:
            fits = isinstance(value, bool) if default is not None else True
        elif isinstance(default, int):
            fits = isinstance(value, int) and not isinstance(value, bool)
        elif isinstance(default, str):
            value = os.fspath(value) if isinstance(value, os.PathLike) else value
            fits = isinstance(value, (str, Component))
        elif isinstance(default, list):
            fits = isinstance(value, (list, tuple))
        else:
            fits = isinstance(value, type(default))
        if not fits:
            kind = type(default).__name__
            raise GangaTypeError(f"{type(self).__name__}.{name} is of type {kind}, and {value!r:.80} is not")
        if isinstance(value, tuple):
            value = list(value)
        check_storable(value, f"{type(self).__name__}.{name}")
        return value

    def record(self) -> dict[str, Any]:
        """The part as JSON; attributes at their defaults are left out."""
        found: dict[str, Any] = {"type": type(self).__name__}
        for name, default in self.fields.items():
            value = getattr(self, name)
            if value != default:
                found[name] = to_json(value)
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Component) and self.record() == other.record()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        said = ", ".join(
            f"{name}={getattr(self, name)!r}" for name, d in self.fields.items() if getattr(self, name) != d
        )
        return f"{type(self).__name__}({said})"


def unknown_attribute(part: object, name: str, known: Iterable[str]) -> GangaAttributeError:
    near = difflib.get_close_matches(name, list(known), n=1)
    meant = f". Did you mean {near[0]}?" if near else f"; there are: {', '.join(known) or 'none'}"
    return GangaAttributeError(f"{type(part).__name__} has no attribute {name}{meant}")


def own(value: Any, changed: Callable[[], None] | None) -> None:
    """Let the parts in a value tell of their changes."""
    for part in value if isinstance(value, list) else (value,):
        if isinstance(part, Component):
            object.__setattr__(part, "_owner", changed)


def check_storable(value: Any, where: str) -> None:
    """Raises GangaTypeError for what cannot be stored as JSON."""
    if isinstance(value, (list, tuple)):
        for one in value:
            check_storable(one, where)
    elif isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise GangaTypeError(f"{where}: the keys are texts")
        for one in value.values():
            check_storable(one, where)
    elif not isinstance(value, (str, int, float, bool, type(None), Component, os.PathLike)):
        raise GangaTypeError(f"{where}: {value!r:.80} is a {type(value).__name__}, which cannot be stored")


def to_json(value: Any) -> Any:
    if isinstance(value, Component):
        return value.record()
    if isinstance(value, (list, tuple)):
        return [to_json(one) for one in value]
    if isinstance(value, dict):
        return {key: to_json(one) for key, one in value.items()}
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def from_json(value: Any) -> Any:
    """The value that `to_json` wrote. Raises GangaTypeError for a part of an unknown class."""
    if isinstance(value, list):
        return [from_json(one) for one in value]
    if not isinstance(value, dict):
        return value
    plain = {key: from_json(one) for key, one in value.items() if key != "type"}
    if "type" not in value:
        return plain
    kind = KINDS.get(str(value["type"]))
    if kind is None:
        raise GangaTypeError(f"the stored job has a {value['type']}, which this version does not know")
    return kind(**plain)
