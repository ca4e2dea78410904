"""The bodies of calls on ranges that the guide shows are taken as they stand there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from brokerage_app.models import StorageEndpoint
from events_app.models import Event
from events_app.rules.event_states import EventStatus
from events_app.rules.range_blocks import RangeBlock
from tests.events_app.ranges import TASK, insert

pytestmark = pytest.mark.django_db
GUIDE = Path(__file__).resolve().parents[3] / "docs" / "event_service.md"
ROW = re.compile(r"^\| `(\w+)` \| `(\{.*\})` \|$", re.MULTILINE)


def test_each_body_of_the_guide_does_what_the_guide_says(
    v1: Callable[..., Any], make_consumer: Callable[..., int]
) -> None:
    job = make_consumer()
    StorageEndpoint.objects.create(name="SE", site_name="SITE_A", path="/se", number=12)
    insert(RangeBlock(9, 1, 30, 10, attempts=3))
    rows = ROW.findall(GUIDE.read_text())
    assert len(rows) == 4
    v1("acquire_event_ranges", job_id=job, n_ranges=1)
    for call, body in rows:
        said = json.loads(body.replace("1203-77-", f"{TASK}-{job}-").replace('"job_id": 77', f'"job_id": {job}'))
        answer = v1(call, **said)
        assert answer["success"], answer
        if "Returns" in (answer["data"] or {}):
            assert answer["data"]["Returns"] == [True], answer
    states = dict(Event.objects.order_by("min_event").values_list("min_event", "status"))
    assert states == {1: EventStatus.FAILED, 11: EventStatus.FINISHED, 21: EventStatus.FINISHED}
