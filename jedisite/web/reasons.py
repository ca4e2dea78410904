"""Fields for the reasons that people give: one line, since they stand in logs, in heads of mails and in lists."""

from __future__ import annotations

from typing import Any

from django import forms
from rest_framework import serializers

from jedisite.vocabulary.words import on_one_line


class ReasonField(serializers.CharField):
    """Of a body of the API."""

    def run_validation(self, data: Any = serializers.empty) -> Any:
        return super().run_validation(on_one_line(data) if isinstance(data, str) else data)


class ReasonFormField(forms.CharField):
    """Of a form of a page."""

    def to_python(self, value: Any) -> Any:
        return super().to_python(on_one_line(value) if isinstance(value, str) else value)
