"""My tasks: what of the caller's needs a decision, waits and why, runs, and has ended since they looked last."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib import messages
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from jedisite.identity.callers import Right, caller_of, needs
from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.lists.task_columns import TASKS
from tasks_app.models import Task, TasksSeen
from tasks_app.web.lists.misspelt import takes
from tasks_app.web.tasks.sentences import WAITS

REFRESH_S: Final = 30
MOST_OPEN, MOST_ENDED = 100, 50
NEED_ONE: Final = (TaskStatus.EXHAUSTED, TaskStatus.PAUSED)
"""States that only a person ends."""
NOT_LOOKED_YET: Final = timedelta(days=7)
"""So far back goes who has never marked anything as seen."""
COLUMNS: Final = ("id", "name", "status", "since", "blocked_by", "failed", "running", "queued", "progress")
ENDED_COLUMNS: Final = (*COLUMNS, "state_change_time")


@needs(Right.READ)
@require_safe
@takes()
def own_tasks(request: HttpRequest) -> HttpResponse:
    """The caller's tasks in four tables; open ones by priority, and what ended since `TasksSeen.at`, the latest first."""
    now, name = timezone.now(), caller_of(request).name
    seen = TasksSeen.objects.filter(pk=name).values_list("at", flat=True).first()
    since = seen or now - NOT_LOOKED_YET
    found = Task.objects.open().filter(user=name).order_by(F("current_priority").desc(nulls_last=True), "-id")
    some = _rows(found, COLUMNS, MOST_OPEN)
    ended = Task.objects.filter(user=name, status__in=sorted(TASK_FINAL), state_change_time__gt=since)
    rows = [_said(row) for row in some[:MOST_OPEN]]
    decide = [row for row in rows if row["status"] in NEED_ONE]
    others = [row for row in rows if row["status"] not in NEED_ONE]
    over = _rows(ended.order_by("-state_change_time", "-id"), ENDED_COLUMNS, MOST_ENDED)
    context = {
        "section": "own-tasks",
        "parts": (
            ("needs", "Need your decision", decide, "No task needs your decision."),
            ("waits", "Waiting", [row for row in others if not row["running"]], "No task waits."),
            ("runs", "Running", [row for row in others if row["running"]], "No task runs."),
        ),
        "more_open": len(some) > MOST_OPEN,
        "ended": over[:MOST_ENDED],
        "more_ended": len(over) > MOST_ENDED,
        "seen": seen,
        "since": since,
        "name": name,
        "seconds": REFRESH_S,
        "now": now,
    }
    return render(request, "tasks_app/own_tasks.html", context)


@needs(Right.READ)
@require_POST
def own_tasks_seen(request: HttpRequest) -> HttpResponse:
    """Mark as seen what had ended when the page was made, `until`; a time that cannot be read, or is to come, is now."""
    now = timezone.now()
    TasksSeen.objects.update_or_create(user=caller_of(request).name, defaults={"at": _moment(request, now)})
    messages.success(request, "Ended tasks marked as seen.")
    return redirect("dashboard:own-tasks")


def _moment(request: HttpRequest, now: datetime) -> datetime:
    try:
        given = datetime.fromisoformat(request.POST.get("until", "")[:40])
    except ValueError:
        return now
    return min(given, now) if given.tzinfo is not None else now


def _rows(found: Any, names: Sequence[str], most: int) -> list[dict[str, Any]]:
    """The first rows with these columns, and one more where there are more. At most six queries."""
    chosen = [TASKS.by_name[name] for name in names]
    return TASKS.rows(list(found.values(*TASKS.needed(chosen))[: most + 1]), chosen)


def _said(row: dict[str, Any]) -> dict[str, Any]:
    """A row with `why`: what it waits for, in a line."""
    wait = WAITS.get(row["status"], "it has no open job")
    queued = (
        f"{row['queued']} queued {'job waits' if row['queued'] == 1 else 'jobs wait'} for a pilot"
        if row["queued"]
        else ""
    )
    return {**row, "why": row["blocked_by"] or queued or wait[:1].upper() + wait[1:]}
