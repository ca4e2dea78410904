"""The search box: what has exactly that number or name; else the tasks with that in their name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from brokerage_app.models import Queue
from jedisite.identity.callers import Right, needs
from jedisite.identity.people import accounts_named
from tasks_app.ddm.local_storage import container_name
from tasks_app.models import CatalogueDataset, Dataset, Job, JobArchive, Task, Workflow
from tasks_app.web.frame import keyset_pages
from tasks_app.web.lists.misspelt import takes

MOST_OF_A_KIND: Final = 20


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that was found: `kind` in one word, its name, what else tells it from others, and its page."""

    kind: str
    name: str
    more: str
    url: str


@needs(Right.READ)
@require_safe
@takes("q")
def search(request: HttpRequest) -> HttpResponse:
    """One hit: its page. Several: a list of them. None: the list of tasks whose name contains the text."""
    text = request.GET.get("q", "").replace("\x00", "").strip()[:255]
    if not text:
        return redirect("dashboard:tasks")
    hits = [*_by_number(text), *_by_name(text)]
    if not hits:
        return redirect(f"{reverse('dashboard:tasks')}?{urlencode({'name': text})}")
    if len(hits) == 1:
        return redirect(hits[0].url)
    others = f"{reverse('dashboard:tasks')}?{urlencode({'name': text})}"
    return render(request, "tasks_app/search.html", {"text": text, "hits": hits, "others": others})


def _by_number(text: str) -> Iterator[Hit]:
    wanted = keyset_pages.number(text)
    if wanted is None:
        return
    for task in Task.objects.filter(pk=wanted).only("id", "name", "status"):
        yield Hit("task", str(task.id), f"{task.name or ''} ({task.status})", reverse("dashboard:task", args=[task.id]))
    for number, name, owner in Workflow.objects.filter(pk=wanted).values_list("id", "name", "owner"):
        yield Hit("workflow", str(number), f"{name} of {owner}", reverse("dashboard:workflow", args=[number]))
    for model in (Job, JobArchive):
        for status in model.objects.filter(pk=wanted).values_list("status", flat=True):
            yield Hit("job", str(wanted), status, reverse("dashboard:job", args=[wanted]))


def _by_name(text: str) -> Iterator[Hit]:
    named = Task.objects.filter(name=text).order_by("-id").values_list("id", "status", "user")
    for task, status, user in named[:MOST_OF_A_KIND]:
        yield Hit("task", text, f"{task}, {status}, of {user}", reverse("dashboard:task", args=[task]))
    workflows = Workflow.objects.filter(name=text).order_by("-id").values_list("id", "owner")
    for number, owner in workflows[:MOST_OF_A_KIND]:
        yield Hit("workflow", text, f"{number}, of {owner}", reverse("dashboard:workflow", args=[number]))
    sites = Queue.objects.filter(Q(name__iexact=text) | Q(site_name__iexact=text)).order_by("name")
    for name, status in sites.values_list("name", "status")[:MOST_OF_A_KIND]:
        yield Hit("site", name, status, reverse("dashboard:site", args=[name]))
    users = accounts_named([text])
    if text not in users and Task.objects.filter(user=text).exists():
        users.append(text)
    for user in users[:MOST_OF_A_KIND]:
        yield Hit("user", user, "", reverse("dashboard:user", args=[user]))
    # The page of the dataset itself leads to its uses, of which the newest may have failed without its fault.
    kept = CatalogueDataset.objects.filter(name__in=[text, container_name(text)])
    known = False
    for number, name, owner in kept.order_by("name").values_list("id", "name", "owner"):
        known = True
        yield Hit("dataset", name, f"of {owner or 'this site'}", reverse("dashboard:catalogued", args=[number]))
    uses = Dataset.objects.none() if known else Dataset.objects.of_container(text).order_by("-id")
    for dataset, name, kind, task in uses.values_list("id", "name", "type", "task_id")[:1]:
        yield Hit("dataset", name, f"{kind} of task {task}", reverse("dashboard:dataset", args=[dataset]))
