"""A pilot that calls as PanDA's pilot does, and one that calls as harvester does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

Call = Callable[..., Any]


@pytest.fixture
def form(api: Callable[..., Client]) -> Call:
    """A legacy call with a form of texts, by a pilot of the queue SITE_A."""
    pilot = api("pilot", site="SITE_A")

    def post(name: str, **fields: Any) -> Any:
        texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in fields.items()}
        return pilot.post(f"/server/panda/{name}", texts).json()

    return post


@pytest.fixture
def v1(api: Callable[..., Client]) -> Call:
    """A v1 call of JSON; the answer, or its status where it is no 200. `by` is another client."""
    pilot = api("pilot", site="SITE_A")

    def post(name: str, by: Client | None = None, **body: Any) -> Any:
        answer = (by or pilot).post(f"/api/v1/event/{name}", json.dumps(body), content_type="application/json")
        return answer.json() if answer.status_code == 200 else answer.status_code

    return post
