"""Admin of the shared configuration: only known parameters, values of their types, each with its unit and default."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.contrib import admin

from brokerage_app.configuration import problem_of
from brokerage_app.models import GdpConfig
from brokerage_app.parameter import Parameter
from brokerage_app.parameters import parse_key
from jedisite.admin_base import AuditedAdmin


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
        return values


@admin.register(GdpConfig)
class GdpConfigAdmin(AuditedAdmin):
    form = GdpConfigForm
    list_display = ["component", "key", "vo", "shown", "unit", "default", "meaning"]
    list_filter = ["component", "vo"]
    search_fields = ["component", "key", "description"]
    ordering = ["component", "key", "vo"]
    readonly_fields = ["unit", "default", "meaning"]
    fieldsets = [
        (None, {"fields": ["component", "key", "vo", "value", "value_json", "description"]}),
        ("The parameter", {"fields": ["meaning", "unit", "default", "app", "type"]}),
    ]
    help_texts = {
        "component": "part of the system that reads it; all parameters are on the page Help, Configuration",
        "key": "name of the parameter, with a suffix where it may differ by share, label, queue, ...",
        "vo": "empty: for all VOs that have no row of their own",
        "value": "in the unit of the parameter; true or false for switches",
        "value_json": "only for parameters of the type json",
        "app": "empty: that of the parameter",
        "type": "empty: that of the parameter",
    }

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
        return "" if found is None else found.default_words or ("none" if found.default is None else str(found.default))

    @admin.display
    def meaning(self, row: GdpConfig) -> str:
        found = _parameter(row)
        return found.meaning if found else "not known here: the row has no effect"


def _parameter(row: GdpConfig) -> Parameter | None:
    parsed = parse_key(row.component or "", row.key or "") if row.pk else None
    return parsed[0] if parsed else None
