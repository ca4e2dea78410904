"""The page on sites: the queues where work runs, their limits and what they have to do."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from brokerage_app.models import Queue
from jedisite.identity import Right, needs
from tasks_app.dashboard import queries

REFRESH_S = 10


@needs(Right.READ)
@require_safe
def site_list(request: HttpRequest) -> HttpResponse:
    loads = queries.loads_of_sites()
    nothing = queries.SiteLoad()
    context = {
        "section": "sites",
        "rows": [(queue, loads.get(queue.name, nothing)) for queue in Queue.objects.order_by("name")],
        "seconds": REFRESH_S,
        "now": timezone.now(),
        "AT_PILOT": queries.AT_PILOT,
        "QUEUED": queries.QUEUED,
    }
    return render(request, "tasks_app/sites.html", context)
