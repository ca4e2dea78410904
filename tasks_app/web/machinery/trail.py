"""The page on the audit trail: who did what, when, to what, and why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from jedisite import audit
from jedisite.identity.callers import Right, caller_of, needs
from jedisite.web.columns import Row
from tasks_app.api.v2.audit_trail import AuditViewSet
from tasks_app.commands.act_words import details_in_words, kind_of, title_of
from tasks_app.domain import words
from tasks_app.lists.audit_columns import AUDIT
from tasks_app.templatetags import dashboard as tags
from tasks_app.web.lists import cells, list_page
from tasks_app.web.lists.cells import Cell
from tasks_app.web.lists.facets import FacetOf
from tasks_app.web.lists.listing import Listing

COLUMN = AUDIT.by_name
PAGES: Final[Mapping[str, tuple[str, bool]]] = {
    "task": ("dashboard:task", True),
    "job": ("dashboard:job", True),
    "agent": ("dashboard:agent", False),
    "queue": ("dashboard:site", False),
    "globalshare": ("dashboard:share", False),
}
"""The page of an object by its kind, and whether its ids are numbers."""
SHOWN: Final = 160
MOST_VALUES: Final = 6
"""Lists that are longer are only counted."""


def address_of(kind: str, object_id: str) -> str:
    """The page of an object; "" when it has none."""
    page, is_number = PAGES.get(kind, ("", False))
    if not page or (is_number and not (object_id.isascii() and object_id.isdecimal())):
        return ""
    try:
        return reverse(page, args=[int(object_id) if is_number else object_id])
    except NoReverseMatch:
        return ""


def in_words(details: Any) -> str:
    """Details in a line: `memory: 2000 → 4000, queues: 3, …` of changes and how many there are, `name: value, …` of others."""
    if not isinstance(details, Mapping):
        return "" if details is None else _value(details)
    changed = details.get("changed")
    if isinstance(changed, Mapping) and changed:
        return ", ".join(_changed(name, what) for name, what in changed.items())
    return ", ".join(f"{name}: {_value(value)}" for name, value in details.items())


def _changed(name: str, what: Any) -> str:
    if isinstance(what, list) and len(what) == 2:
        return f"{name}: {_value(what[0])} → {_value(what[1])}"
    return f"{name}: {what}" if isinstance(what, int) else str(name)


def _value(value: Any) -> str:
    if isinstance(value, list) and len(value) > MOST_VALUES:
        return words.plural(len(value), "value")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _action(row: Row, now: datetime) -> SafeString:
    address = f"{reverse('dashboard:audit')}?{urlencode({'action': row['action']})}"
    return cells.link(address, tags.breakable(title_of(row["action"])))


def _kind(row: Row, now: datetime) -> SafeString:
    address = f"{reverse('dashboard:audit')}?{urlencode({'object_type': row['object_type']})}"
    return cells.link(address, kind_of(row["object_type"]))


def _object(row: Row, now: datetime) -> str | SafeString:
    """Kind and id: a link to the object's page, and one to all that was done to it."""
    kind, object_id = row["object_type"], row["object_id"]
    everything = f"{reverse('dashboard:audit')}?{urlencode({'object_type': kind, 'object_id': object_id})}"
    called = kind_of(kind)
    page, look = address_of(kind, object_id), "nowrap" if len(object_id) <= 20 else "breaks"
    if not page:
        return format_html('{} <a class="{}" href="{}">{}</a>', called, look, everything, object_id or "–")
    return format_html(
        '{} <a class="{}" href="{}">{}</a> <a class="small muted" href="{}" aria-label="All actions on {} {}">all</a>',
        called,
        look,
        page,
        object_id,
        everything,
        called,
        object_id,
    )


def _details(row: Row, now: datetime) -> str | SafeString:
    text = in_words(details_in_words(row["action"], row["details"]))
    if len(text) <= SHOWN:
        return text or cells.DASH
    return format_html('<span title="{}">{}…</span>', text[:1000], text[: SHOWN - 1])


LISTING = Listing(
    page="dashboard:audit",
    api="api-v2:audit",
    section="audit",
    title="Audit trail",
    one="entry",
    many="entries",
    view=AuditViewSet,
    facets=(
        FacetOf("actor", "Who", "actor"),
        FacetOf("action", "What", "action", names=lambda actions: {action: title_of(action) for action in actions}),
        FacetOf(
            "object_type", "Kind of object", "object_type", names=lambda kinds: {kind: kind_of(kind) for kind in kinds}
        ),
    ),
    cells={
        "actor": cells.filtered("dashboard:audit", "actor", COLUMN["actor"]),
        "action": Cell(_action),
        "object_type": Cell(_kind),
        "object_id": Cell(_object, ("object_type",)),
        "details": Cell(_details, ("action",)),
    },
    nothing_yet="No entries yet. Commands, changes in the admin and actions on agents are recorded here.",
)


@needs(Right.READ)
@require_safe
def trail(request: HttpRequest) -> HttpResponse:
    """What the caller may see of the trail, newest first unless the address says another order."""
    return list_page.show(request, LISTING, audit.visible_to(caller_of(request)))
