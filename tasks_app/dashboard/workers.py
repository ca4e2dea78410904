"""Pages on workers: who starts pilots, which batch jobs there are, and one of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import Count, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from brokerage_app.models import WorkerStats
from jedisite.identity import Right, needs
from tasks_app.dashboard import pages
from tasks_app.filtersets import WorkerFilter
from tasks_app.models import Harvester, HarvesterCommand, HarvesterDialog, Job, Worker, WorkerJob
from tasks_app.models.worker import WORKER_ENDED, WORKER_OPEN

REFRESH_S = 10
SILENT = timedelta(minutes=30)
"""An instance that has not been heard of for so long is shown as silent."""
STATS_FRESH = timedelta(minutes=60)
SHOWN = 100


@needs(Right.READ)
@require_safe
def worker_list(request: HttpRequest) -> HttpResponse:
    """Instances, numbers of workers by queue, and workers, newest first, filtered by the query string."""
    chosen = WorkerFilter(request.GET, queryset=Worker.objects.all())
    page = pages.keyset_page(request, chosen.qs if chosen.is_valid() else Worker.objects.none())
    now = timezone.now()
    context = {
        "section": "workers",
        "instances": Harvester.objects.order_by("-last_update")[:SHOWN],
        "silent_since": now - SILENT,
        "queues": _by_queue(),
        "page": page,
        "rows": page.rows,
        "filters": chosen.form,
        "statuses": (*WORKER_OPEN, *WORKER_ENDED),
        "filtered": any(value for name, value in request.GET.items() if name != "before"),
        "seconds": REFRESH_S,
        "now": now,
    }
    return render(request, "tasks_app/worker_list.html", context)


def _by_queue() -> list[dict[str, Any]]:
    """Open workers that are known one by one, and the numbers that instances reported, by queue."""
    found: dict[str, dict[str, Any]] = {}
    known = Worker.objects.filter(status__in=WORKER_OPEN).values_list("site", "status").annotate(n=Count("id"))
    fresh = WorkerStats.objects.filter(at__gt=timezone.now() - STATS_FRESH)
    reported = fresh.values_list("queue", "status").annotate(n=Sum("workers"))
    for name, rows in (("known", known.order_by("site", "status")), ("reported", reported.order_by("queue", "status"))):
        for queue, status, workers in rows:
            found.setdefault(queue, {"queue": queue, "known": [], "reported": []})[name].append((status, workers))
    return [found[queue] for queue in sorted(found)]


@needs(Right.READ)
@require_safe
def worker_page(request: HttpRequest, worker_id: int) -> HttpResponse:
    """One worker: its batch job, its pilot, its jobs, and what its instance said lately."""
    worker = get_object_or_404(Worker, pk=worker_id)
    handed = WorkerJob.objects.filter(harvester=worker.harvester, worker_id=worker.worker_id)
    numbers = list(handed.order_by("-job_id").values_list("job_id", flat=True)[: SHOWN + 1])
    jobs = {job.id: job for job in Job.objects.filter(pk__in=numbers)}
    context = {
        "section": "workers",
        "worker": worker,
        "jobs": [(number, jobs.get(number)) for number in numbers[:SHOWN]],
        "more_jobs": len(numbers) > SHOWN,
        "dialogs": HarvesterDialog.objects.filter(harvester=worker.harvester).order_by("-id")[:20],
        "commands": HarvesterCommand.objects.filter(harvester=worker.harvester).order_by("-id")[:10],
        "ended": worker.status in WORKER_ENDED,
        "seconds": REFRESH_S,
        "now": timezone.now(),
    }
    return render(request, "tasks_app/worker_page.html", context)
