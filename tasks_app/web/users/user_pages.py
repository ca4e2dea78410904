"""Pages on users: who uses the grid and how, and one of them with limits, waste and what they did."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, OuterRef, Subquery, Sum
from django.db.models.functions import Coalesce
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from brokerage_app.models import AnalysisUser
from brokerage_app.policy.userthrottle import QUEUED_TO_RUNNING
from jedisite import audit
from jedisite.identity.callers import Caller, Right, caller_of, needs
from jedisite.models import ApiToken
from tasks_app.configured import site_limits
from tasks_app.counts import statistics
from tasks_app.domain import window, words
from tasks_app.models import Notification, Sandbox, Task
from tasks_app.web.frame import keyset_pages
from tasks_app.web.lists.misspelt import one_of, takes
from tasks_app.web.users import user_queries
from tasks_app.web.users.user_queries import UserRow

REFRESH_S = 30
MOST: Final = 200
LATEST: Final = 12
USUAL: Final = "running"
COLUMNS: Final[Mapping[str, tuple[str, Callable[[UserRow], Any]]]] = {
    "name": ("User", lambda row: row.name),
    "tasks": ("Open tasks", lambda row: row.tasks),
    "held_up": ("Held up", lambda row: row.held_up),
    "running": ("Running", lambda row: row.running),
    "queued": ("Queued", lambda row: row.queued),
    "finished": ("Finished", lambda row: row.finished),
    "failed": ("Failed", lambda row: row.failed),
    "failure": ("Failure %", lambda row: row.failure_percent or 0.0),
    "wasted": ("Wasted", lambda row: row.wasted_core_s),
    "disk": ("Disk", lambda row: row.disk_gb or 0.0),
}
"""Columns that the list can be ordered by: title, and the value that counts. All but the name go downwards."""


@dataclass(frozen=True, slots=True)
class Head:
    name: str
    title: str
    url: str
    on: bool


@needs(Right.READ)
@require_safe
@takes("q", ordering=one_of(COLUMNS))
def user_list(request: HttpRequest) -> HttpResponse:
    """Users with open work, or whose jobs ended in the window. `q=` part of a name, `ordering=` one of COLUMNS."""
    now, counted_at = timezone.now(), statistics.counted_at(statistics.ACTIVITY)
    seen = window.read(request.GET, now)
    wanted = request.GET.get("q", "").strip()[:128]
    found = [row for row in user_queries.user_rows(seen) if wanted.lower() in row.name.lower()]
    by = request.GET.get("ordering") or USUAL
    value_of = COLUMNS[by][1]
    found.sort(key=lambda row: row.name)
    if by != "name":
        found.sort(key=value_of, reverse=True)
    context = {
        "section": "users",
        "rows": found[:MOST],
        "total": len(found),
        "totals": _totals(found),
        "heads": [
            Head(name, title, keyset_pages.address(request, ordering=name), name == by)
            for name, (title, _) in COLUMNS.items()
        ],
        "q": wanted,
        "window": seen,
        "held_up": ",".join(user_queries.HELD_UP),
        "RUNNING": user_queries.RUNNING,
        "QUEUED": user_queries.QUEUED,
        "seconds": REFRESH_S,
        "now": now,
        "counted_at": counted_at,
    }
    return render(request, "tasks_app/user_list.html", context)


def _totals(rows: Sequence[UserRow]) -> UserRow:
    return UserRow(
        "",
        sum(r.tasks for r in rows),
        sum(r.held_up for r in rows),
        sum(r.running for r in rows),
        sum(r.queued for r in rows),
        None,
        None,
        sum(r.finished for r in rows),
        sum(r.failed for r in rows),
        sum(r.wasted_core_s for r in rows),
    )


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit and how much of it is used; `most` None is no limit. `percent` is at most 100."""

    title: str
    used: str
    most: str | None
    percent: float | None

    @property
    def tone(self) -> str:
        return (
            "wait" if self.percent is None else "bad" if self.percent >= 100 else "warn" if self.percent >= 85 else "ok"
        )


@needs(Right.READ)
@require_safe
@takes()
def user_page(request: HttpRequest, name: str) -> HttpResponse:
    """One user. Their mails and tokens are shown to themselves, and the mails to those who run the grid."""
    if "\x00" in name or len(name) > 150:
        raise Http404
    caller, now = caller_of(request), timezone.now()
    seen = window.read(request.GET, now, "24h")
    tasks = user_queries.tasks_by_status(name)
    places = user_queries.places(name)
    account = _account(name, now)
    hours = user_queries.hours(name, seen)
    if not tasks and not places.sites and not hours and account is None:
        raise Http404(f"there is no user {name}")
    latest = list(Task.objects.filter(user=name).order_by("-id")[:LATEST]) if tasks else []
    waste = user_queries.waste(name, seen)
    context = {
        "section": "users",
        "name": name,
        "account": account,
        "is_own": caller.name == name,
        "tasks": [(s, _tasks_url(name, s), f"{s} {words.capped(n)}") for s, n in tasks.items()],
        "latest": latest,
        "places": places,
        "limits": _limits(name, places),
        "window": seen,
        "hours": hours,
        "finished": sum(hour.finished for hour in hours),
        "failed": sum(hour.failed for hour in hours),
        "waste": waste,
        "wasted_core_h": sum(row.wasted_core_h for row in waste),
        "deeds": audit.visible_to(caller).filter(actor=name).order_by("-id")[:8],
        "RUNNING": user_queries.RUNNING,
        "QUEUED": user_queries.QUEUED,
        "seconds": REFRESH_S,
        "now": now,
        "counted_at": places.counted,
        **_own(name, account, caller, latest),
    }
    return render(request, "tasks_app/user_page.html", context)


def _account(name: str, now: datetime) -> Any:
    """The account of that name with `group_names`, and `valid_tokens`, how many there are; None without one. One query."""
    of_user = ApiToken.objects.filter(user=OuterRef("pk"), revoked=False, expires__gt=now).order_by()
    tokens = Coalesce(Subquery(of_user.values("user").annotate(n=Count("id")).values("n")), 0)
    found = User.objects.annotate(group_names=ArrayAgg("groups__name", default=[]), valid_tokens=tokens)
    return found.filter(username=name).first()


def _tasks_url(user: str, status: str) -> str:
    return f"{reverse('dashboard:tasks')}?{urlencode({'user': user, 'status': status})}"


def _own(name: str, account: Any, caller: Caller, latest: Sequence[Task]) -> dict[str, Any]:
    """What is the user's own affair: mails on the latest tasks, and how many tokens are valid."""
    found: dict[str, Any] = {}
    if caller.name == name or caller.may(Right.OPERATE):
        mails = Notification.objects.filter(task_id__in=[task.id for task in latest])
        found["mails"] = mails.order_by("-id")[:8]
    if caller.name == name and account is not None:
        found["tokens"] = account.valid_tokens
    return found


def _limits(name: str, places: user_queries.Places) -> list[Limit]:
    """What the user has of what one user may have. Two queries."""
    most_jobs, most_cores = site_limits.number("CAP_RUNNING_USER_JOBS"), site_limits.number("CAP_RUNNING_USER_CORES")
    analysis = AnalysisUser.objects.filter(pk=name).first()
    sandboxes = Sandbox.objects.filter(owner=name).aggregate(size=Sum("size"), n=Count("id"))
    queue_cap = None if most_jobs is None else most_jobs * QUEUED_TO_RUNNING
    rows = [_limit("running jobs", places.running, most_jobs), _limit("queued jobs", places.queued, queue_cap)]
    if analysis is not None:
        rows.append(_limit("cores for analysis", analysis.slots_hi + analysis.slots_mid, most_cores))
        if analysis.disk_gb is not None:
            rows.append(Limit("disk used by own datasets", words.size(analysis.disk_gb * 1e9), None, None))
    quota = settings.JEDI_SANDBOX_QUOTA_MB * 1_000_000
    used = sandboxes["size"] or 0
    title = f"sandboxes ({sandboxes['n']})"
    rows.append(Limit(title, words.size(used), words.size(quota), min(100 * used / quota, 100) if quota else None))
    return rows


def _limit(title: str, used: int, most: float | None) -> Limit:
    if most is None:
        return Limit(title, words.count(used), None, None)
    part = min(100 * used / most, 100) if most > 0 else 100.0
    return Limit(title, words.count(used), words.count(round(most)), part)
