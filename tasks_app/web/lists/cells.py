"""How the pages show the values of a list's columns, by kind. Everything is escaped here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from jedisite.web import exports
from jedisite.web.columns import Column, Row, plain
from tasks_app.ddm.fetching import is_made
from tasks_app.domain import words
from tasks_app.templatetags import dashboard as tags

DASH = "–"
NO_LIMIT = "no limit"
RIGHT = frozenset({"number", "percent", "seconds", "bytes", "mb", "kb", "score"})
"""Kinds that stand at the right edge of their column."""
WIDE = frozenset({"name", "sentence"})
SHORTENED = 140
Show = Callable[[Any, datetime], str]
Render = Callable[[Row, datetime], str | SafeString]


@dataclass(frozen=True, slots=True)
class Cell:
    """How one list shows one column: `render` gets the row, which has the columns named in `also`, too."""

    render: Render
    also: tuple[str, ...] = ()


def shortened(text: str, longest: int = SHORTENED) -> str:
    """The begin of a text, with all of it for whoever points at it."""
    if len(text) <= longest:
        return escape(text)
    return format_html('<span title="{}">{}…</span>', text[:1000], text[: longest - 1])


def _sentence(value: Any, now: datetime) -> str:
    return shortened(str(value))


def _chip(kind: str) -> Show:
    def show(value: Any, now: datetime) -> str:
        return status(str(value), kind)

    return show


def _listed(value: Any, now: datetime) -> str:
    return escape(", ".join(map(str, value)) if isinstance(value, list) else value)


KINDS: Mapping[str, Show] = {
    "text": lambda value, now: tags.breakable(str(value)),
    "id": lambda value, now: escape(value),
    "number_plain": lambda value, now: escape(value),
    "name": lambda value, now: tags.breakable(str(value)),
    "code": lambda value, now: format_html('<span class="mono">{}</span>', value),
    "sentence": _sentence,
    "number": lambda value, now: words.count(value),
    "score": lambda value, now: f"{value:.4g}",
    "percent": lambda value, now: f"{value:.4g} %",
    "progress": lambda value, now: f"{value:.4g} %",
    "seconds": lambda value, now: words.duration(value),
    "bytes": lambda value, now: words.size(value),
    "mb": lambda value, now: tags.megabytes(value),
    "kb": lambda value, now: tags.kilobytes(value),
    "ago": lambda value, now: tags.ago(value, now),
    "time": lambda value, now: tags.utc(value),
    "status": _chip(""),
    "task_status": _chip("task"),
    "flag": lambda value, now: "yes" if value else "no",
    "list": _listed,
}
"""What a value of a kind, which is there, looks like. What is not there is a dash."""

_ICONS: dict[str, SafeString] = {}


def status(value: str, kind: str = "", url: str = "") -> SafeString:
    """The chip of a status, as the tag makes it, without a template for each."""
    tone = words.tone(value, kind)
    if tone not in _ICONS:
        from django.template.loader import render_to_string

        _ICONS[tone] = mark_safe(render_to_string(f"partials/icons/{tone}.svg"))
    if url:
        return format_html('<a class="chip {}" href="{}">{}{}</a>', tone, url, _ICONS[tone], value or "not set")
    return format_html('<span class="chip {}">{}{}</span>', tone, _ICONS[tone], value or "not set")


def shown(kind: str, value: Any, now: datetime) -> str | SafeString:
    """A value by its kind; a dash for none."""
    if value is None or value == "":
        return DASH
    return mark_safe(KINDS[kind](value, now))


def raw(value: Any) -> str:
    """The value as the CSV of the list has it."""
    return exports.cell(plain(value))


def link(url: str, content: str | SafeString) -> SafeString:
    return format_html('<a href="{}">{}</a>', url, content)


def to(name: str, column: Column, by: str = "") -> Cell:
    """The value as a link to the page `name` of whatever the column `by` (or itself) names."""
    source = by or column.name

    def render(row: Row, now: datetime) -> str | SafeString:
        content = shown(column.kind, row[column.name], now)
        if row[source] in (None, ""):
            return content
        return link(reverse(name, args=[row[source]]), content)

    return Cell(render, (source,) if by else ())


def _fetched(row: Row, now: datetime) -> str | SafeString:
    name = shown("name", row["lfn"], now)
    if not is_made(row["type"], row["surl"]):
        return name
    url = reverse("api-v2:file-content", args=[row["id"]])
    return format_html('<a href="{}" title="Download" download>{}</a>', url, name)


FETCHED = Cell(_fetched, ("id", "type", "surl"))
"""The name of a file as a link to its content, for those who may have it."""


def filtered(page: str, parameter: str, column: Column) -> Cell:
    """The value as a link to the list `page` of those that have it."""

    def render(row: Row, now: datetime) -> str | SafeString:
        value = row[column.name]
        content = shown(column.kind, value, now)
        if value in (None, ""):
            return content
        return link(f"{reverse(page)}?{urlencode({parameter: value})}", content)

    return Cell(render)


def limit(column: Column, none: str = NO_LIMIT) -> Cell:
    """A limit by its kind; where there is none it is empty, or 0, and `none` is shown."""

    def render(row: Row, now: datetime) -> str | SafeString:
        value = row[column.name]
        return shown(column.kind, value, now) if value else none

    return Cell(render)


def counted(page: str, column: Column, parameters: Callable[[Row], Mapping[str, Any]], also: tuple[str, ...]) -> Cell:
    """A number as a link to the list of what it counts; a plain 0 when there is nothing to see."""

    def render(row: Row, now: datetime) -> str | SafeString:
        value = row[column.name]
        if not value:
            return DASH if value is None else "0"
        return link(f"{reverse(page)}?{urlencode(parameters(row), safe=',')}", shown(column.kind, value, now))

    return Cell(render, also)


def of_files(column: Mapping[str, Column]) -> dict[str, Cell]:
    """Cells of lists of files, with links to the jobs that made or failed them and to others with the same error."""
    return {
        "job_id": to("dashboard:job", column["job_id"]),
        "last_failed_job": to("dashboard:job", column["last_failed_job"]),
        "last_error": filtered("dashboard:jobs", "error", column["last_error"]),
    }
