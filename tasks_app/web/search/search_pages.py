"""The search: the page of what has exactly that number or name; else what has its words, by kind. And suggestions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from jedisite.identity.callers import Right, needs
from tasks_app.domain import search_words
from tasks_app.domain import words as numbers
from tasks_app.web.lists.misspelt import takes
from tasks_app.web.search.finding import TITLES, Found, Group, failures_of, find

FEW, MANY, SUGGESTED = 5, 100, 3
"""Results of a kind among others and by itself, and suggestions of a kind."""
MOST_SUGGESTIONS: Final = 12
WEEK: Final = "7d"
PAGES: Final = {
    "task": "task",
    "job": "job",
    "workflow": "workflow",
    "error": "error",
    "site": "site",
    "user": "user",
    "queue": "queue",
    "share": "share",
    "reason": "code",
}
"""The page of each kind whose key is all that it takes."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A line of the results. `jobs`: how many failed with that error, and `jobs_url` their list."""

    name: str
    more: str
    url: str
    jobs: str = ""
    jobs_url: str = ""


@needs(Right.READ)
@require_safe
@takes("q", "kind")
def search(request: HttpRequest) -> HttpResponse:
    """The page of the one thing that has this number or name; without one, all that has the words, by kind.

    With `kind` more of that kind, and no page is opened.
    """
    given = request.GET.get("q", "")
    text = search_words.clean(given[: search_words.LONGEST_TEXT])
    kind = request.GET.get("kind", "")
    groups = find(text, MANY if kind in TITLES else FEW)
    if kind in TITLES:
        groups = [group for group in groups if group.kind == kind]
    else:
        exact = [found for group in groups for found in group.found if found.exact]
        if len(exact) == 1:
            return redirect(url_of(exact[0]))
    context = {
        "searched": text,
        "cut": search_words.LONGEST_TEXT if len(given) > search_words.LONGEST_TEXT else None,
        "wordless": bool(text) and not search_words.words_of(text),
        "kind": TITLES.get(kind, ""),
        "everything": f"{reverse('dashboard:search')}?{urlencode({'q': text})}",
        "groups": [(group, hits_of(group), _all_url(text, group)) for group in groups],
    }
    return render(request, "tasks_app/search.html", context)


@needs(Right.READ)
@require_safe
@takes("q")
def suggestions(request: HttpRequest) -> HttpResponse:
    """The best results as options of a list box, for the box in which somebody types."""
    text = search_words.clean(request.GET.get("q", "")[: search_words.LONGEST_TEXT])
    options = [
        (hit, group.title)
        for group in find(text, SUGGESTED)
        for hit in (Hit(found.name, found.more, url_of(found)) for found in group.found)
    ]
    return render(request, "tasks_app/search_suggestions.html", {"options": options[:MOST_SUGGESTIONS]})


def hits_of(group: Group) -> list[Hit]:
    """The lines of a group. One query for errors, none for the others."""
    if group.kind != "error":
        return [Hit(found.name, found.more, url_of(found)) for found in group.found]
    jobs = failures_of([int(found.key) for found in group.found])
    return [
        Hit(
            found.name,
            found.more,
            url_of(found),
            numbers.capped(jobs[int(found.key)]),
            f"{reverse('dashboard:errors-jobs')}?{urlencode({'fingerprint': found.key, 'window': WEEK})}",
        )
        for found in group.found
    ]


def url_of(found: Found) -> str:
    """The page of what was found."""
    if found.kind == "node":
        failed = f"{reverse('dashboard:errors-jobs')}?{urlencode({'node': found.name, 'window': WEEK})}"
        return reverse("dashboard:site-nodes", args=[found.within]) if found.within else failed
    if found.kind in ("dataset", "file"):
        return reverse("dashboard:catalogued" if found.within == "catalogue" else "dashboard:dataset", args=[found.key])
    # Errors are sought long after they happened, and the page's own window is shorter.
    window = f"?{urlencode({'window': WEEK})}" if found.kind == "error" else ""
    return reverse(f"dashboard:{PAGES[found.kind]}", args=[found.key]) + window


def _all_url(text: str, group: Group) -> str:
    if group.count <= len(group.found) or len(group.found) == MANY:
        return ""
    return f"{reverse('dashboard:search')}?{urlencode({'q': text, 'kind': group.kind})}"
