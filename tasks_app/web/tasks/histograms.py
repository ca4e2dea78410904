"""Histograms that tasks made: output files whose names end in `.hist.json`."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from jedisite.identity.callers import Right, needs
from tasks_app.ddm import small_files
from tasks_app.domain.states import FileStatus
from tasks_app.drawing import plots
from tasks_app.models import File, JobFile, Task
from tasks_app.web.frame import keyset_pages
from tasks_app.web.lists.misspelt import takes

ENDING = ".hist.json"
LIMIT_BYTES = 2_000_000


@needs(Right.READ)
@require_safe
@takes()
def task_histograms(request: HttpRequest, task_id: int) -> HttpResponse:
    """The histogram files of a task, newest first."""
    task = get_object_or_404(Task, pk=task_id)
    page = keyset_pages.keyset_page(request, _files(task_id))
    return render(request, "tasks_app/histograms.html", {"section": "tasks", "task": task, "page": page})


@needs(Right.READ)
@require_safe
@takes()
def histogram_page(request: HttpRequest, task_id: int, file_id: int) -> HttpResponse:
    """The histograms of one file as drawings and tables."""
    task = get_object_or_404(Task, pk=task_id)
    file = get_object_or_404(_files(task_id), pk=file_id)
    written = JobFile.objects.filter(file_id=file_id, lfn=file.lfn, surl__isnull=False).order_by("-id")
    surl = written.values_list("surl", flat=True).first()
    context: dict[str, Any] = {"section": "tasks", "task": task, "file": file, "drawings": [], "problem": ""}
    try:
        content = small_files.small_file(small_files.path_of(surl, file.lfn, scope=file.scope), LIMIT_BYTES)
        context["drawings"] = [plots.draw(histogram) for histogram in plots.read(content)]
    except (small_files.StorageError, plots.HistogramError) as exc:
        context["problem"] = str(exc)
    return render(request, "tasks_app/histogram.html", context)


def _files(task_id: int) -> Any:
    return File.objects.filter(task_id=task_id, type="output", status=FileStatus.FINISHED, lfn__endswith=ENDING)
