"""Parameters of an address that there are not, or cannot be read: one that is misspelt must not pass for one of everything."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import wraps
from typing import Any, Final, TypeVar, cast

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render

from jedisite.vocabulary.words import rather
from jedisite.web.choices import OneOfField
from tasks_app.domain import window
from tasks_app.web.frame import frame, keyset_pages

V = TypeVar("V", bound=Callable[..., HttpResponseBase])
ALWAYS: Final = frozenset((*window.NAMES, *frame.SCOPE, "cursor", "view"))
"""What links of the frame bring to every page."""
MOST_SAID, LONGEST = 5, 60


def faults_of(
    given: Iterable[str], known: Collection[str], others: Collection[str] = (), what: str = "filter"
) -> dict[str, str]:
    """The sentence on each name that is neither a filter, nor one of `others` or of the frame."""
    names = [name for name in given if name not in known and name not in others and name not in ALWAYS]
    short = {name: name[:LONGEST] for name in names[:MOST_SAID]}
    return {name: rather(f"{said}: There is no such {what} here", said, known, most=0) for name, said in short.items()}


def takes(*names: str, starting: str = "", **fields: forms.Field) -> Callable[[V], V]:
    """A page with parameters of its own: any texts for `names` and all that begin with `starting`, and what `fields` accept.

    An address with others, or with values that cannot be read, is answered by the sentences on them and nothing else.
    """
    kind: Any = type("Parameters", (forms.Form,), dict(fields))
    known = (*names, *fields)

    def of_view(view: V) -> V:
        @wraps(view)
        def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            refused = {} if request.method == "POST" else _refused(request)
            return _refusal(request, refused) if refused else view(request, *args, **kwargs)

        vars(checked)["takes"] = (*known, *([f"{starting}x"] if starting else []))  # for tests, which try all of them
        return cast(V, checked)

    def _refused(request: HttpRequest) -> dict[str, list[str]]:
        given = [name for name, value in request.GET.items() if value and not (starting and name.startswith(starting))]
        found = {name: [said] for name, said in faults_of(given, known, what="parameter").items()}
        form = kind({name: request.GET[name] for name in given})
        for name, errors in form.errors.items():
            found[name] = [f"{name}: {error}" for error in errors]
        return found

    return of_view


def _refusal(request: HttpRequest, refused: dict[str, list[str]]) -> HttpResponseBase:
    context = {
        "faults": [said for some in refused.values() for said in some],
        "without": [(name[:LONGEST], keyset_pages.address(request, **{name: None})) for name in refused],
        "clear_url": request.path,
    }
    return render(request, "lists/refused.html", context, status=400)


def one_of(choices: Iterable[str] | Callable[[], Iterable[str]]) -> OneOfField:
    """A parameter that is one of these texts."""
    names = choices if callable(choices) else lambda: choices
    return OneOfField(required=False, choices=lambda: [(name, name) for name in names() if name])


def a_number() -> forms.IntegerField:
    """A parameter that is the number of a row."""
    return forms.IntegerField(required=False, min_value=1, max_value=keyset_pages.LARGEST_ID)
