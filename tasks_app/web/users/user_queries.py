"""What the pages on users ask of the database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Count, F, Max, Q, Sum

from brokerage_app.models import AnalysisUser, UserCount
from tasks_app.counts.statistics import ACTIVITY, COUNTED
from tasks_app.domain import words
from tasks_app.domain.states import TaskStatus
from tasks_app.domain.window import Window
from tasks_app.models import ErrorFingerprint, JobEnds, JobFailure, Task

HELD_UP = (TaskStatus.EXHAUSTED, TaskStatus.PENDING, TaskStatus.THROTTLED, TaskStatus.PAUSED)
RUNNING = "running"
QUEUED = "defined,assigned,activated,sent,starting"
"""The states that are counted as running and as queued in the counts by user."""
TOP_ERRORS = 8


@dataclass(slots=True)
class UserRow:
    """A user now and in a window of time. `wasted_core_s`: cores times walltime of the jobs that failed."""

    name: str
    tasks: int = 0
    held_up: int = 0
    running: int = 0
    queued: int = 0
    cores: int | None = None
    disk_gb: float | None = None
    finished: int = 0
    failed: int = 0
    wasted_core_s: int = 0

    @property
    def failure_percent(self) -> float | None:
        ended = self.finished + self.failed
        return 100 * self.failed / ended if ended else None

    @property
    def wasted_core_h(self) -> float:
        return self.wasted_core_s / 3600


def user_rows(window: Window) -> list[UserRow]:
    """Everybody who has an open task or job, or had one end in the window. Five queries."""
    rows: defaultdict[str, UserRow] = defaultdict(lambda: UserRow(""))
    held_up = Count("id", filter=Q(status__in=HELD_UP))
    for task in Task.objects.open().values("user").annotate(n=Count("id"), held=held_up).order_by():
        rows[task["user"]].tasks, rows[task["user"]].held_up = task["n"], task["held"]
    for job in UserCount.objects.values("user").annotate(q=Sum("queued"), r=Sum("running")).order_by():
        rows[job["user"]].queued, rows[job["user"]].running = job["q"], job["r"]
    ended = JobEnds.objects.filter(dimension="user", hour__gt=window.since - timedelta(hours=1), hour__lt=window.until)
    for end in ended.values("key").annotate(ok=Sum("finished"), bad=Sum("failed")).order_by():
        rows[end["key"]].finished, rows[end["key"]].failed = end["ok"], end["bad"]
    lost = JobFailure.objects.filter(ended__gte=window.since, ended__lt=window.until)
    for loss in lost.values("user").annotate(wasted=Sum("wasted_core_s")).order_by():
        rows[loss["user"]].wasted_core_s = loss["wasted"]
    for user in AnalysisUser.objects.filter(user__in=list(rows)):
        rows[user.user].cores, rows[user.user].disk_gb = user.slots_hi + user.slots_mid, user.disk_gb
    for name, made in rows.items():
        made.name = name
    return [row for row in rows.values() if row.name]


def tasks_by_status(user: str) -> dict[str, int]:
    """Tasks of a user by status, each counted to just above words.COUNT_CAP; states without any are left out. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT s, (SELECT count(*) FROM (SELECT 1 FROM jedi_tasks WHERE username = %s AND status = s LIMIT %s) c)
                 FROM unnest(%s::text[]) AS s""",
            [user, words.COUNT_CAP + 1, [status.value for status in TaskStatus]],
        )
        return {status: number for status, number in cursor.fetchall() if number}


@dataclass(frozen=True, slots=True)
class Places:
    """Where a user's open jobs are: (name, running, queued), most first; `sites` of queues, `shares` of shares.

    counted   when they were counted; None before the first count
    """

    sites: list[tuple[str, int, int]] = field(default_factory=list)
    shares: list[tuple[str, int, int]] = field(default_factory=list)
    running: int = 0
    queued: int = 0
    counted: datetime | None = None


_PLACES = f"""
SELECT counted.at, c.computingsite, c.gshare, c.nrunning, c.nqueue
  FROM {COUNTED} LEFT JOIN user_counts c ON c.produsername = %(user)s
"""  # noqa: S608 - a constant


def places(user: str) -> Places:
    """One query."""
    with connection.cursor() as cursor:
        cursor.execute(_PLACES, {"user": user, "counts": [ACTIVITY]})
        rows = cursor.fetchall()
    found = [row[1:] for row in rows if row[1] is not None]
    sites = _summed((site, running, queued) for site, _, running, queued in found)
    shares = _summed((share, running, queued) for _, share, running, queued in found)
    return Places(sites, shares, sum(row[2] for row in found), sum(row[3] for row in found), rows[0][0])


def _summed(rows: Iterable[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    total: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, running, queued in rows:
        total[name][0] += running
        total[name][1] += queued
    return sorted(((name, r, q) for name, (r, q) in total.items()), key=lambda row: (-row[1] - row[2], row[0]))


@dataclass(frozen=True, slots=True)
class Hour:
    """Jobs of a user that ended in one hour."""

    start: datetime
    finished: int
    failed: int


def hours(user: str, window: Window) -> list[Hour]:
    """The hours of the window in which jobs of the user ended, oldest first. One query."""
    since = window.since - timedelta(hours=1)
    found = JobEnds.objects.filter(dimension="user", key=user, hour__gt=since, hour__lt=window.until).order_by("hour")
    return [Hour(row.hour, row.finished, row.failed) for row in found]


@dataclass(frozen=True, slots=True)
class Waste:
    """Failures of one kind: how many jobs, what they cost, and when the last one was."""

    fingerprint: ErrorFingerprint
    jobs: int
    wasted_core_h: float
    last: datetime


_KIND = ("component", "code", "text", "category")


def waste(user: str, window: Window) -> list[Waste]:
    """What the user's failed jobs in the window died of, the dearest first. One query."""
    found = (
        JobFailure.objects.filter(user=user, ended__gte=window.since, ended__lt=window.until)
        .values("fingerprint_id", *(f"fingerprint__{name}" for name in _KIND))
        .annotate(n=Count("id"), wasted=Sum("wasted_core_s"), last=Max("ended"))
        .order_by(F("wasted").desc())[:TOP_ERRORS]
    )
    return [
        Waste(
            ErrorFingerprint(id=row["fingerprint_id"], **{name: row[f"fingerprint__{name}"] for name in _KIND}),
            row["n"],
            row["wasted"] / 3600,
            row["last"],
        )
        for row in found
    ]
