"""Pilots report on ranges: answers item by item, files that hold outputs, other people's jobs, what a call may cost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from brokerage_app.models import StorageEndpoint
from events_app.models import Event
from events_app.rules.event_jobs import EventJobKind
from events_app.rules.event_states import EventStatus
from events_app.rules.range_blocks import RangeBlock
from tasks_app.ddm.addresses import Roots, is_its_place
from tasks_app.models import Job, JobFile
from tests.events_app.ranges import JOBSET, TASK, given, insert, rows

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("storage")]
S = EventStatus


@pytest.fixture
def job(make_consumer: Callable[..., int]) -> int:
    """A consumer with the ranges 1-10, 11-20 and 21-25 of the file 7, three attempts each."""
    insert(RangeBlock(7, 1, 25, 10, attempts=3))
    number = make_consumer()
    given(number, 3)
    return number


def named(job: int, first: int, attempts: int = 3, file: int = 7) -> str:
    return f"{TASK}-{job}-{file}-{first}-{attempts}"


def item(job: int, first: int, status: str = "finished", **more: Any) -> dict[str, Any]:
    place = {"objstoreID": 11} if status == "finished" else {}
    return {"eventRangeID": named(job, first), "eventStatus": status, **place, **more}


def zipped(*items: dict[str, Any], **changes: Any) -> dict[str, Any]:
    told = {"lfn": "z1.zip", "objstoreID": 11, "fsize": 5, "adler32": "ab", "pathConvention": 1000, "numEvents": 2}
    return {"zipFile": {**told, **changes}, "eventRanges": list(items)}


def test_a_zip_file_gets_a_row_and_its_ranges_are_finished(form: Callable[..., Any], job: int) -> None:
    told = form("updateEventRanges", version="1", eventRanges=[zipped(item(job, 1), item(job, 11))])
    assert told == {"StatusCode": 0, "Returns": [True, True], "Command": {}}
    row = JobFile.objects.get(job_id=job)
    assert (row.type, row.lfn, row.destination_se, row.checksum) == ("zipoutput", "z1.zip", "11/1000", "ad:ab")
    assert (row.size, row.events, row.status, row.scope, row.task_id) == (5, 2, "ready", "transient", TASK)
    assert row.guid and is_its_place(row.surl or "", row.scope, row.lfn, Roots())
    assert (row.surl or "").startswith("file://localhost/data/os/transient/")
    assert rows() == [(7, 1, 20, S.FINISHED, job, 3), (7, 21, 25, S.SENT, job, 3)]
    block = Event.objects.get(min_event=1)
    assert (block.zip_row_id, block.objstore_id, block.path_convention) == (row.id, 11, 1000)
    assert Job.objects.get(pk=job).events == 20
    assert form("updateEventRanges", version="1", eventRanges=[zipped(item(job, 21), fsize=99)])["Returns"] == [True]
    assert JobFile.objects.get(job_id=job).size == 5, "a file of that name has its row"
    assert Event.objects.get(min_event=21).zip_row_id == row.id


def test_each_item_is_answered_by_the_first_thing_that_is_wrong_with_it(form: Callable[..., Any], job: int) -> None:
    good = item(job, 1)
    said = [
        good,
        good,
        {**good, "eventRangeID": "2001-901-7-11"},
        {**good, "eventRangeID": "2001-901-x-11-3"},
        {**good, "eventRangeID": "2001-901-7-11-3"},
        {**good, "eventRangeID": f"{TASK + 1}-{job}-7-1-3"},
        {**good, "eventRangeID": f"{TASK}-{job}-7-{10**30}-3"},
        {**good, "eventRangeID": None},
        {**good, "eventRangeID": [1]},
        {"eventStatus": "finished"},
        {"eventRangeID": named(job, 1)},
        [good],
        None,
        7,
        {**good, "eventStatus": "running"},
        {**good, "eventStatus": "transferring"},
        {**good, "eventStatus": "weird"},
        {**good, "eventStatus": None},
        {**good, "eventStatus": ["finished"]},
        {**item(job, 11), "errorCode": 10**30},
        {**item(job, 11), "objstoreID": {"a": 1}},
        {**item(job, 11), "objstoreID": 4711},
        {**good, "eventRangeID": named(job, 5)},
    ]
    told = form("updateEventRanges", version="0", eventRanges=said)
    expected = [True, True] + [False] * 12 + [None, None] + [False] * 7
    assert (told["StatusCode"], told["Returns"]) == (0, expected)
    assert told["Command"] == {"901": "tobekilled", str(job): "tobekilled"}
    assert "item 2: '2001-901-7-11' has 4 parts" in told["errorDialog"]
    assert rows() == [(7, 1, 10, S.FINISHED, job, 3), (7, 11, 25, S.SENT, job, 3)]


@pytest.mark.parametrize(
    "changes",
    [
        {"fsize": -1},
        {"fsize": 2**60},
        {"fsize": None},
        {"fsize": "big"},
        {"adler32": "x" * 300},
        {"adler32": None},
        {"lfn": "../z1.zip"},
        {"lfn": "a/z1.zip"},
        {"lfn": "z" * 300},
        {"lfn": ".."},
        {"lfn": ["z1.zip"]},
        {"objstoreID": 12},
        {"objstoreID": None},
        {"objstoreID": "11/x"},
        {"objstoreID": 10**30},
        {"numEvents": -1},
        {"pathConvention": 10**30},
    ],
)
def test_ranges_in_a_file_that_makes_no_sense_are_refused_and_others_of_the_call_are_booked(
    form: Callable[..., Any], job: int, changes: dict[str, Any]
) -> None:
    said = [zipped(item(job, 1), item(job, 11), **changes), zipped(item(job, 21), lfn="good.zip")]
    told = form("updateEventRanges", version="1", eventRanges=said)
    assert (told["StatusCode"], told["Returns"]) == (0, [False, False, True]) and told["errorDialog"]
    assert list(JobFile.objects.values_list("lfn", flat=True)) == ["good.zip"]
    assert rows() == [(7, 1, 20, S.SENT, job, 3), (7, 21, 25, S.FINISHED, job, 3)]


def test_a_list_in_the_place_of_a_file_is_refused(form: Callable[..., Any], job: int) -> None:
    said = [{"zipFile": [], "eventRanges": [item(job, 1)]}, {"zipFile": {}, "eventRanges": 1}]
    assert form("updateEventRanges", version="1", eventRanges=said)["Returns"] == [False, False]
    assert rows() == [(7, 1, 25, S.SENT, job, 3)]


def test_a_file_that_holds_no_range_of_its_job_gets_no_row(form: Callable[..., Any], job: int) -> None:
    late = [zipped({"eventRangeID": named(job, 1, attempts=2), "eventStatus": "finished"}), zipped(item(job, 2))]
    told = form("updateEventRanges", version="1", eventRanges=late)
    assert told["Returns"] == [False, False]
    assert told["errorDialog"].startswith(f"item 0: job {job} has no such range")
    assert not JobFile.objects.exists() and rows() == [(7, 1, 25, S.SENT, job, 3)]


def test_a_report_that_is_sent_again_is_right_and_one_that_contradicts_it_is_not(
    form: Callable[..., Any], job: int
) -> None:
    said = [item(job, 1), item(job, 11, "failed"), item(job, 21, "fatal")]
    assert form("updateEventRanges", eventRanges=said)["Returns"] == [True, True, True]
    assert form("updateEventRanges", eventRanges=said)["Returns"] == [True, True, True]
    before = rows()
    told = form("updateEventRanges", eventRanges=[item(job, 1, "failed"), item(job, 11), item(job, 21)])
    assert told["Returns"] == [False, False, False]
    assert "item 0: the range is finished; item 1: the range is failed" in told["errorDialog"]
    assert rows() == before


def test_version_2_is_for_fine_grained_jobs_only(form: Callable[..., Any], make_consumer: Callable[..., int]) -> None:
    consumer = make_consumer()
    insert(RangeBlock(9, 1, 20, 10, attempts=3))
    given(consumer, 1)
    before = rows()
    said = [{"eventRangeID": named(owner, 11, file=9), "eventStatus": "finished"} for owner in (JOBSET, consumer)]
    assert form("updateEventRanges", version="2", eventRanges=said)["Returns"] == [False, False]
    assert rows() == before, "nobody was handed the second range"


def test_failures_are_kept_with_what_is_said_of_them(v1: Callable[..., Any], job: int) -> None:
    failed = item(job, 1, "failed", errorCode=1220, errorDiag="the payload died" * 100)
    told = v1("update_event_ranges", event_ranges=json.dumps([failed, item(job, 11, "fatal")]), version=0)
    assert told["data"] == {"StatusCode": 0, "Returns": [True, True], "Command": {}, "Commands": {}}
    block = Event.objects.get(min_event=1)
    assert (block.status, block.error_code, block.attempt) == (S.FAILED, 1220, 3)
    assert block.error_diag == ("the payload died" * 100)[:500]
    assert Event.objects.get(min_event=11).attempt == 1, "what is fatal is not tried again"
    assert Job.objects.get(pk=job).events == 0, "it has finished none"


def test_lists_are_taken_as_such_by_v1(v1: Callable[..., Any], job: int) -> None:
    assert v1("update_event_ranges", event_ranges=[item(job, 1, objstoreID="11/1000")])["data"]["Returns"] == [True]
    block = Event.objects.get(min_event=1)
    assert (block.objstore_id, block.path_convention, block.zip_row_id) == (11, 1000, None)


@pytest.mark.parametrize("status", ["holding", "activated", "finished"])
def test_a_job_that_is_not_at_work_reports_nothing(form: Callable[..., Any], job: int, status: str) -> None:
    Job.objects.filter(pk=job).update(status=status)
    told = form("updateEventRanges", eventRanges=[item(job, 1)])
    assert (told["Returns"], rows()) == ([False], [(7, 1, 25, S.SENT, job, 3)])


def test_a_job_whose_outputs_are_transferred_still_reports(form: Callable[..., Any], job: int) -> None:
    Job.objects.filter(pk=job).update(status="transferring")
    assert form("updateEventRanges", eventRanges=[item(job, 1)])["Returns"] == [True]
    assert rows()[0] == (7, 1, 10, S.FINISHED, job, 3)


def test_pilots_hear_the_commands_for_their_jobs(
    form: Callable[..., Any], v1: Callable[..., Any], job: int, make_consumer: Callable[..., int]
) -> None:
    killed, softly = make_consumer(command_to_pilot="tobekilled"), make_consumer(sup_error_code=122)
    said = [item(job, 1), item(killed, 1), item(softly, 1), item(12345, 1)]
    told = form("updateEventRanges", eventRanges=said)
    assert told["Returns"] == [True, False, False, False], "the two have no ranges"
    assert told["Command"] == {str(killed): "tobekilled", str(softly): "softkill", "12345": "tobekilled"}
    assert v1("update_event_ranges", event_ranges=said)["data"]["Commands"] == told["Command"]


def test_several_jobs_are_booked_by_one_call_and_each_has_its_own_file_of_a_name(
    form: Callable[..., Any],
    job: int,
    make_consumer: Callable[..., int],
    storage: StorageEndpoint,
) -> None:
    insert(RangeBlock(8, 1, 40, 10, attempts=3))
    others = [make_consumer() for _ in range(4)]
    for one in others:
        given(one, 1)
    said = [
        zipped(
            item(job, 1),
            *[{**item(one, 1), "eventRangeID": named(one, 1 + 10 * n, file=8)} for n, one in enumerate(others)],
        )
    ]
    assert form("updateEventRanges", version="1", eventRanges=said)["Returns"] == [True] * 5
    assert set(JobFile.objects.values_list("job_id", flat=True)) == {job, *others}
    zips = dict(JobFile.objects.values_list("job_id", "id"))
    assert all(e.zip_row_id == zips[e.job_id] for e in Event.objects.filter(status=S.FINISHED))
    assert [Job.objects.get(pk=one).events for one in (job, *others)] == [10] * 5


def test_a_range_whose_output_lies_nowhere_has_failed(form: Callable[..., Any], job: int) -> None:
    said = [item(job, 1), item(job, 11, objstoreID=None), zipped(item(job, 21, objstoreID=None))]
    told = form("updateEventRanges", version="1", eventRanges=said)
    assert told["Returns"] == [True, False, True]
    assert "item 1: it was reported as finished without a file" in told["errorDialog"]
    assert rows() == [(7, 1, 10, S.FINISHED, job, 3), (7, 11, 20, S.FAILED, job, 3), (7, 21, 25, S.FINISHED, job, 3)]
    assert Event.objects.get(min_event=11).error_code == 1137
    assert Job.objects.get(pk=job).events == 15


def test_ranges_that_a_consumer_has_begun_with_are_running(form: Callable[..., Any], job: int) -> None:
    assert form("updateEventRanges", eventRanges=[item(job, 11, "running")])["Returns"] == [True]
    begun = [(7, 1, 10, S.SENT, job, 3), (7, 11, 20, S.RUNNING, job, 3), (7, 21, 25, S.SENT, job, 3)]
    assert rows() == begun
    assert Job.objects.get(pk=job).ranges_reported_at is None, "it has processed none"
    assert form("updateEventRanges", eventRanges=[item(job, 11, "running")])["Returns"] == [True]
    assert rows() == begun
    assert form("updateEventRanges", eventRanges=[item(job, 11)])["Returns"] == [True]
    assert form("updateEventRanges", eventRanges=[item(job, 11, "running")])["Returns"] == [True], "it changes nothing"
    assert Event.objects.get(min_event=11).status == S.FINISHED


def test_other_peoples_jobs_are_unknown(
    api: Callable[..., Client], form: Callable[..., Any], v1: Callable[..., Any], job: int
) -> None:
    digest = hashlib.sha256(b"hush").digest()
    said = [item(job, 1)]
    refused = {"StatusCode": 0, "Returns": [False], "Command": {str(job): "tobekilled"}}
    for changes in ({"site": "SITE_B"}, {"site": "SITE_A", "fence": 3, "secret_hash": digest}):
        Job.objects.filter(pk=job).update(**changes)
        told = form("updateEventRanges", eventRanges=said)
        assert {key: told[key] for key in refused} == refused, changes
    for proof in ({"fence": 3}, {"fence": 3, "job_secret": "other"}, {"fence": 4, "job_secret": "hush"}):
        assert v1("update_event_ranges", event_ranges=said, **proof)["data"]["Returns"] == [False]
    assert v1("update_event_ranges", by=api("user"), event_ranges=said) == 403
    assert rows() == [(7, 1, 25, S.SENT, job, 3)]
    assert v1("update_event_ranges", event_ranges=said, fence=3, job_secret="hush")["data"]["Returns"] == [True]


def test_a_consumer_does_not_report_the_ranges_of_another(
    form: Callable[..., Any], job: int, make_consumer: Callable[..., int]
) -> None:
    other = make_consumer(site="SITE_B")
    insert(RangeBlock(8, 1, 10, 10, attempts=3))
    given(other, 1)
    theirs = {"eventRangeID": named(other, 1, file=8), "eventStatus": "finished"}
    posing = {"eventRangeID": named(job, 1, file=8), "eventStatus": "finished"}
    of_jobset = {"eventRangeID": named(JOBSET, 1), "eventStatus": "finished"}
    assert form("updateEventRanges", eventRanges=[theirs, posing, of_jobset])["Returns"] == [False, False, False]
    assert rows() == [(7, 1, 25, S.SENT, job, 3), (8, 1, 10, S.SENT, other, 3)]


def test_fine_grained_jobs_report_ranges_that_nobody_was_handed(
    form: Callable[..., Any], make_consumer: Callable[..., int]
) -> None:
    insert(RangeBlock(7, 1, 4, 1, attempts=3))
    job = make_consumer(event_service=EventJobKind.FINE, status="activated")
    early = [
        {"eventRangeID": named(JOBSET, n), "eventStatus": status} for n, status in ((1, "finished"), (3, "failed"))
    ]
    assert form("updateEventRanges", version="1", eventRanges=early)["Returns"] == [False, False]
    assert form("updateEventRanges", version="2", eventRanges=early)["Returns"] == [True, True]
    assert rows() == [
        (7, 1, 1, S.FINISHED, job, 3),
        (7, 2, 2, S.READY, JOBSET, 3),
        (7, 3, 3, S.FAILED, job, 3),
        (7, 4, 4, S.READY, JOBSET, 3),
    ]
    assert Job.objects.get(pk=job).events == 1
    Job.objects.filter(pk=job).update(status="running")
    given(job, 1)
    later = [{"eventRangeID": named(job, 2), "eventStatus": "finished"}]
    assert form("updateEventRanges", version="2", eventRanges=later)["Returns"] == [True]
    assert rows()[0] == (7, 1, 1, S.FINISHED, job, 3) and rows()[1] == (7, 2, 2, S.FINISHED, job, 3)
    elsewhere = make_consumer(event_service=EventJobKind.FINE, site="SITE_B", jobset_id=901)
    insert(RangeBlock(8, 1, 4, 1, attempts=3), jobset=901)
    foreign = [{"eventRangeID": f"{TASK}-{number}-8-1-3", "eventStatus": "finished"} for number in (901, elsewhere)]
    assert form("updateEventRanges", version="2", eventRanges=foreign)["Returns"] == [False, False]


def test_what_is_beyond_the_limit_is_ignored(form: Callable[..., Any], job: int) -> None:
    said = [{"eventRangeID": "1-2-3-4-5", "eventStatus": "finished"}] * 100_000 + [item(job, 1)]
    told = form("updateEventRanges", eventRanges=said)
    assert told["Returns"].count(False) == 100_000 and told["Returns"][-1] is None
    assert told["errorDialog"].count("item") == 5
    assert rows() == [(7, 1, 25, S.SENT, job, 3)]


def test_a_report_of_very_many_ranges_is_booked_at_once(
    form: Callable[..., Any], make_consumer: Callable[..., int]
) -> None:
    insert(*[RangeBlock(file, 1, 1000, 1, attempts=3) for file in range(1, 21)])
    job = make_consumer()
    given(job, 20_000)
    said = [
        {"eventRangeID": named(job, n, file=file), "eventStatus": "finished", "objstoreID": 11}
        for file in range(1, 21)
        for n in range(1, 1001, 2)
    ]
    assert form("updateEventRanges", eventRanges=said)["Returns"] == [True] * 10_000
    assert Job.objects.get(pk=job).events == 10_000
    assert form("updateEventRanges", eventRanges=said)["Returns"] == [True] * 10_000
    assert Job.objects.get(pk=job).events == 10_000, "said again, it is known"


def test_a_body_that_cannot_be_read_is_a_clear_problem(
    form: Callable[..., Any], v1: Callable[..., Any], job: int
) -> None:
    for bad in ("{", "{}", "7", '[{"eventRangeID": "a\\u0000"}]'):
        told = v1("update_event_ranges", event_ranges=bad)
        assert not told["success"] and "event_ranges" in told["message"], bad
        told = form("updateEventRanges", eventRanges=bad)
        assert told["StatusCode"] == 50 and "eventRanges" in told["errorDialog"], bad
    assert "event_ranges" in v1("update_event_ranges")["message"]
    for version in ("3", "-1", "one", 10**30):
        assert "version" in form("updateEventRanges", version=version, eventRanges=[item(job, 1)])["errorDialog"]
    assert rows() == [(7, 1, 25, S.SENT, job, 3)]


def test_one_range_is_reported_alone(form: Callable[..., Any], v1: Callable[..., Any], job: int) -> None:
    one = {"eventRangeID": named(job, 1), "eventStatus": "finished", "objstoreID": "11", "coreCount": "4"}
    assert form("updateEventRange", **one) == {"StatusCode": 0, "Command": "NULL"}
    assert Event.objects.get(min_event=1).objstore_id == 11
    told = v1("update_single_event_range", event_range_id=named(job, 11), event_range_status="failed")
    assert told["success"] and told["data"] == {"Command": "NULL"}
    assert rows()[1] == (7, 11, 20, S.FAILED, job, 3)
    assert form("updateEventRange", eventRangeID="1-2", eventStatus="finished")["StatusCode"] == 30
    assert (
        "weird" in v1("update_single_event_range", event_range_id=named(job, 21), event_range_status="weird")["message"]
    )
    assert form("updateEventRange", **{**one, "eventStatus": "running"}) == {"StatusCode": 0, "Command": "NULL"}
