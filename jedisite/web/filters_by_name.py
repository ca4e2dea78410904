"""Filters by the name of a thing. A misspelt name would give an empty list, which reads like "there is none of these"."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import django_filters
from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from jedisite.vocabulary.words import rather

LONGEST_SHOWN = 60


class KnownFilter(django_filters.CharFilter):
    """Rows of one thing, by its name, which is a `kind` that there is or was.

    `is_known` asks the tables whether there is such a thing, or was when older rows were written; `names` are those of which
    one may have been meant. A name that rows of the list have is known in any case.
    """

    def __init__(
        self, *, kind: str, is_known: Callable[[str], bool], names: Callable[[], Iterable[str]], **more: Any
    ) -> None:
        super().__init__(**more)
        self.kind, self.is_known, self.names = kind, is_known, names

    def fault(self, value: str, rows: QuerySet[Any]) -> str:
        """Why nothing can have this name; "" when something has it."""
        if self.is_known(value) or self.filter(rows, value).exists():
            return ""
        return rather(f"There is no {self.kind} {value[:LONGEST_SHOWN]!r}", value, self.names())


class NamedFilters(django_filters.FilterSet):
    """A set of filters of which some are names: one that nothing has or had is a fault of its field."""

    def is_valid(self) -> bool:
        return bool(self.is_bound and not self.errors)

    @property
    def errors(self) -> Any:
        if not getattr(self, "_has_looked", False):
            self._has_looked = True
            named = [(name, one) for name, one in self.filters.items() if isinstance(one, KnownFilter)]
            for name, one in named if self.form.is_valid() else ():
                value = self.form.cleaned_data.get(name)
                if value and (fault := one.fault(value, self.queryset)):
                    # Not as the message itself, which django-filter takes for a format: names may hold a per cent sign.
                    self.form.add_error(name, ValidationError("%(said)s", params={"said": fault}))
        return self.form.errors


__all__ = ["KnownFilter", "NamedFilters"]
