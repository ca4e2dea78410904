"""The first page: is everything normal, and what needs somebody? And the search box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from jedisite import agent_state
from jedisite.identity import Right, needs
from jedisite.models import Agent
from tasks_app.dashboard import pages, queries, words
from tasks_app.models import Job, Task
from tasks_app.states import JOB_AT_PILOT, JOB_QUEUED, TASK_FINAL, JobStatus, TaskStatus

REFRESH_S = 10
RECENT = 15
ASK_A_PERSON = (TaskStatus.EXHAUSTED, TaskStatus.PENDING, TaskStatus.THROTTLED)


@dataclass(frozen=True, slots=True)
class Tile:
    label: str
    value: str
    url: str
    tone: str


@needs(Right.READ)
@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    tasks = pages.capped_counts(Task._meta.db_table, "status", [s.value for s in TaskStatus])
    jobs = pages.capped_counts(Job._meta.db_table, "jobstatus", [s.value for s in JobStatus])
    now = timezone.now()
    recent = list(Task.objects.select_related("work_queue").order_by("-pk")[:RECENT])
    context = {
        "section": "overview",
        "tiles": _tiles(tasks, jobs),
        "late": [row for row in agent_state.rows(Agent.objects.all(), now) if row.tone == "bad"],
        "rows": queries.task_rows(recent),
        "seconds": REFRESH_S,
        "now": now,
        "AT_PILOT": queries.AT_PILOT,
        "QUEUED": queries.QUEUED,
    }
    return render(request, "tasks_app/overview.html", context)


def _tiles(tasks: Mapping[str, int], jobs: Mapping[str, int]) -> list[Tile]:
    active = [s.value for s in TaskStatus if s not in TASK_FINAL]
    running, queued = sorted(JOB_AT_PILOT), sorted(JOB_QUEUED)
    return [
        _tile("open tasks", "tasks", tasks, active, "run"),
        _tile("tasks held up", "tasks", tasks, [s.value for s in ASK_A_PERSON], "warn"),
        _tile("tasks failed or broken", "tasks", tasks, ["failed", "broken"], "bad"),
        _tile("tasks partly done", "tasks", tasks, ["finished"], "warn"),
        _tile("tasks done", "tasks", tasks, ["done"], "ok"),
        _tile("jobs at pilots", "jobs", jobs, running, "run"),
        _tile("jobs queued", "jobs", jobs, queued, "wait"),
        _tile("jobs failed", "jobs", jobs, ["failed"], "bad"),
        _tile("jobs finished", "jobs", jobs, ["finished"], "ok"),
    ]


def _tile(label: str, page: str, counts: Mapping[str, int], statuses: Sequence[str], tone: str) -> Tile:
    total = sum(counts.get(status, 0) for status in statuses)
    # A part that was cut at the cap makes the sum a lower bound too.
    cut = any(counts.get(status, 0) > words.COUNT_CAP for status in statuses)
    value = words.capped(max(total, words.COUNT_CAP + 1) if cut else total)
    url = f"{reverse(f'dashboard:{page}')}?{urlencode({'status': ','.join(statuses)}, safe=',')}"
    return Tile(label, value, url, tone if total else "wait")


@needs(Right.READ)
@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """A number goes to the task or job that has it; anything else lists the tasks with that in their name."""
    text = request.GET.get("q", "").strip()[:200]
    wanted = pages.number(text)
    if wanted is not None:
        if Task.objects.filter(pk=wanted).exists():
            return redirect("dashboard:task", task_id=wanted)
        if Job.objects.filter(pk=wanted).exists():
            return redirect("dashboard:job", job_id=wanted)
    if not text:
        return redirect("dashboard:tasks")
    return redirect(f"{reverse('dashboard:tasks')}?{urlencode({'name': text})}")
