"""Keyset paging: a page starts after the last row of the one before, whatever its number. Nothing is counted.

A list is ordered by one column and, among rows that are equal in it, by the key. Rows without a value stand where
PostgreSQL's indexes have them: above all values.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any, NamedTuple

from django.db import models
from django.db.models import F, QuerySet
from django.db.models.fields.tuple_lookups import TupleGreaterThan, TupleLessThan
from rest_framework.pagination import BasePagination
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param

from jedisite.vocabulary.words import nearest, thousands
from jedisite.web.columns import COLUMNS
from jedisite.web.problems import InvalidFields

LARGEST_ID = 2**63 - 1
CURSOR, PAGE_SIZE, ORDERING = "cursor", "page_size", "ordering"
MOST_SORTED = 10_000
MOST_COMPUTED = 500
"""Rows of a list that is ordered by what is worked out for each of them."""
Rows = QuerySet[Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row stands in a list: what it has in the column of the order, and its key."""

    value: Any
    key: Any


@dataclass(frozen=True, slots=True)
class Order:
    """The order of a list: by one field, then by the key, both upwards or both downwards."""

    field: models.Field[Any, Any]
    key: models.Field[Any, Any]
    descending: bool = False
    has_nulls: bool = True

    @classmethod
    def of(cls, model: type[models.Model], text: str, *, has_nulls: bool = True) -> Order:
        """The order that `name` or `-name` stands for. `has_nulls`: rows without a value count, if the field allows them."""
        field = model._meta.get_field(text.removeprefix("-"))
        assert isinstance(field, models.Field)
        return cls(field, model._meta.pk, text.startswith("-"), has_nulls and field.null)

    def reversed(self) -> Order:
        return replace(self, descending=not self.descending)

    def place_of(self, row: models.Model | Mapping[str, Any]) -> Place:
        """The place of a row, or of its values by name."""
        if isinstance(row, Mapping):
            return Place(row[self.field.name], row[self.key.name])
        return Place(getattr(row, self.field.name), row.pk)

    def rows(self, queryset: Rows, after: Place | None, count: int) -> list[Any]:
        """Up to `count` rows, the first ones or those behind a place."""
        found: list[Any] = []
        for part in self._parts(queryset, after):
            found += part[: count - len(found)]
            if len(found) >= count:
                break
        return found

    def chunks(self, queryset: Rows, size: int) -> Iterator[list[Any]]:
        """All rows, `size` at a time, each chunk with a statement of its own."""
        place: Place | None = None
        while rows := self.rows(queryset, place, size):
            yield rows
            if len(rows) < size:
                return
            place = self.place_of(rows[-1])

    def _parts(self, queryset: Rows, after: Place | None) -> Iterator[Rows]:
        """The rows behind a place, in pieces that an index serves each: NULL is not compared with values."""
        name, key, sign = self.field.name, self.key.name, "-" if self.descending else ""
        if self.field == self.key:
            yield self._behind_key(queryset, after).order_by(f"{sign}{key}")
            return
        valued = queryset.order_by(f"{sign}{name}", f"{sign}{key}")
        if not self.has_nulls:
            yield self._behind(valued, after)
            return
        valued = valued.filter(**{f"{name}__isnull": False})
        empty = queryset.filter(**{f"{name}__isnull": True}).order_by(f"{sign}{key}")
        empty_first = self.descending
        if after is None:
            yield from (empty, valued) if empty_first else (valued, empty)
        elif after.value is None:
            yield self._behind_key(empty, after)
            if empty_first:
                yield valued
        else:
            yield self._behind(valued, after)
            if not empty_first:
                yield empty

    def _behind_key(self, queryset: Rows, place: Place | None) -> Rows:
        side = "lt" if self.descending else "gt"
        return queryset.filter(**{f"{self.key.name}__{side}": place.key}) if place else queryset

    def _behind(self, queryset: Rows, place: Place | None) -> Rows:
        if place is None:
            return queryset
        lookup = TupleLessThan if self.descending else TupleGreaterThan
        return queryset.filter(lookup((F(self.field.name), F(self.key.name)), (place.value, place.key)))


class Computed(NamedTuple):
    """What a list can be ordered by and no column has: the value of each row by its key, None where there is none. `kind`: a
    field without a name, of the type of the values."""

    kind: models.Field[Any, Any]
    values: Callable[[Rows], Mapping[Any, Any]]


@dataclass(frozen=True, slots=True)
class ComputedOrder(Order):
    """The order by such values, which are worked out once, with the first rows. Its field reads the key: no row has more."""

    values: Callable[[Rows], Mapping[Any, Any]] = field(default=lambda rows: {})
    known: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def by(cls, model: type[models.Model], computed: Computed, *, descending: bool) -> ComputedOrder:
        key = model._meta.pk
        own = copy(computed.kind)
        own.name = key.name
        return cls(own, key, descending, True, computed.values)

    def place_of(self, row: models.Model | Mapping[str, Any]) -> Place:
        key = row[self.key.name] if isinstance(row, Mapping) else row.pk
        return Place(self.known.get(key), key)

    def rows(self, queryset: Rows, after: Place | None, count: int) -> list[Any]:
        if not self.known:
            self.known.update(self.values(queryset))
        ranked = sorted(((_rank(value, key), key) for key, value in self.known.items()), reverse=self.descending)
        if after is not None:
            own = _rank(after.value, after.key)
            ranked = [one for one in ranked if (one[0] < own if self.descending else one[0] > own)]
        keys = [key for _, key in ranked[:count]]
        found = {self.place_of(row).key: row for row in queryset.filter(pk__in=keys)}
        return [found[key] for key in keys if key in found]


def _rank(value: Any, key: Any) -> tuple[bool, Any, Any]:
    """Rows without a value stand above all others, as in PostgreSQL."""
    return (value is None, 0 if value is None else value, key)


class KeysetPagination(BasePagination):
    """Newest first; `page_size` up to 1 000.

    A view may name fields in `orderings`, besides the one of the usual order, by which its list can be ordered; each
    needs an index with the key behind it. By those in `small_orderings`, which have none, only a list of at most
    `MOST_SORTED` rows is ordered. `computed_orderings` names what is worked out for each row of a list of at most
    `MOST_COMPUTED`.
    """

    ordering = "-id"
    has_nulls = True
    page_size = 50
    max_page_size = 1000

    def order_of(self, queryset: Rows, request: Any, view: Any) -> tuple[str, Order]:
        """What the request says, or the usual order: as text and as an order. Raises InvalidFields."""
        text = request.query_params.get(ORDERING, self.ordering)
        if text not in self.choices(view):
            near = nearest(text, self.choices(view))
            message = f"A list can be ordered by one of: {', '.join(self.choices(view))}."
            message += f" Did you mean {near}?" if near else ""
            raise InvalidFields([{"field": ORDERING, "rule": "known ordering", "message": message}])
        name = text.removeprefix("-")
        computed = getattr(view, "computed_orderings", {}).get(name)
        if computed is not None:
            if queryset.order_by()[: MOST_COMPUTED + 1].count() > MOST_COMPUTED:
                message = f"More than {MOST_COMPUTED} rows cannot be ordered by {name}: filter the list first."
                raise InvalidFields([{"field": ORDERING, "rule": "few rows", "message": message}])
            return text, ComputedOrder.by(queryset.model, computed, descending=text.startswith("-"))
        if (
            name in getattr(view, "small_orderings", ())
            and queryset.order_by()[: MOST_SORTED + 1].count() > MOST_SORTED
        ):
            message = f"More than {thousands(MOST_SORTED)} rows cannot be ordered by {name}: filter the list first."
            raise InvalidFields([{"field": ORDERING, "rule": "few rows", "message": message}])
        return text, Order.of(queryset.model, text, has_nulls=self.has_nulls)

    def choices(self, view: Any) -> list[str]:
        usual = self.ordering.removeprefix("-")
        more = (getattr(view, name, ()) for name in ("orderings", "small_orderings", "computed_orderings"))
        names = dict.fromkeys((usual, *chain.from_iterable(more)))
        return [f"{sign}{name}" for name in names for sign in ("", "-")]

    def get_page_size(self, request: Any) -> int:
        given = request.query_params.get(PAGE_SIZE)
        if given is None:
            return self.page_size
        if not is_id(given) or not 1 <= int(given) <= self.max_page_size:
            message = f"A page has 1 to {self.max_page_size} rows."
            raise InvalidFields([{"field": PAGE_SIZE, "rule": "range", "message": message}])
        return int(given)

    def paginate_queryset(self, queryset: Any, request: Any, view: Any = None) -> list[Any]:
        self.url = request.build_absolute_uri()
        self.text, self.order = self.order_of(queryset, request, view)
        size = self.get_page_size(request)
        backwards, place = self._position(request.query_params.get(CURSOR))
        order = self.order.reversed() if backwards else self.order
        rows = order.rows(queryset, place, size + 1)
        more = len(rows) > size
        rows = rows[:size][::-1] if backwards else rows[:size]
        self.has_next = bool(rows) and (more or backwards)
        self.has_previous = bool(rows) and (more if backwards else place is not None)
        self.page = rows
        return rows

    def get_paginated_response(self, data: Any) -> Response:
        links = {"next": self.get_next_link(), "previous": self.get_previous_link()}
        return Response({**links, "results": data})

    def get_next_link(self) -> str | None:
        return self._link(False, self.page[-1]) if self.has_next else None

    def get_previous_link(self) -> str | None:
        return self._link(True, self.page[0]) if self.has_previous else None

    def _link(self, backwards: bool, row: Any) -> str:
        place = self.order.place_of(row)
        said = [self.text, backwards, _plain(place.value), place.key]
        packed = json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode()
        cursor = base64.urlsafe_b64encode(packed).decode().rstrip("=")
        return str(replace_query_param(remove_query_param(self.url, CURSOR), CURSOR, cursor))

    def _position(self, cursor: str | None) -> tuple[bool, Place | None]:
        """What a cursor says: whether to go back, and from where. Raises InvalidFields."""
        if cursor is None:
            return False, None
        try:
            packed = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), b"-_", validate=True)
            text, backwards, value, key = json.loads(packed)
            if text != self.text or type(backwards) is not bool:
                raise ValueError("the cursor belongs to another list or order")
            key = _checked(self.order.key, key)
            if value is not None or not self.order.has_nulls:
                value = _checked(self.order.field, value)
        except (ValueError, TypeError, RecursionError, OverflowError, binascii.Error) as exc:
            message = "This is not a cursor of this list; use the link `next` or `previous` of a page."
            raise InvalidFields([{"field": CURSOR, "rule": "known cursor", "message": message}]) from exc
        return backwards, Place(value, key)

    def get_paginated_response_schema(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        link = {"type": "string", "format": "uri", "nullable": True}
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {
                "next": {**link, "description": "address of the next page; null on the last one"},
                "previous": {**link, "description": "address of the page before; null on the first one"},
                "results": schema,
            },
        }

    def get_schema_operation_parameters(self, view: Any) -> list[Any]:
        def parameter(name: str, meaning: str, schema: dict[str, Any]) -> dict[str, Any]:
            return {"name": name, "in": "query", "required": False, "description": meaning, "schema": schema}

        found = [
            parameter(CURSOR, "from the link `next` or `previous` of a page", {"type": "string"}),
            parameter(
                PAGE_SIZE,
                "rows of a page",
                {"type": "integer", "minimum": 1, "maximum": self.max_page_size, "default": self.page_size},
            ),
            parameter(
                ORDERING,
                "field by which the list is ordered; a minus reverses the order; rows without a value count as the highest",
                {"type": "string", "enum": self.choices(view), "default": self.ordering},
            ),
        ]
        columns = getattr(view, "columns", None)
        if columns is not None:
            meaning = "columns of each row, separated by commas, also in exports: " + ", ".join(columns.by_name)
            found.append(parameter(COLUMNS, meaning, {"type": "string"}))
        return found


class OldestFirst(KeysetPagination):
    ordering = "id"


class ByName(KeysetPagination):
    """For tables whose key is a name."""

    ordering = "name"


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _checked(field: models.Field[Any, Any], value: Any) -> Any:
    """A value of a cursor as the field has it. Raises ValueError, TypeError or OverflowError."""
    if isinstance(field, models.IntegerField):
        if type(value) is not int or abs(value) > LARGEST_ID:
            raise ValueError(value)
        return value
    if isinstance(field, models.DateTimeField):
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise ValueError(value)
        return moment.astimezone(UTC)
    if isinstance(field, models.FloatField):
        if type(value) not in (int, float) or not math.isfinite(value):
            raise ValueError(value)
        return value
    if type(value) is not str or "\x00" in value:
        raise ValueError(value)
    value.encode()  # half a surrogate pair is a ValueError
    return value


def is_id(text: str) -> bool:
    """Whether a text is a whole number that fits a bigint column."""
    return text.isascii() and text.isdecimal() and len(text) <= 19 and int(text) <= LARGEST_ID


class IdConverter:
    """For paths: a number that can be an id. Anything else is no such address (404)."""

    regex = "[0-9]{1,19}"

    def to_python(self, value: str) -> int:
        if not is_id(value):
            raise ValueError(value)
        return int(value)

    def to_url(self, value: int) -> str:
        return str(value)
