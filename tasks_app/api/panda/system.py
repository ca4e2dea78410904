"""What anybody may ask of the site."""

from __future__ import annotations

from django.http import HttpResponse

from jedisite.identity import Right
from tasks_app.api.panda.calls import Ask, call
from tasks_app.api.panda.wire import envelope


@call("system/is_alive", "GET", Right.NOTHING)
def is_alive(ask: Ask) -> HttpResponse:
    """Whether the site answers."""
    return envelope(message="alive")
