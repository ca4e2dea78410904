"""Pages on work queues: the list with what holds each back, one queue with the sites where its jobs are, and the tester."""

from __future__ import annotations

from typing import Any, Final

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from brokerage_app.grid import installed_policy
from brokerage_app.models import GlobalShare
from brokerage_app.policy.attributes import TaskAttributes
from brokerage_app.policy.placement import Explained, Wish, explain
from brokerage_app.policy.workqueues import WorkQueues
from jedisite.identity.callers import Right, needs
from jedisite.vocabulary.words import plural
from tasks_app.counts import statistics
from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.drawing import bullets
from tasks_app.models import Task
from tasks_app.submission import assignment
from tasks_app.usage import queue_use
from tasks_app.web.frame import keyset_pages
from tasks_app.web.lists.misspelt import takes
from tasks_app.web.tasks import page_queries

REFRESH_S = 30
SHOWN = 15
LONGEST = 128
FIELDS: Final = {
    "vo": "vo",
    "label": "prod_source_label",
    "workingGroup": "working_group",
    "processingType": "processing_type",
    "coreCount": "core_count",
    "site": "site",
    "eventService": "event_service",
    "splitRule": "split_rule",
    "campaign": "campaign",
    "transPath": "trans_path",
}
"""Fields of the tester, and the attribute that each stands for."""
ASKED: Final = "a-"
"""Before the names of its parameters: the frame has some of its own with the same names."""
NUMBERS: Final = ("coreCount", "eventService")
OPEN: Final = ",".join(status.value for status in TaskStatus if status not in TASK_FINAL)


@needs(Right.READ)
@require_safe
@takes(*(ASKED + name for name in FIELDS))
def queue_list(request: HttpRequest) -> HttpResponse:
    now, counted_at = timezone.now(), statistics.counted_at()
    rows = queue_use.queue_uses(now)
    names = {f"queue:{row.queue.id}": row.queue for row in rows}
    context = {
        "section": "queues",
        "rows": rows,
        "has_tree": GlobalShare.objects.exists(),
        "has_shares": any(row.queue.share is not None for row in rows),
        "throttle": [(record, names.get(record.queue)) for record in queue_use.throttle_records(now)],
        "fields": _fields(request),
        "open_statuses": OPEN,
        "AT_PILOT": page_queries.AT_PILOT,
        "QUEUED": page_queries.QUEUED,
        "seconds": REFRESH_S,
        "now": now,
        "counted_at": counted_at,
    }
    return render(request, "tasks_app/queues.html", context)


@needs(Right.READ)
@require_safe
@takes()
def queue_page(request: HttpRequest, queue_id: int) -> HttpResponse:
    """One work queue: its rule, its numbers, and at which sites its jobs are."""
    now, counted_at = timezone.now(), statistics.counted_at()
    row = next((one for one in queue_use.queue_uses(now) if one.queue.id == queue_id), None)
    if row is None:
        raise Http404
    at_sites = queue_use.at_sites(queue_id)
    largest = max((jobs.cores for _, jobs in at_sites), default=0)
    open_tasks = Task.objects.filter(work_queue=queue_id).exclude(status__in=TASK_FINAL)
    context = {
        "section": "queues",
        "row": row,
        "has_tree": GlobalShare.objects.exists(),
        "sites": [
            (
                site,
                jobs,
                bullets.of_amount(
                    jobs.cores, None, f"{plural(jobs.cores, 'core')} at {site}", "run", top=float(largest)
                ),
            )
            for site, jobs in at_sites
        ],
        "tasks": open_tasks.order_by("-current_priority", "id")[:SHOWN],
        "open_statuses": OPEN,
        "AT_PILOT": page_queries.AT_PILOT,
        "QUEUED": page_queries.QUEUED,
        "seconds": REFRESH_S,
        "now": now,
        "counted_at": counted_at,
    }
    return render(request, "tasks_app/queue_page.html", context)


@needs(Right.READ)
@require_safe
@takes("task", *(ASKED + name for name in FIELDS))
def queue_tester(request: HttpRequest) -> HttpResponse:
    """Which work queue and share a task would get, and why: a task by its number, or one that is only described."""
    task_id, problems = keyset_pages.number(request.GET.get("task")), list[str]()
    found: Explained | None = None
    task = Task.objects.filter(pk=task_id).first() if task_id else None
    if request.GET.get("task", "").strip():
        if task is None:
            problems.append(f"task: there is no task {request.GET['task'][:20]!r}.")
        else:
            found = assignment.explained(task)
    elif any(request.GET.get(ASKED + name) for name in FIELDS):
        attributes = _attributes(request, problems)
        if not problems:
            found = explain(
                attributes, Wish(), WorkQueues(installed_policy.queue_rows()), installed_policy.share_tree()
            )
    context = {
        "section": "queues",
        "fields": _fields(request),
        "task": task,
        "found": found,
        "asked": [("Work queues", found.queues_tried), ("Shares", found.shares_tried)] if found else [],
        "problems": problems,
        "now": timezone.now(),
    }
    return render(request, "tasks_app/queue_tester.html", context, status=400 if problems else 200)


def _fields(request: HttpRequest) -> list[tuple[str, str, bool]]:
    """(name, value, whether it is a number) of each field of the tester."""
    return [(name, request.GET.get(ASKED + name, "")[:LONGEST], name in NUMBERS) for name in FIELDS]


def _attributes(request: HttpRequest, problems: list[str]) -> TaskAttributes:
    """The described task; what is wrong is added to the problems."""
    given: dict[str, Any] = {}
    for name, attribute in FIELDS.items():
        text = request.GET.get(ASKED + name, "").strip()
        if not text:
            continue
        if len(text) > LONGEST:
            problems.append(f"{name}: at most {LONGEST} characters.")
        elif name in NUMBERS:
            if not text.isascii() or not text.isdecimal() or len(text) > 9:
                problems.append(f"{name}: enter a whole number, not {text[:20]!r}.")
            else:
                given[attribute] = int(text)
        else:
            given[attribute] = text
    return TaskAttributes(**given)
