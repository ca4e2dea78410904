"""Pages that say why: a task waits, a site gets no work, the tasks of a share wait."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from brokerage_app.whatif import ChangeError
from jedisite.identity import Right, needs
from tasks_app.explaining import places, tasks, whatif
from tasks_app.models import Task

REFRESH_S = 10
LONGEST = 10_000


@needs(Right.READ)
@require_safe
def task_why(request: HttpRequest, task_id: int) -> HttpResponse:
    task = get_object_or_404(Task.objects.select_related("work_queue"), pk=task_id)
    now = timezone.now()
    context = {"section": "tasks", "task": task, "why": tasks.why(task, now), "seconds": REFRESH_S, "now": now}
    return render(request, "tasks_app/task_why.html", context)


@needs(Right.READ)
@require_safe
def task_what_if(request: HttpRequest, task_id: int) -> HttpResponse:
    """A form of changes, one a line, and what they would make of the last decision. The address holds the changes."""
    task = get_object_or_404(Task, pk=task_id)
    text = request.GET.get("changes", "")[:LONGEST]
    lines = [line for line in text.splitlines() if line.strip()]
    context = {"section": "tasks", "task": task, "text": text, "now": timezone.now()}
    status = 200
    if lines:
        try:
            context["found"] = whatif.told(*whatif.for_task(task_id, lines))
        except (ChangeError, whatif.NothingKeptError) as exc:
            context["problem"], status = str(exc), 400 if isinstance(exc, ChangeError) else 200
    return render(request, "tasks_app/task_what_if.html", context, status=status)


@needs(Right.READ)
@require_safe
def site_why(request: HttpRequest, name: str) -> HttpResponse:
    queue, now = places.queue_of(name), timezone.now()
    if queue is None:
        raise Http404
    why = places.why_site(queue, now, name=name)
    context = {"section": "sites", "queue": queue, "why": why, "seconds": REFRESH_S, "now": now}
    return render(request, "tasks_app/site_why.html", context)


@needs(Right.READ)
@require_safe
def share_why(request: HttpRequest, name: str) -> HttpResponse:
    """An old address: the page of a share says why its tasks wait."""
    return redirect(f"{reverse('dashboard:share', args=[name])}#why", permanent=True)
