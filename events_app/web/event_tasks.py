"""The page of all open tasks with event service: what is left of their ranges, and which consumers make no progress."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from events_app.reading import consumer_counts, range_counts
from events_app.rules.range_standing import LIVE
from events_app.rules.stalls import IDLE_AFTER
from events_app.web.range_listing import listed
from jedisite.identity.callers import Right, needs
from tasks_app.domain.states import TASK_FINAL
from tasks_app.models import Task
from tasks_app.web.frame import keyset_pages
from tasks_app.web.lists.misspelt import takes

TASKS: Final = 25
MOST_BLOCKS: Final = 2_000
"""Blocks of each task that are counted."""
REFRESH_S: Final = 30


@needs(Right.READ)
@require_safe
@takes("before")
def event_tasks(request: HttpRequest) -> HttpResponse:
    """Open tasks with event service, newest first. Four statements of bounded length."""
    now = timezone.now()
    found = Task.objects.filter(event_service__gt=0).exclude(status__in=sorted(TASK_FINAL))
    page = keyset_pages.keyset_page(request, found, size=TASKS)
    counted = range_counts.of_tasks([task.id for task in page.rows], MOST_BLOCKS)
    idle = consumer_counts.idle(now - IDLE_AFTER)
    rows = [
        (task, one, one.counts.pieces(), listed(one.counts, task.id))
        for task in page.rows
        for one in [counted[task.id]]
    ]
    context: dict[str, Any] = {
        "section": "events",
        "rows": rows,
        "page": page,
        "most": MOST_BLOCKS,
        "legend": LIVE,
        "idle": idle[: consumer_counts.MOST],
        "more_idle": len(idle) > consumer_counts.MOST,
        "idle_h": round(IDLE_AFTER.total_seconds() / 3600),
        "most_consumers": consumer_counts.MOST,
        "seconds": REFRESH_S,
        "now": now,
    }
    return render(request, "events_app/events.html", context)
