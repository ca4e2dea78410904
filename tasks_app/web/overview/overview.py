"""The first page: is everything normal, and what needs somebody?"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from brokerage_app.grid import samples
from jedisite.identity.callers import Right, caller_of, needs
from tasks_app.attention import bell
from tasks_app.attention.item_filters import waiting
from tasks_app.attention.rules.findings import KINDS
from tasks_app.domain import window
from tasks_app.domain.states import TaskStatus
from tasks_app.models import SavedView
from tasks_app.web.frame import freshness
from tasks_app.web.lists.misspelt import takes
from tasks_app.web.lists.views import address_of
from tasks_app.web.overview import cores, recent_changes, tiles, wasters
from tasks_app.web.overview.attention_pages import SNOOZES

REFRESH_S: Final = 30
USUAL_WINDOW: Final = "24h"
STALE: Final = 3 * samples.INTERVAL
"""What was measured longer ago says nothing of now."""
FAILED: Final = (TaskStatus.FAILED, TaskStatus.BROKEN)
SHOWN_ITEMS: Final = 10
SHOWN_CHANGES: Final = 10
SHOWN_VIEWS: Final = 12


@needs(Right.READ)
@require_safe
@takes()
def overview(request: HttpRequest) -> HttpResponse:
    """Attention, numbers of now with their last day, running cores, what changed, what wastes most, and pinned lists."""
    now = timezone.now()
    looked = window.read(request.GET, now, USUAL_WINDOW)
    share = request.GET.get("share", "")[:32]
    caller = caller_of(request)
    items = list(waiting(now)[: SHOWN_ITEMS + 1])
    numbers = bell.numbers()
    changed = [
        replace(change, number=number)
        for number, change in enumerate(recent_changes.changes(looked.since, looked.until), 1)
    ]
    jobs_now = tiles.live(now, share)
    measured, counted = jobs_now.measured, jobs_now.as_of
    context = {
        "section": "overview",
        "items": items[:SHOWN_ITEMS],
        "fresh": freshness.read(now),
        "more_items": len(items) > SHOWN_ITEMS,
        "taken_on": numbers.taken_on,
        "put_off": numbers.put_off,
        **({} if items else _normal(now)),
        "may_operate": caller.may(Right.OPERATE),
        "snoozes": SNOOZES,
        "kpis": tiles.kpis(now, share, jobs_now),
        "empty": not jobs_now.any_task,
        "counted": counted,
        "measured": measured,
        "measured_then": measured is not None and looked.since < measured <= looked.until,
        "stale": counted is not None and now - counted > STALE,
        "cores": cores.running_cores(looked.since, looked.until, share, changed[:SHOWN_CHANGES]),
        "changes": changed[:SHOWN_CHANGES],
        "more_changes": len(changed) > SHOWN_CHANGES,
        "waste": wasters.waste(looked.since, looked.until, share, looked.parameters if looked.key else {}),
        "views": [(view, address_of(view)) for view in _pinned(caller.name)],
        "looked": looked,
        "share": share,
        "seconds": REFRESH_S,
        "now": now,
    }
    return render(request, "tasks_app/overview.html", context)


def _normal(now: datetime) -> dict[str, Any]:
    """What "all normal" means: the rules, and when the last item ended; and what they do not look at, tasks that have failed."""
    return {
        "normal": tiles.normal(FAILED, now - tiles.DAY),
        "rules": [kind.title for kind in KINDS.values()],
        "failed_statuses": ",".join(FAILED),
    }


def _pinned(owner: str) -> list[SavedView]:
    return list(SavedView.objects.filter(owner=owner, pinned=True).order_by("page", "name")[:SHOWN_VIEWS])
