"""What PanDA's programs ask about the site, and what it does not do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from brokerage_app.models import Queue
from brokerage_app.models.site import ResourceType

pytestmark = pytest.mark.django_db
Api = Callable[..., Client]


def get(client: Client, name: str, **query: Any) -> Any:
    return client.get(f"/api/v1/{name}", query).json()["data"]


def test_a_caller_learns_who_they_are_and_nothing_that_their_request_carries(api: Api) -> None:
    found = get(api("production"), "system/get_attributes")
    assert found["parameters"] == {} and found["environment"] == {
        "REQUEST_METHOD": "GET",
        "SSL_CLIENT_S_DN": "production",
        "GRST_CRED_AUTH_TOKEN_0": "VOMS /Role=production",
        "GRST_CRED_AUTH_TOKEN_1": "VOMS /Role=user",
    }


def test_open_jobs_are_counted_by_site_and_by_class(api: Api, make_job: Callable[..., Any]) -> None:
    for status, kind in (("running", "SCORE"), ("running", "MCORE"), ("activated", None), ("finished", "SCORE")):
        make_job(status=status, resource_type=kind, prod_source_label="user", site="A")
    make_job(status="sent", resource_type="SCORE", prod_source_label="managed", site="B")
    client = api("worker")
    zeros = {"assigned": 0, "activated": 0, "running": 0}
    assert get(client, "statistics/active_job_stats_by_site") == {
        "A": {**zeros, "activated": 1, "running": 2},
        "B": {**zeros, "sent": 1},
    }
    detailed = get(client, "statistics/active_job_detailed_stats_by_site")
    assert detailed == {
        "A": {
            "": {"user": {**zeros, "activated": 1}},
            "SCORE": {"user": {**zeros, "running": 1}},
            "MCORE": {"user": {**zeros, "running": 1}},
        },
        "B": {"SCORE": {"managed": {**zeros, "sent": 1}}},
    }


def test_what_is_configured(api: Api) -> None:
    ResourceType.objects.all().delete()
    ResourceType.objects.create(name="SCORE", position=1, min_cores=1, max_cores=1, max_ram_per_core_mb=2000)
    for name, kind in (("P", "production"), ("A", "analysis"), ("U", "unified")):
        Queue.objects.create(name=name, site_name="S", type=kind, status="online")
    client = api("worker")
    assert get(client, "metaconfig/get_resource_types") == [
        {"resource_name": "SCORE", "mincore": 1, "maxcore": 1, "minrampercore": None, "maxrampercore": 2000}
    ]
    assert [s["type"] for s in get(client, "metaconfig/get_site_specs").values()] == [
        "analysis",
        "production",
        "unified",
    ]
    assert list(get(client, "metaconfig/get_site_specs", site_type="analysis")) == ["A", "U"]
    User.objects.create(username="mallory", is_active=False)
    assert get(api("production"), "metaconfig/get_banned_users") == {"mallory": False}


@pytest.mark.parametrize(
    "name", ["put_workflow_request", "relay_idds_command", "execute_idds_workflow_command", "putEventPickingRequest"]
)
def test_who_asks_for_a_workflow_reads_why_there_is_none(api: Api, name: str) -> None:
    answer = api().post(f"/server/panda/{name}", b"command_name=ping&args=%5B1%5D", content_type="")
    if name == "putEventPickingRequest":
        assert answer.content.startswith(b"this site does not pick events")
    else:
        taken, why = answer.json()
        assert taken is False and why.startswith("this site runs no ") and "POST /api/v2/workflows/" in why
    assert Client().post(f"/server/panda/{name}").json()["StatusCode"] == 70


def test_native_workflows_are_refused_in_the_envelope(api: Api) -> None:
    client = api()
    sent = client.post("/api/v1/workflow/submit_workflow_raw_request", b"params=%7B%7D", content_type="").json()
    asked = client.get("/api/v1/workflow/get_workflow_details", {"workflow_id": 5}).json()
    for said in (sent, asked):
        assert said["success"] is False and "this site runs no workflows" in said["message"]
