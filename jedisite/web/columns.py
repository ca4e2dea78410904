"""Columns that a list can show: one table for page, API and export, so that all three say the same.

A column is read from the model, or computed for many rows at once by a batch. Only what is asked for is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from django.db import models

from jedisite.vocabulary.words import nearest
from jedisite.web.problems import InvalidFields

Row = Mapping[str, Any]
COLUMNS: Final = "columns"
MOST: Final = 60


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a list.

    `name` stands in addresses, in the API and in the head of a CSV; `title` heads the table. `kind` says how pages show
    a value (`tasks_app.web.lists.cells`). `source` is where the model has it, the name itself if empty; it may
    follow relations. `shown`: part of the table that nobody has chosen columns for.
    """

    name: str
    title: str
    kind: str = "text"
    source: str = ""
    shown: bool = True
    help: str = ""

    @property
    def path(self) -> str:
        return self.source or self.name


@dataclass(frozen=True, slots=True)
class Batch:
    """Columns that are computed together, for all rows of a page or of a piece of an export at once.

    `compute` gets the rows as the model has them (the key and what `needs` names are there for sure) and returns, for
    each key, values by name of column; what it leaves out is None.
    """

    columns: tuple[Column, ...]
    compute: Callable[[Sequence[Row]], Mapping[Any, Row]]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Columns:
    """The columns of a model's list, in the order in which they are shown."""

    model: type[models.Model]
    parts: tuple[Column | Batch, ...]
    by_name: dict[str, Column] = field(init=False, repr=False)
    _batch_of: dict[str, Batch] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        by_name: dict[str, Column] = {}
        batch_of: dict[str, Batch] = {}
        for part in self.parts:
            for column in part.columns if isinstance(part, Batch) else (part,):
                assert column.name not in by_name, column.name
                by_name[column.name] = column
                if isinstance(part, Batch):
                    batch_of[column.name] = part
        object.__setattr__(self, "by_name", by_name)
        object.__setattr__(self, "_batch_of", batch_of)

    @property
    def key(self) -> str:
        return self.model._meta.pk.name

    @property
    def usual(self) -> list[Column]:
        return [column for column in self.by_name.values() if column.shown]

    def is_computed(self, column: Column) -> bool:
        return column.name in self._batch_of

    def named(self, text: str) -> tuple[list[str], list[str]]:
        """Of the names in `a,b,c`, each once, those that are columns, and those that are not."""
        names = dict.fromkeys(name.strip() for name in text.split(",") if name.strip())
        return [name for name in names if name in self.by_name], [name for name in names if name not in self.by_name]

    def choose(self, text: str) -> list[Column]:
        """The columns that `a,b,c` names, each once. Raises InvalidFields."""
        names, unknown = self.named(text)
        if unknown or not names or len(names) > MOST:
            few = ", ".join(self.by_name)
            said = f"Choose from: {few}."
            if unknown:
                near = nearest(unknown[0], self.by_name)
                said = f"There is no column {unknown[0][:64]!r}; there are: {few}." + (
                    f" Did you mean {near}?" if near else ""
                )
            raise InvalidFields([{"field": COLUMNS, "rule": "known column", "message": said}])
        return [self.by_name[name] for name in names]

    def needed(self, chosen: Iterable[Column], *more: str) -> list[str]:
        """What a queryset's `values()` has to be asked for, for `rows`; `more` for the caller's own use."""
        names = dict.fromkeys((self.key, *more))
        for column in chosen:
            batch = self._batch_of.get(column.name)
            names.update(dict.fromkeys(batch.needs if batch else (column.path,)))
        return list(names)

    def rows(self, found: Sequence[Row], chosen: Sequence[Column]) -> list[dict[str, Any]]:
        """The rows with the values of the chosen columns by name. One call of each batch that is needed."""
        wanted = {column.name for column in chosen}
        computed: dict[str, Mapping[Any, Row]] = {}
        for part in self.parts:
            if isinstance(part, Batch) and wanted & {column.name for column in part.columns} and found:
                values = part.compute(found)
                computed.update(dict.fromkeys((column.name for column in part.columns), values))
        nothing: Row = {}
        return [
            {
                column.name: computed[column.name].get(row[self.key], nothing).get(column.name)
                if column.name in computed
                else row[column.path]
                for column in chosen
            }
            for row in found
        ]


def plain(value: Any) -> Any:
    """A value as JSON and CSV have it: times as ISO texts in UTC."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return float(value) if isinstance(value, Decimal) else value
