"""What the pages ask of the database: sets of rows for a whole page at once, never one query a row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, Max

from brokerage_app.models import VerdictRecord
from tasks_app.domain import words
from tasks_app.domain.states import JOB_AT_PILOT, JOB_QUEUED
from tasks_app.models import Job, RetryNote

AT_PILOT = ",".join(sorted(JOB_AT_PILOT))
QUEUED = ",".join(sorted(JOB_QUEUED))


def latest_verdicts(task_ids: Iterable[int]) -> dict[int, VerdictRecord]:
    """The latest verdict of each task that has one."""
    found = VerdictRecord.objects.filter(task_id__in=list(task_ids)).order_by("task_id", "-id").distinct("task_id")
    return {verdict.task_id: verdict for verdict in found}


def rule_effects(task_id: int) -> list[dict[str, Any]]:
    """What retry rules did after jobs of the task had failed: code, number of jobs, last time and latest sentence, newest
    first. One query."""
    notes = RetryNote.objects.filter(task_id=task_id, applied=True).values("code")
    found = notes.annotate(
        jobs=Count("job_id", distinct=True),
        last=Max("at"),
        sentences=ArrayAgg("detail", order_by="-id"),
    )
    return [
        {"code": row["code"], "jobs": row["jobs"], "last": row["last"], "sentence": row["sentences"][0]}
        for row in found.order_by("-last")
    ]


@dataclass(frozen=True, slots=True)
class SiteRow:
    """Jobs of a task at one site, by status in the order of the matrix's columns."""

    site: str
    counts: list[tuple[str, int]]
    total: int


@dataclass(frozen=True, slots=True)
class JobMatrix:
    """Jobs of a task: totals by status, and site by status."""

    by_status: dict[str, int] = field(default_factory=dict)
    rows: list[SiteRow] = field(default_factory=list)
    running_sites: int = 0

    @property
    def statuses(self) -> list[str]:
        return list(self.by_status)

    @property
    def total(self) -> int:
        return sum(self.by_status.values())


def job_matrix(task_id: int) -> JobMatrix:
    """Jobs of a task by site and status. One query."""
    cells: dict[str, dict[str, int]] = defaultdict(dict)
    counted = Job.objects.filter(task_id=task_id).values_list("site", "status").annotate(n=Count("id")).order_by()
    for site, status, n in counted:
        cells[site or ""][status] = n
    present = {status for of_site in cells.values() for status in of_site}
    order: list[str] = [status for status in words.JOB_TONE_ORDER if status in present]
    totals: dict[str, int] = {status: sum(of_site.get(status, 0) for of_site in cells.values()) for status in order}
    rows = [
        SiteRow(site, [(status, of_site.get(status, 0)) for status in order], sum(of_site.values()))
        for site, of_site in sorted(cells.items(), key=lambda pair: (-sum(pair[1].values()), pair[0]))
    ]
    running = sum(any(of_site.get(status) for status in JOB_AT_PILOT) for of_site in cells.values())
    return JobMatrix(totals, rows, running)
