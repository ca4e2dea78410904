"""Lists in requests, counted before they are looked at: a body has room for a million entries, each with a fault of its own."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework import serializers


class CountedList(serializers.ListField):
    """A list of at most `max_length` entries; a longer one is refused before any entry is checked."""

    @property
    def most(self) -> int | None:
        return self.max_length

    def to_internal_value(self, data: Any) -> list[Any]:
        if self.most is not None and isinstance(data, list) and len(data) > self.most:
            self.fail("max_length", max_length=self.most)
        return super().to_internal_value(data)


class ActedOn(CountedList):
    """Numbers of tasks for one act: as many as the site lets one act have (JEDI_BULK_LIMIT)."""

    @property
    def most(self) -> int:
        return int(settings.JEDI_BULK_LIMIT)


__all__ = ["ActedOn", "CountedList"]
