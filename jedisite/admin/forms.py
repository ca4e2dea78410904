"""Forms of the admin that check numbers against one another, and fields for JSON that can be stored."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.fields import InvalidJSONInput

from jedisite.vocabulary.words import sentence
from jedisite.web.problems import NotPlainJSONError, strict_json


class BoundsForm(forms.ModelForm):
    """A form with pairs of limits: the smaller one must not exceed the larger one; none is negative."""

    bounds: tuple[tuple[str, str], ...] = ()
    never_negative: tuple[str, ...] = ()

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        for low, high in self.bounds:
            least, most = values.get(low), values.get(high)
            if least is not None and most is not None and least > most:
                self.add_error(high, f"The limit {most} is below the minimum {least}.")
        for name in self.never_negative:
            value = values.get(name)
            if value is not None and value < 0:
                self.add_error(name, f"This cannot be negative; it is {value}.")
        return values


class PlainJSONField(forms.JSONField):
    """JSON as the API takes it: Python reads NaN, U+0000, half surrogate pairs and keys that occur twice, too."""

    def to_python(self, value: Any) -> Any:
        fault = _fault_of(value)
        if fault is not None and fault.rule != "syntax":
            raise ValidationError(sentence(fault), code=fault.rule)
        return super().to_python(value)

    def bound_data(self, data: Any, initial: Any) -> Any:
        """What cannot be stored is shown as it was typed: the page could not be sent with it."""
        return InvalidJSONInput(data) if _fault_of(data) is not None else super().bound_data(data, initial)


def _fault_of(text: Any) -> NotPlainJSONError | None:
    if isinstance(text, str) and text.strip():
        try:
            strict_json(text.encode())
        except NotPlainJSONError as exc:
            return exc
    return None
