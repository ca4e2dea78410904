"""PanDA's calls on ranges of events, while no job has any."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from events_app.models import Event
from tasks_app.models import Job

pytestmark = pytest.mark.django_db


def test_a_job_without_events_gets_none_and_no_range_is_known(
    make_job: Callable[..., Job], api: Callable[..., Client]
) -> None:
    job, foreign = make_job(task_id=20_000_000, jobset_id=5), make_job(site="SITE_B")
    pilot = api("pilot", site="SITE_A")

    def post(name: str, **body: Any) -> Any:
        answer = pilot.post(f"/{name}", json.dumps(body), content_type="application/json")
        return answer.json() if answer.status_code == 200 else answer.status_code

    acquire, count = "api/v1/event/acquire_event_ranges", "/api/v1/event/get_available_event_range_count"
    for named in ({"job_id": job.id}, {"pandaID": job.id}):
        assert post(acquire, **named, n_ranges=2)["data"] == {"StatusCode": 0, "eventRanges": []}
    form = pilot.post("/server/panda/getEventRanges", {"pandaID": str(job.id), "jobsetID": "5", "nRanges": "4"})
    assert form.json() == {"StatusCode": 0, "eventRanges": []}
    assert pilot.get(f"{count}?job_id={job.id}").json()["data"] == 0
    assert post(acquire, job_id=foreign.id) == 403 and post(acquire, job_id=1) == 403
    assert post("server/panda/getEventRanges", pandaID=foreign.id)["StatusCode"] == 60
    assert "job_id" in post(acquire)["message"]
    good = {"eventRangeID": "1-2-3-4-5", "eventStatus": "finished"}
    ranges = [
        good,
        {**good, "eventStatus": "running"},
        {"eventRangeID": "1-2"},
        {},
        7,
        {"zipFile": {}, "eventRanges": [good]},
    ]
    expected = [False, None, False, False, False, False]
    assert (
        post("api/v1/event/update_event_ranges", event_ranges=json.dumps(ranges), version=1)["data"]["Returns"]
        == expected
    )
    told = post("server/panda/updateEventRanges", eventRanges=json.dumps(ranges), version="0")
    assert (told["StatusCode"], told["Returns"]) == (0, expected)
    for bad in ("{", "{}", '[{"zipFile": {}, "eventRanges": 1}]'):
        refused = post("api/v1/event/update_event_ranges", event_ranges=bad)
        assert not refused["success"] and "anges" in refused["message"], bad
        assert post("server/panda/updateEventRanges", eventRanges=bad)["StatusCode"] == 50
    Event.objects.create(
        task_id=20_000_000, dataset_id=1, job_id=5, file_id=1, process_id=0, min_event=0, max_event=9, attempt=1
    )
    assert pilot.get(f"{count}?job_id={job.id}").json()["data"] == 1
    assert not post(acquire, job_id=job.id)["success"], "ranges that wait are not denied"
    assert post("server/panda/getEventRanges", pandaID=job.id)["StatusCode"] == 30
