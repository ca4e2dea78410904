"""Which rows of a list a form of commands means: the numbers in it, or all that the list's filters find."""

from __future__ import annotations

from collections.abc import Iterable

from django.http import QueryDict
from django.urls import reverse
from django.utils.datastructures import MultiValueDict

from tasks_app.commands import bulk
from tasks_app.web.frame import keyset_pages

HOW_SHOWN = frozenset(
    {
        "before",
        "after",
        "sort",
        "order",
        "columns",
        "column",
        "density",
        "view",
        "window",
        "tab",
        "size",
        "page_size",
        "cursor",
        "ordering",
    }
)
"""Parameters of the addresses of lists that say how rows are shown, not which."""


def chosen_ids(given: MultiValueDict[str, str]) -> list[int] | None:
    """The numbers when the form means them: what was shown is confirmed, or there is no query to find others by.

    Raises SelectionError for what is not a number.
    """
    ids = _numbers(given.getlist("ids"))
    by_ids = "confirm" in given or "query" not in given or (not given.get("query") and bool(ids))
    return ids if by_ids else None


def _numbers(texts: Iterable[str]) -> list[int]:
    """Numbers, each in a field of its own or several in one with commas."""
    numbers = []
    for text in ",".join(texts).split(","):
        if not text.strip():
            continue
        number = keyset_pages.number(text.strip())
        if number is None:
            raise bulk.SelectionError("ids", f"{text.strip()[:40]!r} is not the number of a task or job.")
        numbers.append(number)
    return numbers


def filters_of(query: str) -> dict[str, str]:
    """The filters in the address of a list."""
    return {name: value for name, value in QueryDict(query).items() if name not in HOW_SHOWN}  # type: ignore[misc]


def list_address(page: str, query: str) -> str:
    """The list, e.g. "dashboard:tasks", as the query shows it."""
    address, kept = reverse(page), QueryDict(query).urlencode()
    return f"{address}?{kept}" if kept else address
