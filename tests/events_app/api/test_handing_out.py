"""Ranges are handed out by PanDA's calls: how many, in which order, to whom, and what becomes of consumers without any."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from events_app.dispatch.handing_ranges import hand_out
from events_app.lifecycle.unneeded_consumers import ES_UNUSED
from events_app.models import Event
from events_app.rules.event_jobs import EventJobKind
from events_app.rules.range_blocks import RangeBlock
from tasks_app.dispatch.reports import NotYoursError, Proof
from tasks_app.models import Dataset, File, JobOutputReport, Task
from tests.events_app.ranges import DATASET, JOBSET, TASK, insert, rows
from tests.statements import sent

pytestmark = pytest.mark.django_db
SECRET = {"fence": 3, "secret_hash": hashlib.sha256(b"hush").digest()}


def ids(answer: Any) -> list[str]:
    return [one["eventRangeID"] for one in answer["eventRanges"]]


def unused() -> set[int]:
    return set(JobOutputReport.objects.filter(status=ES_UNUSED).values_list("id", flat=True))


def test_the_pilot_gets_what_it_reads(
    form: Callable[..., Any], make_consumer: Callable[..., int], make_task: Callable[..., Task]
) -> None:
    task = make_task(id=TASK)
    Dataset.objects.create(id=DATASET, task=task, name="mc.evgen", type="input", status="ready")
    guid = "11111111-1111-1111-1111-111111111111"
    File.objects.create(id=7, task_id=TASK, dataset_id=DATASET, lfn="in1.txt", guid=guid, scope="mc", status="running")
    job = make_consumer(status="starting")
    insert(RangeBlock(7, 1, 25, 10, attempts=3), RangeBlock(8, 26, 26, 10, attempts=3))
    asked = {"pandaID": str(job), "jobsetID": str(JOBSET), "taskID": str(TASK), "nRanges": "4"}
    known = {"LFN": "in1.txt", "GUID": guid, "scope": "mc"}
    gone = dict.fromkeys(("LFN", "GUID", "scope"))
    assert form("getEventRanges", **asked) == {
        "StatusCode": 0,
        "eventRanges": [
            {"eventRangeID": f"{TASK}-{job}-7-1-3", "startEvent": 1, "lastEvent": 10, **known},
            {"eventRangeID": f"{TASK}-{job}-7-11-3", "startEvent": 11, "lastEvent": 20, **known},
            {"eventRangeID": f"{TASK}-{job}-7-21-3", "startEvent": 21, "lastEvent": 25, **known},
            {"eventRangeID": f"{TASK}-{job}-8-26-3", "startEvent": 26, "lastEvent": 26, **gone},
        ],
    }
    assert form("getEventRanges", **asked) == {"StatusCode": 0, "eventRanges": []}


def test_harvester_gets_an_object_in_the_envelope(v1: Callable[..., Any], make_consumer: Callable[..., int]) -> None:
    job = make_consumer()
    insert(RangeBlock(7, 1, 20, 10, attempts=3))
    for named, first in (({"job_id": job}, 1), ({"pandaID": job}, 11)):
        answer = v1("acquire_event_ranges", **named, n_ranges=1, task_id=TASK, jobset_id=JOBSET)
        assert answer["success"] and answer["data"]["StatusCode"] == 0
        assert ids(answer["data"]) == [f"{TASK}-{job}-7-{first}-3"]


def test_consumers_without_a_pilot_are_not_needed_once_no_range_is_left(
    form: Callable[..., Any], make_consumer: Callable[..., int]
) -> None:
    job = make_consumer()
    unfetched = {make_consumer(status=status) for status in ("activated", "assigned", "throttled")}
    make_consumer(status="sent")
    make_consumer(status="activated", event_service=EventJobKind.JUMBO)
    make_consumer(status="activated", event_service=EventJobKind.MERGE)
    make_consumer(status="activated", event_service=None)
    make_consumer(status="activated", jobset_id=JOBSET + 1)
    make_consumer(status="activated", task_id=TASK + 1)
    insert(RangeBlock(7, 1, 25, 10, attempts=3))
    ask = {"pandaID": str(job), "jobsetID": str(JOBSET), "taskID": str(TASK), "nRanges": "2"}
    assert ids(form("getEventRanges", **ask)) == [f"{TASK}-{job}-7-1-3", f"{TASK}-{job}-7-11-3"]
    assert unused() == set(), "one more is left"
    assert ids(form("getEventRanges", **ask)) == [f"{TASK}-{job}-7-21-3"]
    assert unused() == unfetched
    assert ids(form("getEventRanges", **ask)) == []
    assert unused() == unfetched, "each has one line"
    line = JobOutputReport.objects.get(id=min(unfetched))
    assert (line.task_id, line.attempt, line.data) == (TASK, 0, {})


def test_a_call_that_leaves_something_is_two_statements(make_consumer: Callable[..., int]) -> None:
    job = make_consumer()
    insert(RangeBlock(7, 1, 25, 10))
    with sent() as statements:
        assert len(hand_out(job, 1, Proof(site="SITE_A"))) == 1
    assert len(statements) == 2, "whose it is, and the hand-out"


@pytest.mark.parametrize(
    "changes", [{"status": "holding"}, {"command_to_pilot": "tobekilled"}, {"status": "activated"}]
)
def test_a_job_that_is_not_at_work_gets_none_and_ends_nobody(
    form: Callable[..., Any], make_consumer: Callable[..., int], changes: dict[str, Any]
) -> None:
    job = make_consumer(**changes)
    make_consumer(status="activated")
    assert form("getEventRanges", pandaID=job) == {"StatusCode": 0, "eventRanges": []}
    assert unused() == set()


@pytest.mark.parametrize("kind", [None, 0, EventJobKind.MERGE])
def test_jobs_of_other_kinds_get_none(
    form: Callable[..., Any], make_consumer: Callable[..., int], kind: int | None
) -> None:
    insert(RangeBlock(7, 1, 20, 10))
    job = make_consumer(event_service=kind)
    assert form("getEventRanges", pandaID=job)["eventRanges"] == []
    assert form("checkEventsAvailability", pandaID=job)["nEventRanges"] == 0


def test_how_many_are_handed_out(
    form: Callable[..., Any], v1: Callable[..., Any], make_consumer: Callable[..., int]
) -> None:
    job = make_consumer()
    insert(RangeBlock(7, 1, 100_000, 1))
    for said, number in (
        ({}, 10),
        ({"nRanges": ""}, 10),
        ({"nRanges": "many"}, 8),
        ({"nRanges": "1e3"}, 8),
        ({"nRanges": "--3"}, 8),
    ):
        assert len(ids(form("getEventRanges", pandaID=job, **said))) == number, said
    for wanted, number in ((3, 3), (0, 0), (-5, 0), (10**9, 10_000), ("4", 4), (None, 10)):
        assert len(ids(v1("acquire_event_ranges", job_id=job, n_ranges=wanted)["data"])) == number, wanted
    assert "n_ranges" in v1("acquire_event_ranges", job_id=job, n_ranges=10**30)["message"]
    assert "n_ranges" in v1("acquire_event_ranges", job_id=job, n_ranges=[3])["message"]
    assert "job_id" in v1("acquire_event_ranges")["message"]
    assert "job_id" in v1("acquire_event_ranges", job_id=10**30)["message"]
    assert form("getEventRanges", pandaID="x")["StatusCode"] == 50


def test_a_jumbo_job_takes_from_the_whole_task_and_ends_nobody(
    form: Callable[..., Any], make_consumer: Callable[..., int]
) -> None:
    insert(RangeBlock(7, 1, 20, 10), jobset=901)
    insert(RangeBlock(8, 1, 20, 10), jobset=900)
    job = make_consumer(event_service=EventJobKind.JUMBO, jobset_id=None)
    make_consumer(status="activated", event_service=EventJobKind.CO_JUMBO)
    assert form("checkEventsAvailability", pandaID=job) == {"StatusCode": 0, "nEventRanges": 4}
    found = ids(form("getEventRanges", pandaID=job, nRanges=9, scattered="True"))
    assert found == [f"{TASK}-{job}-{file}-{first}-10" for file in (8, 7) for first in (1, 11)]
    assert set(Event.objects.values_list("is_jumbo", flat=True)) == {1} and unused() == set()


def test_ranges_of_one_dataset_are_given_where_one_is_named(
    form: Callable[..., Any], make_consumer: Callable[..., int]
) -> None:
    insert(RangeBlock(7, 1, 20, 10))
    job = make_consumer()
    make_consumer(status="activated")
    assert ids(form("getEventRanges", pandaID=job, segment_id=DATASET + 1)) == []
    assert len(ids(form("getEventRanges", pandaID=job, segment_id=DATASET))) == 2
    assert set(Event.objects.values_list("dataset_id", "job_id")) == {(DATASET, job)}
    assert unused() == set()


def test_how_many_wait_is_counted_by_range(
    api: Callable[..., Client], form: Callable[..., Any], make_consumer: Callable[..., int]
) -> None:
    insert(RangeBlock(7, 1, 25, 10), RangeBlock(8, 1, 5, 10, attempts=0))
    insert(RangeBlock(9, 1, 20, 10), jobset=901)
    job = make_consumer()
    assert form("checkEventsAvailability", pandaID=job, taskID=TASK) == {"StatusCode": 0, "nEventRanges": 3}
    pilot = api("pilot", site="SITE_A")
    count = pilot.get(f"/api/v1/event/get_available_event_range_count?job_id={job}&jobset_id={JOBSET}&task_id={TASK}")
    assert count.json()["data"] == 3


def test_other_peoples_jobs_are_refused(
    api: Callable[..., Client], form: Callable[..., Any], v1: Callable[..., Any], make_consumer: Callable[..., int]
) -> None:
    insert(RangeBlock(7, 1, 25, 10))
    elsewhere, with_secret = make_consumer(site="SITE_B"), make_consumer(**SECRET)
    mine = make_consumer(worker_id="batch-1")
    before = rows()
    for job in (elsewhere, with_secret, 1):
        assert v1("acquire_event_ranges", job_id=job) == 403
        assert form("getEventRanges", pandaID=job)["StatusCode"] == 60
        assert form("checkEventsAvailability", pandaID=job)["StatusCode"] == 60
    for proof in ({"fence": 3}, {"fence": 3, "job_secret": "other"}, {"fence": 2, "job_secret": "hush"}):
        assert v1("acquire_event_ranges", job_id=with_secret, **proof) == 403, proof
    assert v1("acquire_event_ranges", job_id=mine, fence=0, job_secret="") == 403, "it was handed out without a secret"
    assert v1("acquire_event_ranges", by=api("user"), job_id=mine) == 403
    assert rows() == before
    got = v1("acquire_event_ranges", job_id=with_secret, n_ranges=1, fence=3, job_secret="hush")
    assert ids(got["data"]) == [f"{TASK}-{with_secret}-7-1-10"]
    assert len(ids(v1("acquire_event_ranges", by=api("pilot", name="any"), job_id=elsewhere, n_ranges=9)["data"])) == 2


def test_consumers_that_were_fetched_in_one_call_do_not_touch_each_others_ranges(
    api: Callable[..., Client], v1: Callable[..., Any], make_consumer: Callable[..., int]
) -> None:
    insert(RangeBlock(7, 1, 40, 10))
    made = {make_consumer(status="activated") for _ in range(2)}
    asked = {"site_name": "SITE_A", "n_jobs": 2, "with_secret": True}
    answer = (
        api("pilot", site="SITE_A").post("/api/v1/pilot/acquire_jobs", asked, content_type="application/json").json()
    )
    jobs = answer["data"]["jobs"]
    assert {job["PandaID"] for job in jobs} == made
    proofs = {job["PandaID"]: {"fence": job["fence"], "job_secret": job["jobSecret"]} for job in jobs}
    for job, other in (made, reversed([*made])):
        assert v1("acquire_event_ranges", job_id=job, n_ranges=1, **proofs[other]) == 403
        (range_id,) = ids(v1("acquire_event_ranges", job_id=job, n_ranges=1, **proofs[job])["data"])
        said = [{"eventRangeID": range_id, "eventStatus": "failed", "errorCode": 5}]
        for proof, taken in ((proofs[other], False), (proofs[job], True)):
            assert v1("update_event_ranges", event_ranges=said, **proof)["data"]["Returns"] == [taken]


def test_a_token_for_one_worker_is_for_its_jobs(make_consumer: Callable[..., int]) -> None:
    insert(RangeBlock(7, 1, 25, 10))
    job = make_consumer(worker_id="batch-1")
    with pytest.raises(NotYoursError):
        hand_out(job, 1, Proof(site="SITE_A", worker="batch-2"))
    assert len(hand_out(job, 1, Proof(site="SITE_A", worker="batch-1"))) == 1
