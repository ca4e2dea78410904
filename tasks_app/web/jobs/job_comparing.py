"""Two or a few jobs side by side: what differs first, what is equal below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from jedisite.identity.callers import Right, needs
from jedisite.web.columns import Column
from tasks_app.lists.job_columns import JOBS
from tasks_app.models import Job, JobArchive
from tasks_app.web.frame import keyset_pages
from tasks_app.web.lists import cells
from tasks_app.web.lists.misspelt import takes

MOST = 6
_NOT_COMPARED = frozenset({"id"})


@dataclass(frozen=True, slots=True)
class Line:
    """One attribute: how each job shows it, in the order of the jobs."""

    column: Column
    values: list[str | SafeString]


@needs(Right.READ)
@require_safe
@takes("ids")
def compare(request: HttpRequest) -> HttpResponse:
    """The jobs that `ids=1,2` names, living or archived. What is wrong with the address is said on the page."""
    asked = [part.strip() for part in request.GET.get("ids", "")[:400].split(",") if part.strip()]
    ids = list(dict.fromkeys(number for part in asked if (number := keyset_pages.number(part)) is not None))
    faults = []
    if len(ids) < len(set(asked)):
        faults.append("ids: enter job numbers, separated by commas.")
    if len(ids) > MOST:
        faults.append(f"ids: at most {MOST} jobs can be compared; only the first ones are shown.")
    rows = _rows(ids[:MOST])
    missing = [number for number in ids[:MOST] if number not in {row["id"] for row in rows}]
    if missing:
        faults.append(f"ids: there is no job {', '.join(map(str, missing))}.")
    different, equal = _lines(rows)
    context = {
        "section": "jobs",
        "rows": rows,
        "different": different,
        "equal": equal,
        "faults": faults,
        "ids": ",".join(map(str, ids)),
    }
    return render(request, "tasks_app/job_compare.html", context)


def _rows(ids: list[int]) -> list[dict[str, Any]]:
    """All columns of the jobs, in the order that was asked for. One statement."""
    if not ids:
        return []
    chosen = list(JOBS.by_name.values())
    names = JOBS.needed(chosen)
    living = Job.objects.filter(pk__in=ids).order_by().values(*names)
    archived = JobArchive.objects.filter(pk__in=ids).order_by().values(*names)
    found = {row["id"]: row for row in JOBS.rows(list(living.union(archived, all=True)), chosen)}
    return [found[number] for number in ids if number in found]


def _lines(rows: list[dict[str, Any]]) -> tuple[list[Line], list[Line]]:
    """Attributes that differ, and those that all jobs have in common; what none of them has is left out."""
    now = timezone.now()
    different: list[Line] = []
    equal: list[Line] = []
    for column in JOBS.by_name.values():
        values = [row[column.name] for row in rows]
        if column.name in _NOT_COMPARED or all(value in (None, "") for value in values):
            continue
        kind = "time" if column.kind == "ago" else column.kind
        line = Line(column, [cells.shown(kind, value, now) for value in values])
        (equal if len(set(map(str, values))) == 1 else different).append(line)
    return different, equal
