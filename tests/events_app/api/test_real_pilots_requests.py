"""What PanDA's pilot 3.7 was seen to send for jobs of event service, replayed field by field on a consumer of ours."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client

from brokerage_app.models import StorageEndpoint
from events_app.models import Event
from events_app.rules.event_states import EventStatus
from events_app.rules.range_blocks import RangeBlock
from tasks_app.models import Job, JobFile
from tests.events_app.ranges import JOBSET, TASK, insert

pytestmark = pytest.mark.django_db
GUID = "11111111-1111-1111-1111-111111111111"
TAR = "EventService_premerge_{}.tar"
Fields = dict[str, str]


class Pilot:
    """It asks for twice its cores, keeps ranges as texts, packs what is finished, and tells failures at once."""

    def __init__(self, client: Client, job: int) -> None:
        self.client, self.job = client, job

    def post(self, name: str, **fields: str) -> Any:
        answer = self.client.post(
            f"/server/panda/{name}", fields, headers={"Accept": "application/json", "User-Agent": "pilot/3.7.0.36"}
        )
        assert answer.status_code == 200
        return answer.json()

    def asks(self) -> list[dict[str, Any]]:
        told = self.post("getEventRanges", pandaID=str(self.job), jobsetID=str(JOBSET), taskID=str(TASK), nRanges="4")
        assert told["StatusCode"] == 0
        ranges: list[dict[str, Any]] = told["eventRanges"]
        return ranges

    def failed(self, range_id: str) -> Any:
        said = [{"errorCode": 1220, "eventRangeID": range_id, "eventStatus": "failed"}]
        return self.post("updateEventRanges", version="0", eventRanges=json.dumps(said))

    def stored(self, *range_ids: str, checksum: str) -> Any:
        packed = {
            "numEvents": len(range_ids),
            "objstoreID": 1,
            "lfn": TAR.format(range_ids[0]),
            "fsize": 10240,
            "pathConvention": 1000,
            "adler32": checksum,
        }
        ranges = [{"eventRangeID": one, "eventStatus": "finished"} for one in range_ids]
        said = json.dumps([{"zipFile": packed, "eventRanges": ranges}])
        return self.post("updateEventRanges", version="1", eventRanges=said)


@pytest.fixture
def pilot(api: Callable[..., Client], make_consumer: Callable[..., int]) -> Iterator[Pilot]:
    StorageEndpoint.objects.create(name="LOCAL_SE", number=1, site_name="LOCALSITE", path="/SE")
    insert(RangeBlock(9001, 1, 7, 1, attempts=1))
    yield Pilot(api("pilot", site="SITE_A"), make_consumer(status="starting"))


def test_a_job_of_which_two_ranges_fail(pilot: Pilot) -> None:
    ids = [f"{TASK}-{pilot.job}-9001-{n}-1" for n in range(8)]
    first = pilot.asks()
    assert [one["eventRangeID"] for one in first] == ids[1:5]
    assert first[0] == {
        "eventRangeID": ids[1],
        "startEvent": 1,
        "lastEvent": 1,
        "LFN": None,
        "GUID": None,
        "scope": None,
    }
    booked = {"StatusCode": 0, "Returns": [True], "Command": {}}
    assert pilot.failed(ids[3]) == booked
    assert [one["eventRangeID"] for one in pilot.asks()] == ids[5:8]
    assert pilot.failed(ids[6]) == booked
    assert pilot.stored(ids[5], ids[4], ids[2], ids[1], checksum="f8b07068") == {**booked, "Returns": [True] * 4}
    assert pilot.asks() == [] and pilot.asks() == []
    assert pilot.stored(ids[7], checksum="956a1c2e") == booked
    states = {n: e.status for e in Event.objects.all() for n in range(e.min_event, e.max_event + 1)}
    failed = {3, 6}
    assert states == {n: EventStatus.FAILED if n in failed else EventStatus.FINISHED for n in range(1, 8)}
    assert set(Event.objects.filter(status=EventStatus.FAILED).values_list("error_code", flat=True)) == {1220}
    files = JobFile.objects.filter(job_id=pilot.job).order_by("id")
    assert [(f.lfn, f.size, f.checksum, f.events, f.destination_se) for f in files] == [
        (TAR.format(ids[5]), 10240, "ad:f8b07068", 4, "1/1000"),
        (TAR.format(ids[7]), 10240, "ad:956a1c2e", 1, "1/1000"),
    ]
    assert Job.objects.get(pk=pilot.job).events == 5


def test_a_job_that_stores_all_ranges_at_its_end(pilot: Pilot) -> None:
    ids = [one["eventRangeID"] for _ in range(2) for one in pilot.asks()]
    assert pilot.asks() == []
    assert pilot.stored(*reversed(ids), checksum="3168c4cd")["Returns"] == [True] * 7
    stored = set(Event.objects.filter(status=EventStatus.FINISHED).values_list("min_event", "max_event", "zip_row_id"))
    row = JobFile.objects.get(job_id=pilot.job)
    assert stored == {(1, 4, row.id), (5, 7, row.id)}, "a block of each hand-out"
    assert row.events == 7


def test_the_same_requests_packed_as_the_pilot_3_11_does(pilot: Pilot) -> None:
    def send(name: str, body: dict[str, Any]) -> Any:
        packed = gzip.compress(json.dumps(body).encode())
        return pilot.client.post(f"/server/panda/{name}", packed, content_type="application/json").json()

    told = send("getEventRanges", {"pandaID": pilot.job, "jobsetID": JOBSET, "taskID": TASK, "nRanges": 4})
    said = [{"eventRangeID": told["eventRanges"][0]["eventRangeID"], "eventStatus": "failed"}]
    for given in (said, json.dumps(said)):
        assert send("updateEventRanges", {"version": 0, "eventRanges": given})["Returns"] == [True]


def test_the_number_of_ranges_that_it_reports_at_the_end_is_not_taken_for_events(
    pilot: Pilot, api: Callable[..., Client]
) -> None:
    Event.objects.all().delete()
    insert(RangeBlock(9001, 1, 25, 4, attempts=1))
    said = pilot.stored(*[one["eventRangeID"] for one in pilot.asks()], checksum="f8b07068")
    assert said["Returns"] == [True] * 4
    Job.objects.filter(pk=pilot.job).update(status="running", attempt=1)
    for state in ("running", "finished"):
        told = pilot.post("updateJob", jobId=str(pilot.job), state=state, attemptNr="1", nEvents="4")
        assert told["StatusCode"] == 0, told
        assert Job.objects.get(pk=pilot.job).events == 16
    many = [{"job_id": pilot.job, "job_status": "running", "attempt_nr": 1, "n_events": 4}]
    Job.objects.filter(pk=pilot.job).update(status="running")
    client = api("pilot", site="SITE_A")
    answer = client.post("/api/v1/pilot/update_jobs_bulk", {"job_list": many}, content_type="application/json")
    assert answer.json()["success"], answer.json()
    assert Job.objects.get(pk=pilot.job).events == 16
