"""Filters of the admin's lists that an index answers: exact values, months of a partitioned table, ranges of days."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import Field, QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import RangeDateFilter, TextFilter

from jedisite.database import partitions


def exact_value(field: Field[Any, Any], text: str) -> Any:
    """What a person typed, as a value of the column; None when it cannot be one."""
    text = text.strip()
    target = getattr(field, "target_field", field)
    if not text or "\x00" in text:
        return None
    try:
        return target.to_python(text)
    except ValidationError:
        return None


class ExactFilter(TextFilter):
    """A box for one value; the list holds the rows that have exactly it. Made by `exact`."""

    field_name = ""
    within: tuple[str, ...] = ()

    def __init__(self, request: HttpRequest, *args: Any) -> None:
        super().__init__(request, *args)
        self.offered = not self.within or any(request.GET.get(name) for name in self.within)

    def has_output(self) -> bool:
        return self.offered

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        given = self.value()
        if not given:
            return queryset
        value = exact_value(queryset.model._meta.get_field(self.field_name), given)
        return queryset.none() if value is None else queryset.filter(**{self.field_name: value})


def exact(field: str, title: str, within: tuple[str, ...] = ()) -> type[ExactFilter]:
    """A filter class for one column; its parameter in the URL is the column's name.

    `within` names filters of which one must be set: for a column that an index holds behind theirs.
    """
    values = {"title": title, "parameter_name": field, "field_name": field, "within": within}
    return type(f"Exact_{field}", (ExactFilter,), values)


class WithinFilter(admin.SimpleListFilter):
    """A choice that is offered only while the list is narrowed by another filter. Made by `choice_within`.

    Alone it would walk a large table in search of a rare value.
    """

    field_name = ""
    within: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    titles: Mapping[str, str] = {}

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        if self.within and not any(request.GET.get(name) for name in self.within):
            return []
        return [(option, self.titles.get(option, option)) for option in self.options]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        given = self.value()
        return queryset.filter(**{self.field_name: given}) if given in self.options else queryset


def choice(field: str, title: str, options: Iterable[str]) -> type[WithinFilter]:
    """A filter over a column that an index of the list's order begins with."""
    return choice_within((), field, title, options)


def choice_within(within: tuple[str, ...], field: str, title: str, options: Iterable[str]) -> type[WithinFilter]:
    """A filter over a column without an index, offered while one of the filters `within` is set."""
    return worded_within(within, field, title, {str(option): str(option) for option in options})


def worded_within(within: tuple[str, ...], field: str, title: str, titles: Mapping[str, str]) -> type[WithinFilter]:
    """The same with a word for each value."""
    values = {
        "title": title,
        "parameter_name": field,
        "field_name": field,
        "within": within,
        "options": tuple(titles),
        "titles": titles,
    }
    return type(f"Choice_{field}", (WithinFilter,), values)


class MonthFilter(admin.SimpleListFilter):
    """Months of a table that is partitioned by month: choosing one reads one partition. Made by `months`."""

    parameter_name = "month"
    title = "month"
    field_name = ""

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        found = partitions.months_of(model_admin.model._meta.db_table)
        return [(f"{month:%Y%m}", f"{month:%B %Y}") for month in sorted(found, reverse=True)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        given = self.value()
        if given not in [value for value, _ in self.lookup_choices]:
            return queryset
        first = date(int(given[:4]), int(given[4:]), 1)
        after = partitions.month_start(first, 1)
        return queryset.filter(
            **{f"{self.field_name}__gte": midnight(first), f"{self.field_name}__lt": midnight(after)}
        )


def months(field: str) -> type[MonthFilter]:
    return type("Months", (MonthFilter,), {"field_name": field})


def midnight(day: date) -> datetime:
    """The beginning of a day, in UTC."""
    return datetime.combine(day, time(), tzinfo=UTC)


class DayRangeFilter(RangeDateFilter):
    """From one day to another, both included, in UTC. A day that cannot be read counts as not given."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        first = _day(self.used_parameters.get(f"{self.parameter_name}_from"))
        last = _day(self.used_parameters.get(f"{self.parameter_name}_to"))
        if first:
            queryset = queryset.filter(**{f"{self.parameter_name}__gte": midnight(first)})
        if last and last < date.max:
            queryset = queryset.filter(**{f"{self.parameter_name}__lt": midnight(last + timedelta(days=1))})
        return queryset


def _day(text: Any) -> date | None:
    try:
        return forms.DateField(required=False).clean(text)
    except ValidationError:
        return None


def days(field: str) -> tuple[str, type[DayRangeFilter]]:
    return field, DayRangeFilter


def parameters_of(list_filter: Iterable[Any]) -> set[str]:
    """Names in the URL that the filters of a list read."""
    names: set[str] = set()
    for item in list_filter:
        if isinstance(item, type) and issubclass(item, admin.SimpleListFilter):
            names.add(str(item.parameter_name))
        elif isinstance(item, tuple):
            names |= {f"{item[0]}_from", f"{item[0]}_to"}
        else:
            names |= {f"{item}__exact", f"{item}__isnull", f"{item}__id__exact"}
    return names
