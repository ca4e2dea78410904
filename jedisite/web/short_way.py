"""Calls that pilots make all the time take a short way: straight to their view, past what only pages need.

A view says so by `takes_short_way = True` on its class. It names its right and answers with a whole HttpResponse; nothing
that a session, a cookie or the resolver leaves on a request is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, cast

from django.conf import settings
from django.core.handlers.exception import convert_exception_to_response
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils.log import log_response
from django.utils.module_loading import import_string

Answer = Callable[[HttpRequest], HttpResponse]


class Handler(WSGIHandler):
    """Django's handler, which looks first whether an address takes the short way.

    Queries and forms are read as UTF-8, whatever charset a Content-Type names: among those that Python knows are some that
    are no text, at which Django fails before anything answers, and some that give texts which cannot be stored.
    """

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        kind, *parameters = environ.get("CONTENT_TYPE", "").split(";")
        if any(_is_charset(one) for one in parameters):
            environ["CONTENT_TYPE"] = ";".join([kind, *(one for one in parameters if not _is_charset(one))])
        return super().__call__(environ, start_response)

    def load_views(self) -> None:
        """Import what answers now, and not at the first request: workers that are forked after it share it."""
        _ = self.short_ways

    @cached_property
    def short_ways(self) -> dict[str, Answer]:
        """What answers at which path. Made when it is needed, as the resolver's table is: it imports all views."""
        return {path: _through_middleware(view) for path, view in _short(get_resolver().url_patterns, "/")}

    def get_response(self, request: HttpRequest) -> HttpResponse:
        answer = self.short_ways.get(request.path_info)
        if answer is None:
            return cast(HttpResponse, super().get_response(request))
        response = answer(request)
        response._resource_closers.append(request.close)  # type: ignore[attr-defined]
        if response.status_code >= 400:
            log_response("%s: %s", response.reason_phrase, request.path, response=response, request=request)
        return response


def _is_charset(parameter: str) -> bool:
    return parameter.strip().lower().startswith("charset")


def _short(patterns: Iterable[URLPattern | URLResolver], prefix: str) -> Iterable[tuple[str, Any]]:
    """The paths that take the short way, and their views."""
    for pattern in patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _short(pattern.url_patterns, path)
        elif getattr(getattr(pattern.callback, "cls", None), "takes_short_way", False):
            yield path, pattern.callback


def _through_middleware(view: Any) -> Answer:
    answer: Any = convert_exception_to_response(view)
    for name in reversed(settings.SHORT_MIDDLEWARE):
        answer = convert_exception_to_response(import_string(name)(answer))
    return cast(Answer, answer)
