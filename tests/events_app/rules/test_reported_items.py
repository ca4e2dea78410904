"""Reports on ranges as pilots and harvester send them, and as nobody should."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events_app.rules.event_states import EventStatus
from events_app.rules.range_ids import RangeId
from events_app.rules.reported_items import MOST, Item, RangeReport, ZipFile, read_items

ID = "2001-901-7-11-3"
RANGE = RangeId(2001, 901, 7, 11, 3)
DONE = {"eventRangeID": ID, "eventStatus": "finished"}
ZIP = {"lfn": "z1.zip", "objstoreID": 11, "fsize": 5, "adler32": "ab", "pathConvention": 1000, "numEvents": 2}
FINISHED = RangeReport(EventStatus.FINISHED)


@pytest.mark.parametrize(
    ("raw", "report"),
    [
        (DONE, FINISHED),
        (
            {**DONE, "objstoreID": "11/1000", "coreCount": 8, "cpuConsumptionTime": 9.5},
            FINISHED._replace(objstore_id=11, path_convention=1000),
        ),
        ({**DONE, "objstoreID": 11, "pathConvention": "7"}, FINISHED._replace(objstore_id=11, path_convention=7)),
        (
            {**DONE, "eventStatus": "failed", "errorCode": "1220", "errorDiag": {"code": 7}},
            RangeReport(EventStatus.FAILED, error_code=1220, error_diag="{'code': 7}"),
        ),
        ({**DONE, "eventStatus": "fatal", "errorDiag": ""}, RangeReport(EventStatus.FAILED, attempts=1)),
        (
            {**DONE, "eventStatus": "failed", "errorCode": -9, "errorDiag": "x\0" * 600},
            RangeReport(EventStatus.FAILED, error_code=-9, error_diag="x" * 500),
        ),
        (
            {**DONE, "eventStatus": "failed", "errorDiag": "it died\r\nSubject: \u202edone\x85 "},
            RangeReport(EventStatus.FAILED, error_diag="it died Subject: done"),
        ),
        ({**DONE, "eventStatus": "failed", "errorDiag": "\n\u2028"}, RangeReport(EventStatus.FAILED)),
    ],
)
def test_an_item_of_version_0(raw: dict[str, Any], report: RangeReport) -> None:
    found = read_items([raw])
    assert found.items == [Item(0, RANGE, report, None)]
    assert (found.answers, found.reasons) == ([True], {})


def test_of_items_on_one_range_that_contradict_each_other_the_first_counts() -> None:
    found = read_items([{**DONE, "eventStatus": "failed"}, DONE, {**DONE, "eventStatus": "fatal"}])
    assert found.answers == [True, False, True] and len(found.items) == 2
    assert found.reasons == {1: "the same report says otherwise of the range before"}
    assert read_items([DONE, {**DONE, "eventStatus": "failed"}]).answers == [True, False]


def test_items_of_a_zip_file_share_it() -> None:
    other = {**DONE, "eventRangeID": "2001-901-7-21-3"}
    found = read_items([{"zipFile": ZIP, "eventRanges": [DONE, other]}, DONE])
    kept = ZipFile("z1.zip", 5, "ab", 2, 11, 1000)
    stored = FINISHED._replace(objstore_id=11, path_convention=1000)
    assert found.answers == [True, True, True]
    assert found.items == [
        Item(0, RANGE, stored, kept),
        Item(1, RANGE._replace(process_id=21), stored, kept),
        Item(2, RANGE, FINISHED, None),
    ]


@pytest.mark.parametrize(
    ("raw", "answer", "says"),
    [
        (7, False, "no object"),
        ({}, False, "eventRangeID is missing"),
        ({"eventRangeID": "2001-901-7-11", "eventStatus": "finished"}, False, "4 parts"),
        ({"eventRangeID": "2001-901-x-11-3", "eventStatus": "finished"}, False, "'x'"),
        ({"eventRangeID": ID}, False, "eventStatus is None"),
        ({"eventRangeID": ID, "eventStatus": "weird"}, False, "known are finished, failed, fatal, running"),
        ({"eventRangeID": ID, "eventStatus": ["finished"]}, False, "eventStatus is ['finished']"),
        ({"eventRangeID": ID, "eventStatus": "transferring"}, None, ""),
        ({**DONE, "objstoreID": -1}, False, "objstoreID is -1"),
        ({**DONE, "objstoreID": True}, False, "objstoreID is True"),
        ({**DONE, "errorCode": 2**40}, False, "errorCode"),
        ({**DONE, "pathConvention": "a"}, False, "pathConvention"),
    ],
)
def test_an_item_that_is_not_taken(raw: Any, answer: bool | None, says: str) -> None:
    found = read_items([DONE, raw, DONE])
    assert found.answers == [True, answer, True], "the others are taken"
    assert says in found.reasons.get(1, "") and (answer is False) == bool(found.reasons)
    assert [item.place for item in found.items] == [0, 2]


@pytest.mark.parametrize(
    ("zip_file", "says"),
    [
        ({**ZIP, "fsize": -5}, "fsize is -5"),
        ({**ZIP, "fsize": None}, "fsize is missing"),
        ({**ZIP, "lfn": "../etc/passwd"}, "no name of a file"),
        ({**ZIP, "lfn": ".."}, "no name of a file"),
        ({**ZIP, "adler32": "xyz"}, "no checksum"),
        ({**ZIP, "numEvents": -1}, "numEvents is -1"),
        ("z1.zip", "no object"),
    ],
)
def test_a_bad_zip_file_refuses_its_items_alone(zip_file: Any, says: str) -> None:
    found = read_items([{"zipFile": zip_file, "eventRanges": [DONE, DONE]}, {"zipFile": ZIP, "eventRanges": [DONE]}])
    assert found.answers == [False, False, True]
    assert says in found.reasons[0] and found.reasons[0] == found.reasons[1]
    assert read_items([{"zipFile": ZIP, "eventRanges": "x"}]).answers == [False]


@pytest.mark.parametrize(
    ("words", "answers"),
    [
        (["running", "finished"], [True, True]),
        (["finished", "running"], [True, None]),
        (["running", "running"], [True, None]),
        (["running", "failed", "finished"], [True, True, False]),
    ],
)
def test_how_a_range_ended_counts_more_than_that_it_is_running(words: list[str], answers: list[bool | None]) -> None:
    found = read_items([{"eventRangeID": ID, "eventStatus": word} for word in words])
    assert found.answers == answers
    ended = next((word for word in words if word != "running"), "running")
    assert {item.report.status.word for item in found.items} == {ended}


def test_items_behind_the_greatest_number_are_ignored() -> None:
    found = read_items([{"eventRangeID": ID, "eventStatus": "transferring"}] * MOST + [DONE])
    assert found.answers == [None] * (MOST + 1) and not found.items


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["zipFile", "eventRanges", "eventRangeID", "eventStatus", "lfn", "fsize", "errorDiag", "objstoreID"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=5))
def test_whatever_is_sent_gets_an_answer(said: list[Any]) -> None:
    found = read_items(said)
    assert len([a for a in found.answers if a]) == len(found.items)
    assert set(found.reasons) == {place for place, answer in enumerate(found.answers) if answer is False}
