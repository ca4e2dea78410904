"""Pages of large workflows: a few at once, so that threads of the web server are left for other calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse

from jedisite.database.database_faults import Fault
from jedisite.identity.callers import caller_of
from jedisite.web.problems import unavailable
from tasks_app.workflows.large_definitions import TooManyLargeDefinitions, place_of

View = Callable[..., HttpResponse]


def in_its_place(view: View) -> View:
    """A view of one workflow that is answered with 503 where too many large ones are being read."""

    @wraps(view)
    def placed(request: HttpRequest, workflow_id: int, *args: Any, **more: Any) -> HttpResponse:
        try:
            with place_of(workflow_id, caller_of(request).name):
                return view(request, workflow_id, *args, **more)
        except TooManyLargeDefinitions as error:
            return unavailable(request, Fault(str(error.detail), error.wait))

    return placed
