"""Short forms for the many columns of JEDI's tables. `column` is the name in the database, as the JEDI documents spell it."""

from __future__ import annotations

from typing import Any

from django.db import models


def text(column: str, length: int, **more: Any) -> models.CharField:
    """A nullable text column: NULL is "not set", which JEDI tells from the empty text."""
    return models.CharField(max_length=length, null=True, blank=True, db_column=column, **more)


def number(column: str, **more: Any) -> models.IntegerField:
    return models.IntegerField(null=True, blank=True, db_column=column, **more)


def small(column: str, **more: Any) -> models.SmallIntegerField:
    return models.SmallIntegerField(null=True, blank=True, db_column=column, **more)


def big(column: str, **more: Any) -> models.BigIntegerField:
    return models.BigIntegerField(null=True, blank=True, db_column=column, **more)


def moment(column: str, **more: Any) -> models.DateTimeField:
    return models.DateTimeField(null=True, blank=True, db_column=column, **more)
