"""Keyset paging: a page starts after the last row of the one before, whatever its number. Nothing is counted."""

from __future__ import annotations

from typing import Any

from rest_framework.exceptions import NotFound
from rest_framework.pagination import CursorPagination

from jedisite.problems import InvalidFields

LARGEST_ID = 2**63 - 1


class KeysetPagination(CursorPagination):
    """Newest first; `page_size` up to 1 000 (more gives 1 000)."""

    ordering = "-id"
    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 1000
    template = None

    def get_page_size(self, request: Any) -> int:
        given = request.query_params.get(self.page_size_query_param)
        if given is None:
            return int(self.page_size)
        if not is_id(given) or int(given) < 1:
            message = f"A page has 1 to {self.max_page_size} rows."
            raise InvalidFields([{"field": "page_size", "rule": "range", "message": message}])
        return min(int(given), self.max_page_size)

    def decode_cursor(self, request: Any) -> Any:
        try:
            cursor = super().decode_cursor(request)
        except NotFound:
            cursor = None
            valid = False
        else:
            valid = cursor is None or cursor.position is None or self.is_position(str(cursor.position))
        if not valid:
            message = "This is no cursor of this list; take it from the link `next` or `previous` of a page."
            raise InvalidFields([{"field": "cursor", "rule": "known cursor", "message": message}])
        return cursor

    def is_position(self, text: str) -> bool:
        return is_id(text)


class OldestFirst(KeysetPagination):
    ordering = "id"


class ByName(KeysetPagination):
    """For tables whose key is a name."""

    ordering = "name"

    def is_position(self, text: str) -> bool:
        return "\x00" not in text


def is_id(text: str) -> bool:
    """Whether a text is a whole number that fits a bigint column."""
    return text.isascii() and text.isdecimal() and len(text) <= 19 and int(text) <= LARGEST_ID


class IdConverter:
    """For paths: a number that can be an id. Anything else is no such address (404)."""

    regex = "[0-9]{1,19}"

    def to_python(self, value: str) -> int:
        if not is_id(value):
            raise ValueError(value)
        return int(value)

    def to_url(self, value: int) -> str:
        return str(value)
