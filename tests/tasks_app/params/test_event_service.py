"""What goes with event service, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from tasks_app.params import not_available
from tasks_app.params.event_service import AGAINST, AGAINST_OTHERS, ONLY_WITH, check_change
from tasks_app.params.faults import Faults
from tasks_app.params.schema import ParamErrors, parse
from tests.tasks_app.params import dictionaries as d

ACCEPTED = (
    "nEventsPerWorker",
    "nEsConsumers",
    "nSitesPerJob",
    "maxAttemptES",
    "maxAttemptEsJob",
    "notDiscardEvents",
    "decAttOnFailedES",
    "allowPartialFinish",
    "esmergeSpec",
    "inFilePosEvtNum",
    "esFraction",
    "useJobCloning",
    "fineGrainedProc",
)


def faults_of(raw: dict[str, Any]) -> dict[str, str]:
    try:
        parse(raw)
    except ParamErrors as exc:
        return {error.field: error.message for error in exc.errors}
    return {}


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_works_here_is_not_refused(name: str) -> None:
    assert name not in not_available.NOT_AVAILABLE


@pytest.mark.parametrize(
    ("name", "value"), [("nEsConsumers", 2), ("notDiscardEvents", True), ("esmergeSpec", {"jobParameters": "merge"})]
)
def test_parameters_of_event_service_need_it(name: str, value: object) -> None:
    assert name in ONLY_WITH
    said = faults_of(d.smallest(**{name: value}))
    assert said == {name: "It has no effect without nEventsPerWorker, which makes a task one of event service."}


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"useJobCloning": "runonce", "nEsConsumers": 3, "nSitesPerJob": 3, "nFilesPerJob": 1}, []),
        ({"useJobCloning": "runonce", "maxAttemptES": 3}, ["maxAttemptES"]),
        ({"useJobCloning": "storeonce", "nEventsPerWorker": 5}, ["nEventsPerWorker"]),
        ({"useJobCloning": "storeonce", "buildSpec": {"jobParameters": "x"}}, ["buildSpec"]),
        ({"useJobCloning": "storeonce", "fineGrainedProc": True}, ["fineGrainedProc"]),
        ({"fineGrainedProc": True}, []),
        ({"fineGrainedProc": True, "nEsConsumers": 2}, ["nEsConsumers"]),
        ({"fineGrainedProc": True, "mergeSpec": {"jobParameters": "merge"}}, ["mergeSpec"]),
        ({"fineGrainedProc": True, "nEvents": None, "nFiles": 2}, ["fineGrainedProc"]),
    ],
)
def test_what_goes_with_clones_and_with_single_events(changes: dict[str, Any], fields: list[str]) -> None:
    assert list(faults_of(d.smallest(**changes))) == fields


def test_two_kinds_are_both_named() -> None:
    said = faults_of(d.smallest(fineGrainedProc=True, useJobCloning="runonce"))
    assert said == {"fineGrainedProc": "A task is of one kind: leave out fineGrainedProc or useJobCloning."}


@pytest.mark.parametrize("changes", [{"nEsConsumers": 1}, {"notDiscardEvents": False}, {"esFraction": 0}])
def test_values_that_change_nothing_are_taken_anywhere(changes: dict[str, Any]) -> None:
    assert faults_of(d.smallest(**changes)) == {}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"nEventsPerInputFile": None}, "nEventsPerWorker"),
        ({"nEventsPerInputFile": None, "useRealNumEvents": True}, None),
        ({"nEventsPerInputFile": None, "getNumEventsInMetadata": True}, None),
        ({"esmergeSpec": None}, None),
        ({"esmergeSpec": {"jobParameters": "merge"}}, "esmergeSpec.transPath"),
        ({"esmergeSpec": {"transPath": "m", "jobParameters": "${IN} ${OUTPUT7}"}}, "esmergeSpec.jobParameters"),
        ({"mergeSpec": {"jobParameters": "merge"}}, "mergeSpec"),
        ({"mergeOutput": True}, "mergeOutput"),
        ({"minGranularity": 5}, "minGranularity"),
        ({"preproSpec": {"jobParameters": "look"}}, "preproSpec"),
        ({"maxAttemptES": 1}, None),
    ],
)
def test_what_event_service_cannot_be_without_and_cannot_have(changes: dict[str, Any], field: str | None) -> None:
    assert list(faults_of(d.event_service(**changes))) == ([field] if field else [])


def test_groups_of_files_are_not_divided_by_events() -> None:
    assert "groupBoundaryID" in faults_of(d.event_service(groupBoundaryID=1))


def test_a_task_without_files_says_how_many_events_it_makes() -> None:
    assert faults_of(d.smallest(nEventsPerWorker=1)) == {}
    no_events = d.smallest(nEventsPerWorker=1, nEvents=None, nFiles=2)
    assert list(faults_of(no_events)) == ["nEventsPerWorker"]


def test_a_share_of_the_tasks_needs_the_same() -> None:
    assert list(faults_of(d.smallest(esFraction=0.5, nEvents=None, nFiles=1))) == ["esFraction"]


def test_every_sentence_is_whole() -> None:
    for why in (*AGAINST.values(), *(why for some in AGAINST_OTHERS.values() for why in some.values())):
        assert why.endswith(".") and why[0].isupper()


@pytest.mark.parametrize(
    ("changes", "now", "fields"),
    [
        ({"nEventsPerWorker": 5}, False, ["nEventsPerWorker"]),
        ({"nEsConsumers": 3}, False, ["nEsConsumers"]),
        ({"nEsConsumers": 1, "nFilesPerJob": 2}, False, []),
        ({"nEventsPerWorker": None}, False, []),
        ({"nEventsPerWorker": 5, "nEsConsumers": 3}, True, []),
        ({"nEventsPerWorker": None}, True, ["nEventsPerWorker"]),
        ({"useJobCloning": "runonce"}, False, ["useJobCloning"]),
        ({"fineGrainedProc": None}, True, ["fineGrainedProc"]),
    ],
)
def test_a_task_is_of_event_service_or_not_from_its_beginning(
    changes: dict[str, Any], now: bool, fields: list[str]
) -> None:
    faults = Faults()
    check_change(changes, now=now, faults=faults)
    assert [fault.field for fault in faults.found] == fields


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"nJumboJobs": 1}, []),
        ({"nJumboJobs": 1, "maxJumboPerSite": 2}, []),
        ({"nJumboJobs": 0}, []),
        ({"maxJumboPerSite": 2}, ["maxJumboPerSite"]),
        ({"nJumboJobs": 1, "site": "A"}, ["nJumboJobs"]),
        ({"nJumboJobs": 1, "nFilesPerJob": 2, "inFilePosEvtNum": None, "transPath": "simulate"}, ["nJumboJobs"]),
        ({"nJumboJobs": 1, "nFilesPerJob": 2, "inFilePosEvtNum": None, "transPath": "run_command"}, []),
        ({"nJumboJobs": 1, "nFilesPerJob": 2}, []),
        (
            {"nJumboJobs": 1, "nFilesPerJob": None, "inFilePosEvtNum": None, "nEventsPerJob": 50},
            [],
        ),
    ],
)
def test_jumbo_jobs_choose_their_queues_and_need_positions_inside_of_files(
    changes: dict[str, Any], fields: list[str]
) -> None:
    assert list(faults_of(d.event_service(**changes))) == fields
