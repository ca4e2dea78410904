"""What anybody may ask of the site."""

from __future__ import annotations

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes

from jedisite.identity.callers import Right
from tasks_app.api.panda.calls import Ask, call
from tasks_app.api.panda.wire import envelope


@call("system/is_alive", "GET", Right.NOTHING)
def is_alive(ask: Ask) -> HttpResponse:
    """Whether the site answers."""
    return envelope(message="alive")


@call("system/get_attributes", "GET", Right.SITE_DATA, data=OpenApiTypes.OBJECT)
def get_attributes(ask: Ask) -> HttpResponse:
    """Who the site takes the caller for, and in which roles; nothing of what the request itself carries."""
    roles = {
        f"GRST_CRED_AUTH_TOKEN_{number}": f"VOMS /Role={role}" for number, role in enumerate(sorted(ask.caller.roles))
    }
    environment = {"REQUEST_METHOD": ask.request.method, "SSL_CLIENT_S_DN": ask.caller.name, **roles}
    return envelope({"parameters": {}, "environment": environment})
