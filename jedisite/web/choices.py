"""Values that must be one of several: a refusal lists the choices and suggests the nearest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from rest_framework import serializers

from jedisite.vocabulary.words import nearest

LONGEST_SHOWN = 60


def no_choice(value: object, choices: Iterable[object]) -> str:
    """The sentence on a value that is not one of the choices.

    >>> no_choice("kil", ["kill", "pause"])
    "'kil' is none of the choices, which are kill, pause. Did you mean kill?"
    """
    known = [str(choice) for choice in choices]
    text = str(value)[:LONGEST_SHOWN]
    if not known:
        return f"{text!r} is not a choice: there are no choices."
    near = nearest(text, known)
    meant = f" Did you mean {near}?" if near else ""
    return f"{text!r} is not one of the choices: {', '.join(known)}.{meant}"


class Choice(serializers.ChoiceField):
    """A field of a body or of the parameters of a call."""

    def fail(self, key: str, **given: Any) -> Any:
        if key == "invalid_choice":
            raise serializers.ValidationError(no_choice(given.get("input"), self.choices), code=key)
        return super().fail(key, **given)


class OneOfField(forms.ChoiceField):
    """A field of a form."""

    def validate(self, value: Any) -> None:
        try:
            super().validate(value)
        except ValidationError as exc:
            if exc.code != "invalid_choice":
                raise
            choices: Any = self.choices
            known = [choice for choice, _ in choices if choice != ""]
            # As a parameter, since django-filter formats each message, and the value may look like a format.
            said = {"said": no_choice(value, known)}
            raise ValidationError("%(said)s", code=exc.code, params=said) from exc


class _ChoiceField(OneOfField, django_filters.fields.ChoiceField):
    pass


class ChoiceFilter(django_filters.ChoiceFilter):
    """Rows whose column is one of the choices."""

    field_class = _ChoiceField


class NameFilter(django_filters.CharFilter):
    """Rows whose name holds a text; with `*`, which stands for any text, rows whose whole name is such. Case is ignored.

    A `whole` name without `*` is one name exactly.
    """

    def __init__(self, *, whole: bool = False, **more: Any) -> None:
        super().__init__(**more)
        self.without_wildcard = "exact" if whole else "icontains"

    def filter(self, qs: QuerySet[Any], value: Any) -> QuerySet[Any]:
        if not value:
            return qs
        lookup = "iwild" if "*" in value else self.without_wildcard
        return qs.filter(**{f"{self.field_name}__{lookup}": value})
