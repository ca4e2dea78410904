"""Keyset paging: a page starts after the last row of the one before, whatever its number."""

from __future__ import annotations

from rest_framework.pagination import CursorPagination


class KeysetPagination(CursorPagination):
    """Newest first; `page_size` up to 1 000."""

    ordering = "-id"
    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 1000
