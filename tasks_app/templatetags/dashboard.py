"""Tags and filters of the pages. What they write is escaped by the templates they fill."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from django import template
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from jedisite.web import page_places
from tasks_app.attention import bell
from tasks_app.commands import act_words
from tasks_app.domain import words
from tasks_app.domain.progress import Progress
from tasks_app.domain.sub_status_words import WORDS as SUB_STATUSES
from tasks_app.drawing import bullets
from tasks_app.explaining import stored_verdicts
from tasks_app.models import Task

register = template.Library()
NAVIGATION = (
    # (section, which is the name of its address, title, key behind g)
    ("overview", "Overview", "o"),
    ("shift", "Shift", "i"),
    ("own-tasks", "My tasks", "m"),
    ("tasks", "Tasks", "t"),
    ("jobs", "Jobs", "j"),
    ("workflows", "Workflows", "f"),
    ("errors", "Errors", "e"),
    ("sites", "Sites", "s"),
    ("brokerage", "Brokerage", "b"),
    ("shares", "Shares", "h"),
    ("queues", "Work queues", "q"),
    ("workers", "Workers", "w"),
    ("data", "Data", "d"),
    ("agents", "Agents", "a"),
    ("users", "Users", "u"),
    ("audit", "Audit", ""),
    ("views", "Views", ""),
)
TABS: Final = (
    # (name of the address behind "dashboard:", title)
    ("task", "Task"),
    ("task-why", "Why"),
    ("task-timeline", "Timeline"),
    ("task-jobs", "Jobs"),
    ("task-inputs", "Files"),
    ("task-outputs", "Outputs"),
    ("task-errors", "Errors"),
    ("task-sites", "Sites"),
    ("task-scouts", "Scouts"),
    ("task-flow", "Flow"),
    ("task-profile", "Profile"),
    ("task-params", "Parameters"),
    ("task-audit", "Audit"),
)
"""The tabs of a task: further pages about it, each with an address of its own."""
SEPARATOR = re.compile(r"(?<=[._:/-])(?=[^._:/-])")

register.filter("thousands", words.count)
register.filter("in_hours", words.hours)
register.filter("capped", words.capped)
register.filter("tone", words.tone)
register.filter("bytes", words.size)
register.filter("unit", words.unit)


@register.filter
def item(values: Mapping[str, Any], name: str) -> Any:
    """What a mapping has under a name; "" when it has nothing."""
    return values.get(name, "")


@register.filter
def seconds(value: float | None) -> str:
    return words.duration(value)


@register.filter
def kilobytes(value: float | None) -> str:
    """A number of kB in MB, the unit in which memory is asked for; pilots say 0 of what they have not measured."""
    return megabytes(round(value / 1024) if value else None)


@register.filter
def megabytes(value: float | None) -> str:
    return "–" if value is None else f"{words.count(value)} MB"


@register.simple_tag
def hours(core_seconds: int | None) -> str:
    """Core seconds in hours."""
    return "–" if core_seconds is None else words.hours(core_seconds / 3600)


@register.simple_tag
def whole(value: float | None) -> str:
    """A number without its decimals, unless it is a small one: "1 234", "0.4"."""
    if value is None:
        return "–"
    return f"{value:.1f}" if 0 < value < 1 else words.count(round(value))


@register.filter
def pretty(value: Any) -> str:
    """A JSON value over several lines, keys in order."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, default=str)


@register.filter
def act_title(act: str) -> str:
    """What an act is called."""
    return act_words.title_of(act)


@register.filter
def reason_title(code: str) -> str:
    """What people call a reason that is named by its code."""
    return stored_verdicts.title_of(code)


@register.filter
def sub_status_words(sub_status: str | None) -> str:
    """What a sub-status means; "" of one that speaks for itself."""
    return SUB_STATUSES.get(sub_status or "", "")


@register.filter
def kind_of(object_type: str) -> str:
    """What people call a kind of thing in the audit trail."""
    return act_words.kind_of(object_type)


@register.inclusion_tag("partials/chip.html")
def chip(status: str | None, url: str = "", word: str = "", kind: str = "") -> dict[str, str]:
    """A status as colour, icon and word; a link when a url is given."""
    tone = words.tone(status, kind)
    return {"tone": tone, "icon": f"partials/icons/{tone}.svg", "word": word or status or "not set", "url": url}


@register.filter
def breakable(text: str | None) -> str | SafeString:
    """A long name that may be broken after its dots and the like."""
    return format_html_join(mark_safe("<wbr>"), "{}", ((part,) for part in SEPARATOR.split(text or "")))


def bar_of(progress: Progress) -> SafeString:
    """The bar without a template, for lists of many."""
    label = progress.label()
    parts = format_html_join(
        "",
        '<rect class="{}" x="{}%" y="0" width="{}%" height="100%"/>',
        ((part.tone, part.start, part.width) for part in progress.parts()),
    )
    head = '<svg class="bar" role="img" aria-label="{}" preserveAspectRatio="none"><title>{}</title>{}</svg>'
    return format_html(head, label, label, parts)


@register.inclusion_tag("partials/bar.html")
def bar(progress: Progress) -> dict[str, Any]:
    return {"parts": progress.parts(), "label": progress.label()}


@register.filter
def power(value: float | None) -> str:
    """HS as whole numbers, thousands apart."""
    return "–" if value is None else words.count(round(value))


@register.filter
def percent(value: float | None) -> str:
    """A percentage with one figure behind the point; None -> "–"."""
    return "–" if value is None else f"{value:.1f}\u202f%"


@register.inclusion_tag("partials/bullet.html")
def free_space(endpoint: Any) -> dict[str, Any]:
    """Free space of a storage endpoint of all that it has, against what has to stay free; nothing when unknown."""
    free, total = endpoint.space_free_gb, endpoint.space_total_gb
    if free is None or not total:
        return {"bullet": None}
    least = endpoint.space_min_free_gb
    label = f"{words.count(round(free))} GB of {words.count(round(total))} GB are free"
    tone = "bad" if least and free < least else "ok"
    return {"bullet": bullets.of_amount(free, least, label, tone, top=total)}


def _sections() -> Iterator[tuple[str, str, str, str]]:
    for section, title, key in NAVIGATION:
        yield section, title, key, f"dashboard:{section}"
        for added in page_places.SECTIONS.values():
            if added.follows == section:
                yield added.name, added.title, added.key, added.address


@register.simple_tag
def navigation() -> list[dict[str, Any]]:
    """The sections, in order. A section whose page is not there is left out."""
    entries: list[dict[str, Any]] = []
    for section, title, key, address in _sections():
        try:
            url = reverse(address)
        except NoReverseMatch:
            continue
        icon = f"partials/icons/{section}.svg"
        entries.append({"section": section, "title": title, "key": key, "url": url, "icon": icon, "carries": True})
    key_icon = "partials/icons/key.svg"
    entries.append({"section": "tokens", "title": "Tokens", "key": "", "url": reverse("tokens"), "icon": key_icon})
    return entries


@register.inclusion_tag("partials/task_tabs.html")
def task_tabs(task: Task, tab: str) -> dict[str, Any]:
    """The tabs of a task; `tab` is the name of the address that is shown. A tab whose page is not there is left out."""
    entries = []
    for name, address, title in _tabs(task):
        try:
            url = reverse(address, args=[task.id])
        except NoReverseMatch:
            continue
        entries.append({"url": url, "title": title, "on": name == tab})
    return {"entries": entries}


def _tabs(task: Task) -> Iterator[tuple[str, str, str]]:
    for name, title in TABS:
        yield name, f"dashboard:{name}", title
        for added in page_places.TASK_TABS.values():
            if added.follows == name and added.is_for(task):
                yield added.address, added.address, added.title


@register.simple_tag(takes_context=True)
def in_admin(context: Mapping[str, Any], model: str, key: Any = None) -> str | SafeString:
    """A link to the admin's page of a row, or without a key to its list: to change it or to look at it, as the reader may.

    model   such as "brokerage_app.queue"; "" for people to whom the admin does not show it
    """
    user = context["request"].user
    app, _, name = model.partition(".")
    if not user.is_staff:
        return ""
    if user.has_perm(f"{app}.change_{name}"):
        words_of_it = "Edit in the admin"
    elif user.has_perm(f"{app}.view_{name}"):
        words_of_it = "Look at it in the admin"
    else:
        return ""
    page = f"admin:{app}_{name}"
    url = reverse(f"{page}_changelist") if key is None else reverse(f"{page}_change", args=[key])
    return format_html('<a href="{}">{}</a>', url, words_of_it)


@register.simple_tag
def ago(moment: datetime | None, now: datetime | None = None) -> str | SafeString:
    """A moment as "3 min ago", with the full time in UTC beside it for whoever points at it."""
    if moment is None:
        return "–"
    text = words.ago(moment, now or timezone.now())
    absolute = f"{moment:%Y-%m-%d %H:%M:%S} UTC"
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), absolute, text)


@register.simple_tag
def utc(moment: datetime | None) -> str | SafeString:
    if moment is None:
        return "–"
    return format_html('<time datetime="{}">{}</time>', moment.isoformat(), f"{moment:%Y-%m-%d %H:%M:%S}")


@register.inclusion_tag("partials/bell.html")
def attention_bell() -> dict[str, Any]:
    """The bell: how many items need attention that nobody has taken on. One query now and then."""
    number = bell.numbers().waiting
    shown = "99+" if number > 99 else str(number) if number else ""
    needs = "item needs" if number == 1 else "items need"
    return {"number": number, "shown": shown, "words": f"{shown or 'No'} {needs} attention"}


@register.simple_tag
def ticket(text: str) -> str | SafeString:
    """A ticket: a link when it is an address."""
    if text.startswith(("https://", "http://")):
        return format_html('<a href="{}" rel="noreferrer">{}</a>', text, text.removeprefix("https://")[:60])
    return format_html('<span class="mono">{}</span>', text)
