"""Parameters of PanDA's calls. What is not known is ignored: callers of several years send more than we read."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from rest_framework import serializers

from jedisite.identity.one_line import check_one_line
from jedisite.web.problems import NotPlainJSONError, strict_json
from tasks_app.api.counted import CountedList
from tasks_app.api.panda.wire import BadCallError, is_plain_number

MOST_FAULTS_SHOWN = 5


class Params(serializers.Serializer[Any]):
    """The parameters of one call, as fields."""

    @classmethod
    def check(cls, raw: dict[str, Any]) -> dict[str, Any]:
        """The parameters in their types; those that are absent and not required are not in it. Raises BadCallError."""
        found = cls(data=raw)
        if found.is_valid():
            return dict(found.validated_data)
        faults = [f"{name}: {_sentence(detail)}" for name, detail in found.errors.items()]
        raise BadCallError("; ".join(faults[:MOST_FAULTS_SHOWN]))


def _sentence(detail: Any) -> str:
    if isinstance(detail, dict):
        detail = next(iter(detail.values()), "is wrong")
    while isinstance(detail, list):
        detail = detail[0] if detail else "is wrong"
    return str(detail)


class _InPlainCharacters(serializers.Field):
    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, str) and not is_plain_number(data):
            self.fail("invalid", format="YYYY-MM-DD hh:mm:ss")
        return super().to_internal_value(data)


class Number(_InPlainCharacters, serializers.IntegerField):
    """A whole number that fits into a bigint; decimals such as 12.0 are taken."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**{"min_value": 0, "max_value": 2**63 - 1, **more})


class Id(Number):
    """The number of a task, a job, …"""

    def __init__(self, **more: Any) -> None:
        super().__init__(**{"min_value": 1, **more})


class Flag(serializers.BooleanField):
    """True or false; also as a text in any case."""


class Text(serializers.CharField):
    """A text; empty is fine."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**{"allow_blank": True, "trim_whitespace": False, "max_length": 4000, **more})


class Fraction(_InPlainCharacters, serializers.FloatField):
    """A number with decimals."""


class Name(Text):
    """The name of something that pages show: one line."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**{"validators": [check_one_line], **more})


class Moment(_InPlainCharacters, serializers.DateTimeField):
    """A time such as `2026-11-20 12:48:39`; UTC when it names no zone."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**{"default_timezone": UTC, **more})


class Listed(CountedList):
    """A list; one plain value is a list of one, as a query gives it."""

    def to_internal_value(self, data: Any) -> list[Any]:
        return super().to_internal_value(data if isinstance(data, list) else [data])


class JsonObject(serializers.JSONField):
    """A JSON object, given as such or as its text."""

    kind: type = dict
    called = "a JSON object"

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, str):
            try:
                data = strict_json(data.encode())
            except NotPlainJSONError as exc:
                where = f"In {exc.field}" if exc.field else "This is not valid JSON"
                raise serializers.ValidationError(f"{where}: {exc}") from exc
        if not isinstance(data, self.kind):
            raise serializers.ValidationError(f"This must be {self.called}.")
        return data


class JsonList(JsonObject):
    """A JSON list, given as such or as its text."""

    kind = list
    called = "a JSON list"
