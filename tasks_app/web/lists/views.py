"""Saved views: keeping the address of a list under a name, and the page of all one has."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

from django.contrib import messages
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import NoReverseMatch, reverse
from django.views.decorators.http import require_POST, require_safe

from jedisite.identity.callers import Right, caller_of, needs
from tasks_app.models import SavedView
from tasks_app.models.view import LONGEST_QUERY
from tasks_app.web.lists.misspelt import takes

MOST_VIEWS = 200
PAGES = (
    "tasks",
    "jobs",
    "workflows",
    "sites",
    "workers",
    "queues",
    "shares",
    "errors",
    "data",
    "users",
    "audit",
    "brokerage",
    "agents",
)


def address_of(view: SavedView) -> str:
    """Where a view leads; the overview for a page that is no more."""
    try:
        return f"{reverse(f'dashboard:{view.page}')}?{view.query or 'view=all'}"
    except NoReverseMatch:
        return reverse("dashboard:overview")


@needs(Right.READ)
@require_safe
@takes()
def view_list(request: HttpRequest) -> HttpResponse:
    """One's own views, and those that others share."""
    name = caller_of(request).name
    own = [(view, address_of(view)) for view in SavedView.objects.filter(owner=name).order_by("page", "name")]
    others = SavedView.objects.filter(shared=True).exclude(owner=name).order_by("page", "name")[:MOST_VIEWS]
    context = {"section": "views", "own": own, "others": [(view, address_of(view)) for view in others]}
    return render(request, "lists/views.html", context)


@needs(Right.READ)
@require_POST
def save_view(request: HttpRequest) -> HttpResponse:
    """Keep an address under a name; a view of that name that one has is replaced."""
    owner, page = caller_of(request).name, request.POST.get("page", "")
    name, query = request.POST.get("name", "").strip(), request.POST.get("query", "")
    back = _back(request, page)
    fault = ""
    if page not in PAGES:
        fault = "page: unknown list."
    elif not name or len(name) > 64 or "\x00" in name:
        fault = "name: a view has a name of 1 to 64 characters."
    elif len(query) > LONGEST_QUERY or "\x00" in query:
        fault = f"query: the filters of a view have at most {LONGEST_QUERY} characters."
    elif SavedView.objects.filter(owner=owner).count() >= MOST_VIEWS:
        fault = f"You have {MOST_VIEWS} views already; delete one first."
    if fault:
        messages.error(request, fault)
        return redirect(back)
    clean = urlencode(parse_qsl(query), safe=",")
    flags = {flag: request.POST.get(flag) == "on" for flag in ("shared", "pinned", "is_usual")}
    try:
        with transaction.atomic():
            if flags["is_usual"]:
                SavedView.objects.filter(owner=owner, page=page, is_usual=True).update(is_usual=False)
            SavedView.objects.update_or_create(owner=owner, page=page, name=name, defaults={"query": clean, **flags})
    except IntegrityError:
        messages.error(request, "Another default view was saved at the same moment; try again.")
        return redirect(back)
    messages.success(request, f"The view {name!r} is saved.")
    return redirect(f"{reverse(f'dashboard:{page}')}?{clean or 'view=all'}")


@needs(Right.READ)
@require_POST
def change_view(request: HttpRequest, view_id: int) -> HttpResponse:
    """Delete one's own view, or turn one of its switches."""
    view = get_object_or_404(SavedView, pk=view_id, owner=caller_of(request).name)
    act = request.POST.get("act", "")
    if act == "delete":
        view.delete()
        messages.success(request, f"The view {view.name!r} is deleted.")
    elif act in ("shared", "pinned", "is_usual"):
        with transaction.atomic():
            wanted = not getattr(view, act)
            if act == "is_usual" and wanted:
                SavedView.objects.filter(owner=view.owner, page=view.page, is_usual=True).update(is_usual=False)
            SavedView.objects.filter(pk=view.pk).update(**{act: wanted})
    else:
        messages.error(request, "act: one of delete, shared, pinned, is_usual.")
    return redirect("dashboard:views")


def _back(request: HttpRequest, page: str) -> str:
    return reverse(f"dashboard:{page}") if page in PAGES else reverse("dashboard:views")
