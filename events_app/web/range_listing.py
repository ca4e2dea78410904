"""The list of a task's event ranges as a page, and links into it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from events_app.lists.range_columns import RANGE_COLUMNS, as_seen
from events_app.lists.range_resources import TaskRangeViewSet
from events_app.rules.range_standing import Counts, Standing
from jedisite.identity.callers import Right, needs
from jedisite.web.columns import Row
from tasks_app.models import Task
from tasks_app.web.lists import cells, list_page
from tasks_app.web.lists.cells import Cell
from tasks_app.web.lists.facets import FacetOf
from tasks_app.web.lists.listing import Listing

TAB: Final = "events:task"
COLUMN = RANGE_COLUMNS.by_name


def _owner(row: Row, now: datetime) -> str | SafeString:
    """A job as a link; a jobset, which has no page, as its number."""
    if row["job_id"] == row["event_offset"]:
        return f"jobset {row['job_id']}"
    return cells.link(reverse("dashboard:job", args=[row["job_id"]]), str(row["job_id"]))


LISTING = Listing(
    page="events:ranges",
    api="events:api-ranges",
    section="tasks",
    title="Ranges of events",
    one="block of ranges",
    many="blocks of ranges",
    view=TaskRangeViewSet,
    facets=(FacetOf("status", "State", "state"), FacetOf("error", "Error code", "error_code")),
    cells={"job_id": Cell(_owner, ("event_offset",))},
    template="events_app/ranges.html",
    refresh_s=30,
    nothing_yet="The task has no ranges of events yet: they are made with its first consumers.",
    has_views=False,
    is_in_key_order=True,
)


@needs(Right.READ)
@require_safe
def ranges(request: HttpRequest, task_id: int) -> HttpResponse:
    """The ranges of a task, block by block."""
    task = get_object_or_404(Task, pk=task_id)
    rows = as_seen().filter(task_id=task_id)
    return list_page.show(request, LISTING, rows, api_args=(task_id,), task=task, tab=TAB, tab_title="Events")


@dataclass(frozen=True, slots=True)
class Number:
    """A number of ranges that stand alike, with the list that it counts."""

    standing: Standing
    count: int
    url: str


def listed(counts: Counts, task_id: int, **which: int | str) -> list[Number]:
    """The numbers of `counts` with their lists; `which` are further filters of these: `file=7`, `job=9`."""
    page = reverse("events:ranges", args=[task_id])
    return [
        Number(one, count, f"{page}?{urlencode({**one.filters, **which}, safe=',')}") for one, count in counts.listed
    ]
