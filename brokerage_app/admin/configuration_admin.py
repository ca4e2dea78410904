"""Admin of the shared configuration: only known parameters, values of their types, each with its unit and default."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from brokerage_app.grid.configured_names import Names
from brokerage_app.models import GdpConfig
from brokerage_app.policy.configuration import problem_of
from brokerage_app.policy.parameter import Parameter, Type
from brokerage_app.policy.parameters import PARAMETERS, parse_key
from jedisite.admin.tools import ToolAdmin
from jedisite.vocabulary.words import sentence

NAME = ("component", "key")


class GdpConfigForm(forms.ModelForm):
    """Application and type may be left out: they are those of the parameter."""

    class Meta:
        model = GdpConfig
        fields = ["component", "key", "vo", "value", "value_json", "description", "app", "type"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("app", "type"):
            if name in self.fields:
                self.fields[name].required = False
        if "key" in self.fields:
            self.fields["key"].widget.attrs["list"] = "parameters"
        parameter = self.parameter
        if parameter is not None and "value" in self.fields:
            self._type_value(parameter)

    @property
    def parameter(self) -> Parameter | None:
        """The parameter that the form is about, as far as it says."""
        component, key = (self[name].value() if name in self.fields else getattr(self.instance, name) for name in NAME)
        parsed = parse_key(str(component or ""), str(key or ""))
        return parsed[0] if parsed else None

    def _type_value(self, parameter: Parameter) -> None:
        """The field for the value asks for what the parameter is."""
        field = self.fields["value"]
        if parameter.type == Type.BOOL:
            field.widget = UnfoldAdminSelectWidget(choices=[("", "–"), ("true", "true"), ("false", "false")])
            self.initial["value"] = (self.initial.get("value") or "").strip().lower()
        elif parameter.type in (Type.INT, Type.FLOAT):
            given = {"min": parameter.least, "max": parameter.most, "step": 1 if parameter.type == Type.INT else "any"}
            attrs = {name: value for name, value in given.items() if value is not None}
            field.widget = UnfoldAdminTextInputWidget(attrs={"type": "number", **attrs})
        field.help_text = f"{parameter.allowed}{f', in {parameter.unit}' if parameter.unit else ''}"

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        component, key = values.get("component"), values.get("key")
        if not component or not key:
            return values
        parsed = parse_key(component, key)
        if parsed is not None:
            values["app"] = values.get("app") or parsed[0].app
            values["type"] = values.get("type") or parsed[0].type.value
        if "value_json" in self.errors:
            return values
        data = values.get("value_json")
        text = "" if data is None else json.dumps(data)
        problem = problem_of(
            values.get("app") or "", component, key, values.get("value") or "", values.get("type") or "", text
        )
        if problem is not None:
            self.add_error(problem[0] if problem[0] in self.fields else None, f"{problem[1]}.")
        elif fault := Names().fault(component, key):
            self.add_error("key", sentence(fault))
        return values


@admin.register(GdpConfig)
class GdpConfigAdmin(ToolAdmin):
    form = GdpConfigForm
    tool_template = "admin_parts/parameter.html"
    list_display = ["component", "key", "vo", "shown", "unit", "default", "allowed", "meaning"]
    list_filter = ["component", "vo"]
    search_fields = ["component", "key", "description"]
    ordering = ["component", "key", "vo"]
    readonly_fields = ["unit", "default", "allowed", "meaning"]
    fieldsets = [
        (None, {"fields": ["component", "key", "vo", "value", "value_json", "description"]}),
        ("The parameter", {"fields": ["meaning", "unit", "default", "allowed", "app", "type"]}),
    ]
    help_texts = {
        "component": "part of the system that reads the parameter; Help, Configuration lists all parameters",
        "key": "name of the parameter, with a suffix where it may differ by share, label, queue, ...",
        "vo": "empty: for all VOs that have no row of their own",
        "value": "in the unit of the parameter; true or false for switches",
        "value_json": "only for parameters of the type json",
        "app": "empty: that of the parameter",
        "type": "empty: that of the parameter",
    }

    def tool_context(self, request: HttpRequest, form: Any, obj: Any) -> dict[str, Any]:
        """What is set of the parameter of the form, and the names of all for the field of the key."""
        parameter: Parameter | None = getattr(form, "parameter", None)
        if parameter is None:
            return {"parameters": PARAMETERS}
        rows = GdpConfig.objects.filter(component=parameter.component, key__startswith=parameter.key).order_by(
            "key", "vo"
        )
        own = [row for row in rows if _parameter(row) is parameter]
        return {"parameters": PARAMETERS, "parameter": parameter, "set_here": [(row, self.shown(row)) for row in own]}

    @admin.display(description="value")
    def shown(self, row: GdpConfig) -> str:
        return (row.value or "") if row.value_json is None else json.dumps(row.value_json)

    @admin.display
    def unit(self, row: GdpConfig) -> str:
        found = _parameter(row)
        return found.unit if found else ""

    @admin.display
    def default(self, row: GdpConfig) -> str:
        found = _parameter(row)
        return found.default_said if found else ""

    @admin.display
    def allowed(self, row: GdpConfig) -> str:
        found = _parameter(row)
        return found.allowed if found else ""

    @admin.display
    def meaning(self, row: GdpConfig) -> str:
        found = _parameter(row)
        return found.meaning if found else "unknown parameter: the row has no effect"


def _parameter(row: GdpConfig) -> Parameter | None:
    parsed = parse_key(row.component or "", row.key or "") if row.pk else None
    return parsed[0] if parsed else None
