"""What all resources have in common: strict bodies and strict query strings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar, cast

from django.core.exceptions import ObjectDoesNotExist
from django.db.models import Model, QuerySet
from django.http import Http404
from django.http.response import HttpResponseBase
from rest_framework import exceptions, serializers
from rest_framework.viewsets import GenericViewSet

from jedisite.identity.callers import Caller, Right, api_caller
from jedisite.vocabulary.words import nearest, rather
from jedisite.web import columns, exports
from jedisite.web.columns import Column, Columns
from jedisite.web.paging import CURSOR, ORDERING, PAGE_SIZE, KeysetPagination
from jedisite.web.problems import InvalidFields
from tasks_app.models import JobArchive, Task, TaskParams
from tasks_app.params.faults import MOST_FAULTS, MOST_HINTS, shown

Row = TypeVar("Row", bound=Model)
LONGEST_ACTOR = 128
FORMAT = "format"
PLAIN = (
    serializers.CharField,
    serializers.IntegerField,
    serializers.FloatField,
    serializers.BooleanField,
    serializers.ChoiceField,
    serializers.DateTimeField,
    serializers.DecimalField,
    serializers.UUIDField,
    serializers.JSONField,
)
"""Fields whose form depends on nothing but their value."""
JSON_TYPES: tuple[tuple[type[serializers.Field], type, str], ...] = (
    (serializers.BooleanField, bool, "true or false"),
    (serializers.IntegerField, int, "a whole number"),
    (serializers.CharField, str, "a text"),
    (serializers.ChoiceField, str, "a text"),
)


class StrictSerializer(serializers.Serializer):
    """A body in which every key is known and has the JSON type that it should have."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            unknown = list(islice((str(name) for name in data if name not in self.fields), MOST_FAULTS))
            faults: dict[str, Any] = {
                name: [
                    rather(f"{shown(name)} is not a field of this body", name, self.fields if i < MOST_HINTS else ())
                ]
                for i, name in enumerate(unknown)
            }
            for name, field in self.fields.items():
                wanted = next((entry for entry in JSON_TYPES if isinstance(field, entry[0])), None)
                if wanted and name in data and type(data[name]) is not wanted[1]:
                    faults[name] = [f"This must be {wanted[2]}."]
            if faults:
                # Faults of the other fields are told at once; a body of many unknown ones is refused cheaply.
                try:
                    if len(faults) < MOST_HINTS:
                        super().to_internal_value(data)
                except serializers.ValidationError as exc:
                    faults = {**cast(dict[str, Any], exc.detail), **faults}
                raise serializers.ValidationError(faults)
        return super().to_internal_value(data)


ONE_OF: Mapping[type[Model], str] = {JobArchive: "job", TaskParams: "task"}
"""What a row is one of, where the name of its table does not say it."""


def none_of(called: str, key: object) -> exceptions.NotFound:
    """The 404 for one thing: `There is no task 99.`"""
    return exceptions.NotFound(f"There is no {called} {str(key)[:100]}.")


def one_of(rows: type[Row] | QuerySet[Row], key: Any) -> Row:
    """The row of that primary key. Raises NotFound, which names it."""
    found = rows if isinstance(rows, QuerySet) else rows._default_manager.all()
    try:
        return found.get(pk=key)
    except (ObjectDoesNotExist, ValueError, OverflowError) as exc:
        raise none_of(_called(found.model), key) from exc


def _called(model: type[Model]) -> str:
    return ONE_OF.get(model) or str(model._meta.verbose_name)


class Resource(GenericViewSet[Any]):
    """A view set that names its rights by action and refuses query parameters that it does not know."""

    rights: Mapping[str, Right]
    switches: tuple[str, ...] = ()
    """Names of further query parameters of the list, each true or false."""

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        known = self.known_parameters()
        faults: list[tuple[str, str, str]] = []
        for name, values in request.query_params.lists():
            if name not in known:
                near = nearest(name, known) if len(faults) < MOST_HINTS else ""
                few = f". Did you mean {near}?" if near else f"; there are: {', '.join(sorted(known)) or 'none'}."
                faults.append((name, "known parameter", f"There is no such parameter{few}"))
            elif len(values) > 1:
                faults.append((name, "once", "This parameter is given more than once."))
            elif "\x00" in values[0]:
                faults.append((name, "characters", "A text must not contain U+0000."))
        if faults:
            raise InvalidFields([{"field": f[:100], "rule": r, "message": m} for f, r, m in faults[:50]])

    def known_parameters(self) -> set[str]:
        if self.action != "list" or self.paginator is None:
            return set()
        filterset = getattr(self, "filterset_class", None)
        names = set(filterset.base_filters) if filterset else set()
        return names | set(self.switches) | {CURSOR, PAGE_SIZE, ORDERING}

    def switch(self, name: str) -> bool:
        """A query parameter that is true or false (the default). Raises InvalidFields."""
        value = self.request.query_params.get(name, "false")
        if value not in ("true", "false"):
            raise InvalidFields([{"field": name, "rule": "type", "message": "This must be true or false."}])
        return value == "true"

    def get_object(self) -> Any:
        try:
            return super().get_object()
        except Http404 as exc:
            raise none_of(
                _called(self.get_queryset().model), self.kwargs[self.lookup_url_kwarg or self.lookup_field]
            ) from exc

    @property
    def caller(self) -> Caller:
        return api_caller(self.request)

    def actor(self) -> str:
        """The caller's name for logs. Raises PermissionDenied when it is too long for them."""
        if len(self.caller.name) > LONGEST_ACTOR:
            raise exceptions.PermissionDenied(
                f"Accounts with names longer than {LONGEST_ACTOR} characters can only read."
            )
        return self.caller.name


class Forms:
    """A list that may be asked for as a whole: `format=csv`, `format=ndjson`, or by Accept.

    With `columns` set, `columns=a,b` chooses what each row has, among them what is computed.
    """

    columns: Columns | None = None

    def known_parameters(self: Any) -> set[str]:
        names: set[str] = super().known_parameters()  # type: ignore[misc]
        if self.action != "list":
            return names
        return names | {FORMAT} | ({columns.COLUMNS} if self.columns else set())

    def chosen_columns(self: Any, request: Any) -> list[Column] | None:
        """The columns that the request names; None when it names none. Raises InvalidFields."""
        text = request.query_params.get(columns.COLUMNS)
        return None if text is None or self.columns is None else self.columns.choose(text)

    def get_renderers(self) -> list[Any]:
        found: list[Any] = super().get_renderers()  # type: ignore[misc]
        return [*found, exports.CSVExport(), exports.NDJSONExport()] if self.action == "list" else found  # type: ignore[attr-defined]

    def perform_content_negotiation(self: Any, request: Any, force: bool = False) -> Any:
        wanted = request.query_params.get(FORMAT) if self.action == "list" else None
        if wanted is None or force:
            return super().perform_content_negotiation(request, force)  # type: ignore[misc]
        forms = {renderer.format: renderer for renderer in self.get_renderers()}
        if wanted not in forms:
            message = f"A list can be sent as one of: {', '.join(forms)}."
            raise InvalidFields([{"field": FORMAT, "rule": "known format", "message": message}])
        return forms[wanted], forms[wanted].media_type


class Lists(Forms):
    """A list in pages, or as a whole."""

    def list(self: Any, request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
        rows = self.filter_queryset(self.get_queryset())
        if isinstance(request.accepted_renderer, exports.Export):
            return self._whole(rows, request)
        chosen = self.chosen_columns(request)
        if chosen is not None:
            order = self.paginator.order_of(rows, request, self)[1]
            found = self.paginate_queryset(rows.values(*self.columns.needed(chosen, order.field.name)))
            return self.get_paginated_response(_plain_rows(self.columns.rows(found, chosen)))
        return self.get_paginated_response(self.get_serializer(self.paginate_queryset(rows), many=True).data)

    def _whole(self: Any, rows: QuerySet[Any], request: Any) -> HttpResponseBase:
        assert isinstance(self.paginator, KeysetPagination)
        faults = [name for name in (CURSOR, PAGE_SIZE) if name in request.query_params]
        if faults:
            message = "csv and ndjson send all rows: leave out cursor and page_size."
            raise InvalidFields([{"field": name, "rule": "pages", "message": message} for name in faults])
        _, order = self.paginator.order_of(rows, request, self)
        chosen = self.chosen_columns(request)
        if chosen is not None:
            narrow, made = rows.values(*self.columns.needed(chosen, order.field.name)), self.columns

            def chosen_pieces() -> Iterator[list[Any]]:
                for chunk in order.chunks(narrow, exports.CHUNK):
                    yield _plain_rows(made.rows(chunk, chosen))

            names = [column.name for column in chosen]
            return exports.stream(request, names, chosen_pieces())
        serializer = self.get_serializer()
        plain = plain_fields(serializer, rows.model)
        if plain is None:
            represent = serializer.to_representation
        else:
            # Only what is sent is read, and no objects are made: little more than half the time.
            rows = rows.values(order.field.name, order.key.name, *(source for _, source, _ in plain))

            def represent(row: Mapping[str, Any]) -> dict[str, Any]:
                return {name: None if (v := row[source]) is None else shown(v) for name, source, shown in plain}

        def pieces() -> Iterator[list[Any]]:
            for chunk in order.chunks(rows, exports.CHUNK):
                yield [represent(row) for row in chunk]

        return exports.stream(request, list(serializer.fields), pieces())


def _plain_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: columns.plain(value) for name, value in row.items()} for row in rows]


def plain_fields(
    serializer: serializers.Serializer[Any], model: type[Model]
) -> list[tuple[str, str, Callable[[Any], Any]]] | None:
    """(name, column, how it is shown) of each field, when all are columns of the model that stand for themselves."""
    columns = {name for field in model._meta.concrete_fields for name in (field.name, field.attname)}
    found: list[tuple[str, str, Callable[[Any], Any]]] = []
    for name, field in serializer.fields.items():
        if not isinstance(field, PLAIN) or field.source not in columns:
            return None
        found.append((name, field.source, field.to_representation))
    return found


class OfTask(Resource):
    """What belongs to one task. Answers 404 when there is no such task."""

    def task(self) -> Task:
        return one_of(Task, self.kwargs["task_id"])

    def get_queryset(self) -> Any:
        if getattr(self, "swagger_fake_view", False):
            return super().get_queryset()
        return self.of_task(self.task())

    def of_task(self, task: Task) -> QuerySet[Any]:
        found: QuerySet[Any] = super().get_queryset()
        return found.filter(task_id=task.id)


def check_command_right(caller: Caller, task: Task) -> None:
    """Raise PermissionDenied unless the caller may command this task."""
    if not caller.may_command(task.user, task.working_group):
        raise exceptions.PermissionDenied(f"Task {task.id} belongs to {task.user}; you may not command it.")
