"""The API shows where its resources are, and where one meant to go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db


def test_the_root_lists_the_resources(client: Client) -> None:
    found = client.get("/api/v2/").json()
    assert found["tasks"] == "http://testserver/api/v2/tasks/" and found["docs"] == "http://testserver/api/docs/"
    assert {"jobs", "datasets", "files", "queues", "schema"} <= found.keys() and "task" not in found
    assert "GET /api/v2/ lists the resources" in client.get("/api/").json()["detail"]


@pytest.mark.parametrize(
    "path", ["/api/v2/tasks?status=done&name=a%2Bb", "/api/v2", "/api/docs", "/api/v2/queues/A%20B?x=1"]
)
def test_a_reader_is_sent_to_the_address_with_a_slash(client: Client, path: str) -> None:
    before, mark, query = path.partition("?")
    answer = client.get(path)
    assert (answer.status_code, answer["Location"]) == (301, f"{before}/{mark}{query}")


def test_a_body_is_not_sent_twice_but_the_sender_is_told(api: Callable[..., Client]) -> None:
    answer: Any = api().post("/api/v2/tasks", {}, content_type="application/json")
    assert answer.status_code == 404 and "with a slash: /api/v2/tasks/" in answer.json()["detail"]
    answer = api().get("/api/v2/taks/")
    assert answer.status_code == 404 and "GET /api/v2/ lists the resources" in answer.json()["detail"]
