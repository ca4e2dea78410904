"""What all resources have in common: strict bodies and strict query strings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import exceptions, serializers
from rest_framework.viewsets import GenericViewSet

from jedisite.identity import Caller, Right, api_caller
from jedisite.problems import InvalidFields
from tasks_app.models import Task

LONGEST_ACTOR = 128
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
            faults = {
                str(name): [f"{str(name)[:100]!r} is not known here."] for name in data if name not in self.fields
            }
            for name, field in self.fields.items():
                wanted = next((entry for entry in JSON_TYPES if isinstance(field, entry[0])), None)
                if wanted and name in data and type(data[name]) is not wanted[1]:
                    faults[name] = [f"This must be {wanted[2]}."]
            if faults:
                raise serializers.ValidationError(faults)
        return super().to_internal_value(data)


class Resource(GenericViewSet[Any]):
    """A view set that names its rights by action and refuses query parameters that it does not know."""

    rights: Mapping[str, Right]
    switches: tuple[str, ...] = ()
    """Names of further query parameters of the list, each true or false."""

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        known = self.known_parameters()
        faults = []
        for name, values in request.query_params.lists():
            if name not in known:
                few = ", ".join(sorted(known)) or "none"
                faults.append((name, "known parameter", f"There is no such parameter; there are: {few}."))
            elif len(values) > 1:
                faults.append((name, "once", "This parameter is given more than once."))
            elif "\x00" in values[0]:
                faults.append((name, "characters", "A text may not hold U+0000."))
        if faults:
            raise InvalidFields([{"field": f[:100], "rule": r, "message": m} for f, r, m in faults[:50]])

    def known_parameters(self) -> set[str]:
        if self.action != "list" or self.paginator is None:
            return set()
        filterset = getattr(self, "filterset_class", None)
        names = set(filterset.base_filters) if filterset else set()
        return names | set(self.switches) | {"cursor", "page_size"}

    def switch(self, name: str) -> bool:
        """A query parameter that is true or false (the default). Raises InvalidFields."""
        value = self.request.query_params.get(name, "false")
        if value not in ("true", "false"):
            raise InvalidFields([{"field": name, "rule": "type", "message": "This must be true or false."}])
        return value == "true"

    @property
    def caller(self) -> Caller:
        return api_caller(self.request)

    def actor(self) -> str:
        """The caller's name for logs. Raises PermissionDenied when it is too long for them."""
        if len(self.caller.name) > LONGEST_ACTOR:
            raise exceptions.PermissionDenied(f"Names longer than {LONGEST_ACTOR} characters may only read.")
        return self.caller.name


def check_command_right(caller: Caller, task: Task) -> None:
    """Raise PermissionDenied unless the caller may command this task."""
    if not caller.may_command(task.user, task.working_group):
        raise exceptions.PermissionDenied(f"Task {task.id} belongs to {task.user}; you may not command it.")
