"""Pages on workers: who starts pilots, which batch jobs there are, and one of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from brokerage_app.models import Queue
from jedisite.identity.callers import Right, needs
from tasks_app.api.v2.grid_resources import WorkerViewSet
from tasks_app.lists.worker_columns import WORKERS
from tasks_app.models import Harvester, HarvesterCommand, HarvesterDialog, Job, Worker, WorkerJob
from tasks_app.models.worker import WORKER_ENDED
from tasks_app.web.lists import cells, list_page
from tasks_app.web.lists.facets import FacetOf
from tasks_app.web.lists.listing import Listing
from tasks_app.web.lists.misspelt import takes
from tasks_app.web.machinery import worker_facts

REFRESH_S = 10
SILENT = timedelta(minutes=30)
"""An instance that has not been heard of for so long is shown as silent."""
SHOWN = 100
COLUMN = WORKERS.by_name
PAGE = "dashboard:workers"
LISTING = Listing(
    page=PAGE,
    api="api-v2:workers",
    section="workers",
    title="Workers",
    one="worker",
    many="workers",
    view=WorkerViewSet,
    facets=(
        FacetOf("status", "Status", "status"),
        FacetOf("site", "Queue", "site"),
        FacetOf("harvester", "Instance", "harvester"),
    ),
    cells={
        "worker_id": cells.to("dashboard:worker", COLUMN["worker_id"], by="id"),
        "harvester": cells.filtered(PAGE, "harvester", COLUMN["harvester"]),
        "site": cells.filtered(PAGE, "site", COLUMN["site"]),
        "status": cells.filtered(PAGE, "status", COLUMN["status"]),
    },
    template="tasks_app/worker_list.html",
    nothing_yet="No harvester instance has reported a worker yet.",
)


@needs(Right.READ)
@require_safe
def worker_list(request: HttpRequest) -> HttpResponse:
    """Workers, newest first, filtered by the address; below them pilots of local services, numbers by queue, errors of batch
    systems, versions of pilots, and instances."""
    now = timezone.now()
    facts = worker_facts.workers(now)
    instances: list[tuple[Harvester, Any]] = [
        (one, facts.instances.get(one.id)) for one in Harvester.objects.order_by("-last_update")[:SHOWN]
    ]
    unwalled = Queue.objects.filter(data__has_key="unwalled").order_by("name").values_list("name", "data__unwalled")
    more: dict[str, Any] = {"instances": instances, "silent_since": now - SILENT, "unwalled": list(unwalled[:SHOWN])}
    pilots = worker_facts.local_pilots(now, SHOWN)
    return list_page.show(request, LISTING, facts=facts, local_pilots=pilots, **more)


@needs(Right.READ)
@require_safe
@takes()
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
