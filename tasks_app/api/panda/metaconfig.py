"""What is configured: classes of jobs, queues, people who may not come in. v1."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes

from brokerage_app.models import Queue
from brokerage_app.models.site import ResourceType
from jedisite.identity.callers import Right
from tasks_app.api.panda.call_params import Params, Text
from tasks_app.api.panda.calls import Ask, call
from tasks_app.api.panda.site_data import queues_data
from tasks_app.api.panda.wire import envelope

UNIFIED = "unified"


@call("metaconfig/get_resource_types", "GET", Right.SITE_DATA)
def get_resource_types(ask: Ask) -> HttpResponse:
    """Classes of jobs by cores and memory a core (MB); null is no limit. The first that fits counts."""
    found = ResourceType.objects.values_list(
        "name", "min_cores", "max_cores", "min_ram_per_core_mb", "max_ram_per_core_mb"
    )
    names = ("resource_name", "mincore", "maxcore", "minrampercore", "maxrampercore")
    return envelope([dict(zip(names, row, strict=True)) for row in found])


@call("metaconfig/get_banned_users", "GET", Right.STEER, data=OpenApiTypes.OBJECT)
def get_banned_users(ask: Ask) -> HttpResponse:
    """Accounts that are switched off, as {name: false}."""
    return envelope(dict.fromkeys(User.objects.filter(is_active=False).values_list("username", flat=True), False))


class SpecsParams(Params):
    site_type = Text(required=False, allow_null=True, max_length=20, help_text="only of these queues; all when absent")


@call("metaconfig/get_site_specs", "GET", Right.SITE_DATA, SpecsParams, data=OpenApiTypes.OBJECT)
def get_site_specs(ask: Ask) -> HttpResponse:
    """Queues by name, as pilots read them; unified ones are of every type."""
    kind = ask.given.get("site_type")
    found = Queue.objects.order_by("name")
    if kind:
        found = found.filter(type__in=[kind, UNIFIED])
    described = queues_data(found)
    return envelope({queue.name: {**described[queue.name], "type": queue.type} for queue in found})
