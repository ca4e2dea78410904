"""The page of a dataset or container of the local catalogue: what it is, where it lies, its files, and who uses it."""

from __future__ import annotations

from typing import Final, TypeVar

from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from jedisite.identity.callers import Right, needs
from tasks_app.ddm import data_management
from tasks_app.models import CatalogueDataset, CatalogueFile, Dataset
from tasks_app.web.frame import keyset_pages
from tasks_app.web.lists.misspelt import takes

MOST_USES: Final = 20
MOST_BOXES: Final = 20
M = TypeVar("M", bound=Model)


@needs(Right.READ)
@require_safe
@takes("after")
def catalogued_page(request: HttpRequest, number: int) -> HttpResponse:
    if number > keyset_pages.LARGEST_ID:
        raise Http404
    dataset = get_object_or_404(CatalogueDataset, pk=number)
    uses = Dataset.objects.of_container(dataset.name).select_related("task")
    newest = list(uses.order_by("-id")[: MOST_USES + 1])
    context = {
        "section": "data",
        "dataset": dataset,
        "places": data_management().replicas([dataset.name])[dataset.name],
        "boxes": list(dataset.containers.order_by("name")[:MOST_BOXES]),
        "uses": newest[:MOST_USES],
        "more_uses": len(newest) > MOST_USES,
        "now": timezone.now(),
    }
    if dataset.is_container:
        context["members"] = context["page"] = _page(request, dataset.members.all(), "name")
    else:
        context["files"] = context["page"] = _page(request, CatalogueFile.objects.filter(dataset=dataset), "lfn")
    return render(request, "tasks_app/catalogued.html", context)


def _page(request: HttpRequest, found: QuerySet[M], name: str) -> keyset_pages.Page[M]:
    """The page of `found` behind the name in `?after=`, by name. Two queries."""
    after = request.GET.get("after", "").replace("\x00", "")
    rows = list(
        (found.filter(**{f"{name}__gt": after}) if after else found).order_by(name)[: keyset_pages.PAGE_SIZE + 1]
    )
    more, rows = len(rows) > keyset_pages.PAGE_SIZE, rows[: keyset_pages.PAGE_SIZE]
    return keyset_pages.Page(
        rows,
        keyset_pages.capped_count(found) if after or more else len(rows),
        first_url=keyset_pages.address(request, after=None) if after else "",
        next_url=keyset_pages.address(request, after=getattr(rows[-1], name)) if more else "",
    )
