"""The page of transfers: links with their queue, rate and failures, files that are being copied, and rules with why they wait."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from jedisite.identity.callers import Right, needs
from jedisite.vocabulary.words import plural, thousands
from tasks_app.transfers import link_use
from tasks_app.web.lists.misspelt import takes

MOST_RULES: Final = 100
MOST_COPIES: Final = 50


@needs(Right.READ)
@require_safe
@takes()
def transfers(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    links, rules = link_use.links(now), link_use.rules_of_note(MOST_RULES)
    copies = link_use.copies(links, MOST_COPIES)
    queued, active = sum(link.queued for link in links), sum(link.active for link in links)
    failed = sum(link.failed for link in links)
    sentence = (
        f"{plural(active, 'file is', 'files are')} being copied, {plural(queued, 'is', 'are')} queued; "
        f"{thousands(failed)} failed in the last hour."
    )
    context = {
        "section": "data",
        "now": now,
        "links": links,
        "copies": [(one, one.ends(now)) for one in copies],
        "more_copies": active - len(copies),
        "rules": link_use.noted(rules, links, now),
        "more_rules": len(rules) == MOST_RULES,
        "sentence": sentence,
        "tone": "warn" if failed else "run" if active else "wait",
    }
    return render(request, "tasks_app/transfers.html", context)
