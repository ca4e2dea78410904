"""States of ranges, as PanDA's clients ask for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from django.test import Client

from events_app.rules.event_states import EventStatus
from events_app.rules.range_blocks import RangeBlock
from events_app.rules.reported_items import RangeReport
from tests.events_app.ranges import FINISHED, TASK, given, insert, say

pytestmark = pytest.mark.django_db


def test_each_range_that_a_job_has_is_named_with_its_state(
    api: Callable[..., Client], make_consumer: Callable[..., int]
) -> None:
    job, other = make_consumer(), make_consumer()
    insert(RangeBlock(7, 1, 25, 10, attempts=3))
    given(job, 3)
    say(job, {(7, 1, 3): FINISHED, (7, 21, 3): RangeReport(EventStatus.FAILED, error_code=1220, error_diag="it died")})
    states = {
        str(job): {
            f"{TASK}-{job}-7-1-3": {"status": "finished", "error": None, "dialog": None},
            f"{TASK}-{job}-7-11-3": {"status": "sent", "error": None, "dialog": None},
            f"{TASK}-{job}-7-21-3": {"status": "failed", "error": 1220, "dialog": "it died"},
        },
        str(other): {},
    }
    user, where = api("user"), "/api/v1/event/get_event_range_statuses"
    asked = [{"task_id": TASK, "panda_id": one} for one in (job, other)]
    as_client = urlencode({"job_task_ids": [str(one) for one in asked]}, doseq=True)
    as_json = urlencode({"job_task_ids": json.dumps([{"task_id": TASK, "job_id": one} for one in (job, other)])})
    for query in (as_client, as_json):
        assert user.get(f"{where}?{query}").json()["data"] == states
    old = user.post("/server/panda/get_events_status", {"ids": json.dumps(asked)})
    assert old.json() == states
    assert user.get(f"{where}?{urlencode({'job_task_ids': str(asked[0] | {'task_id': TASK + 1})})}").json()["data"] == {
        str(job): {}
    }


@pytest.mark.parametrize(
    "bad", ["", "x", "7", "{}", "{'task_id': 1}", "{'task_id': 'x', 'job_id': 1}", "[[1, 2]]", "{" * 5000]
)
def test_what_cannot_be_read_is_named(api: Callable[..., Client], bad: str) -> None:
    told = api("user").get(f"/api/v1/event/get_event_range_statuses?{urlencode({'job_task_ids': bad})}").json()
    assert not told["success"] and ("job_task_ids" in told["message"] or "_id" in told["message"])


def test_an_answer_has_an_end(api: Callable[..., Client], make_consumer: Callable[..., int]) -> None:
    many = json.dumps([{"task_id": TASK, "panda_id": n} for n in range(1, 102)])
    told = api("user").post("/server/panda/get_events_status", {"ids": many}).json()
    assert told["StatusCode"] == 50 and "101 jobs" in told["errorDialog"]
    job = make_consumer()
    insert(RangeBlock(7, 1, 100_001, 1))
    given(job, 100_001)
    told = api("user").post(
        "/server/panda/get_events_status", {"ids": json.dumps([{"task_id": TASK, "panda_id": job}])}
    )
    assert "100001 ranges" in told.json()["errorDialog"]
