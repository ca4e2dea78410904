"""Help pages that are drawn from the tables of the code."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.safestring import mark_safe
from django.utils.text import slugify
from django.views.decorators.http import require_safe

from jedisite.identity.callers import Right, needs
from tasks_app.domain.task_commands import COMMANDS
from tasks_app.drawing.diagrams import draw
from tasks_app.params.command_parameters import PARAMETERS
from tasks_app.params.schema import KeyDescription, describe
from tasks_app.web.help.glossary import GLOSSARY
from tasks_app.web.help.guide import GUIDE
from tasks_app.web.help.machines import CHAPTERS, Chapter
from tasks_app.web.lists.misspelt import takes


def _chapter(chapter: Chapter) -> dict[str, object]:
    rows = [(str(s), chapter.meaning[str(s)], sorted(map(str, nexts))) for s, nexts in chapter.machine.moves.items()]
    return {
        "slug": chapter.slug,
        "title": chapter.machine.title,
        "picture": mark_safe(draw(chapter.machine)),
        "rows": rows,
        "kind": chapter.kind,
    }


_PARAMETERS = describe()
_CHAPTERS = [_chapter(chapter) for chapter in CHAPTERS]


@needs(Right.READ)
@require_safe
@takes()
def guide(request: HttpRequest) -> HttpResponse:
    """What each page is for, with pictures."""
    pages = [
        {
            "slug": entry.slug,
            "title": entry.title,
            "lines": entry.lines,
            "picture": entry.picture,
            "url": reverse(f"dashboard:{entry.page}") if entry.page else "",
        }
        for entry in GUIDE
    ]
    return render(request, "tasks_app/help.html", {"section": "help", "pages": pages})


@needs(Right.READ)
@require_safe
@takes()
def states(request: HttpRequest) -> HttpResponse:
    """The states of tasks, jobs, datasets and files with their moves, and the commands."""
    commands = [
        (command.value, rule, sorted(map(str, rule.accepted)), PARAMETERS.get(command, ()))
        for command, rule in COMMANDS.items()
    ]
    return render(
        request, "tasks_app/help_states.html", {"section": "help", "chapters": _CHAPTERS, "commands": commands}
    )


@needs(Right.READ)
@require_safe
@takes()
def task_parameters(request: HttpRequest) -> HttpResponse:
    """Every parameter of a task with its meaning and limits, and of those that are refused why, and what to do instead."""
    accepted: dict[str, list[KeyDescription]] = {}
    for one in _PARAMETERS:
        if not one.refused:
            accepted.setdefault(f"inside {one.inside}" if one.inside else one.group, []).append(one)
    groups = [(slugify(title), title, keys) for title, keys in accepted.items()]
    refused = [one for one in _PARAMETERS if one.refused]
    return render(request, "tasks_app/help_parameters.html", {"section": "help", "groups": groups, "refused": refused})


@needs(Right.READ)
@require_safe
@takes()
def glossary(request: HttpRequest) -> HttpResponse:
    """The words of this site, each defined once."""
    return render(request, "tasks_app/help_glossary.html", {"section": "help", "terms": GLOSSARY})
