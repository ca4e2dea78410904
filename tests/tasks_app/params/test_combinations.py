"""Parameters that contradict each other or have no effect beside others: refused, or told."""

from __future__ import annotations

from typing import Any

import pytest

from tasks_app.params.combinations import remarks
from tasks_app.params.schema import ParamErrors, parse
from tests.tasks_app.params import dictionaries as d
from tests.tasks_app.params.dictionaries import Params

SENT = {"processingType": "panda-client-1.6-jedi-run"}


def reading(**changes: Any) -> Params:
    """A task that reads twelve files, five for each job."""
    items = [d.template("input", "${IN/T}", "user.ada.in"), d.template("output", "o.${SN}.txt", "user.ada.o")]
    usual = {"noInput": None, "nEvents": None, "nEventsPerJob": None, "nFilesPerJob": 5, "jobParameters": items}
    return d.smallest(**{**usual, **changes})


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"ttcrTimestamp": "tomorrow"}, "ttcrTimestamp", "give a time in UTC such as 2031-05-06 07:08:09"),
        ({"walltimeUnit": "fortnight"}, "walltimeUnit", "Expected one of kSI2kseconds"),
        ({"ddmBackEnd": "xyz"}, "ddmBackEnd", "Expected one of rucio"),
        ({"transferType": "carrier-pigeon"}, "transferType", "direct, root, davs, file and fax"),
        ({"transferType": "direct,"}, "transferType", "separated by commas"),
        ({"skipShortInput": True}, "skipShortInput", "skipShortOutput"),
        ({"skipShortInput": True, "nEventsPerJob": 5}, "skipShortInput", "skipShortOutput"),
        ({"coreCount": 8, "maxCoreCount": 2}, "maxCoreCount", "below coreCount (8)"),
        (
            {"retryRamMax": 100, "retryRamStep": 50, "ramCount": 2000},
            "retryRamMax",
            "below ramCount (2000 MB), and it is 100",
        ),
        (
            {"retryRamMax": 7000, "retryRamStep": 50, "ramCount": 2000, "ramUnit": "MBPerCore", "coreCount": 4},
            "retryRamMax",
            "ramCount (2000 MB for each of 4 cores)",
        ),
        ({"retryRamMax": 100, "retryRamStep": 200}, "retryRamMax", "below retryRamStep (200)"),
        ({"retryRamMax": 100}, "retryRamMax", "no effect without retryRamStep or retryRamOffset"),
        ({"stayOutputOnSite": True, "destination": "X_DISK"}, "destination", "leave out one of them"),
        ({"minGranularity": 5}, "minGranularity", "give nEventsPerInputFile, or useRealNumEvents"),
        ({"pfnList": ["file:///a"]}, "pfnList", "no effect on a task that reads datasets"),
        ({"maxEventsPerJob": 3}, "maxEventsPerJob", "It has no effect without minGranularity"),
        ({"nEventsPerRange": 5}, "nEventsPerRange", "give nEventsPerInputFile, or useRealNumEvents"),
        ({"nEventsPerInputFile": 5, "nEventsPerFile": 6}, "nEventsPerFile", "give one of them"),
        ({"inputPreStaging": True, "toStaging": False}, "toStaging", "inputPreStaging is true and toStaging"),
        ({"inputPreStaging": False, "toStaging": True}, "inputPreStaging", "toStaging is true and inputPreStaging"),
        ({"toStaging": True, "panda_data_carousel": False}, "panda_data_carousel", "give one of them"),
        (
            {"minGranularity": 5, "nEventsPerRange": 6, "nEventsPerFile": 9},
            "nEventsPerRange",
            "give one of them",
        ),
    ],
)
def test_what_cannot_mean_anything_is_refused_with_a_sentence(changes: Params, field: str, says: str) -> None:
    with pytest.raises(ParamErrors) as found:
        parse(reading(**changes))
    assert [fault.field for fault in found.value.errors] == [field]
    assert says in found.value.errors[0].message


def test_outputs_that_stay_have_no_place_of_an_item_either() -> None:
    raw = reading(stayOutputOnSite=True)
    raw["jobParameters"][1]["destination"] = "X_DISK"
    with pytest.raises(ParamErrors) as found:
        parse(raw)
    assert [fault.field for fault in found.value.errors] == ["jobParameters[1].destination"]


@pytest.mark.parametrize("name", ["respectLB", "orderByLB", "inputPreStaging", "toStaging", "waitInput"])
def test_a_task_without_input_does_not_ask_for_what_is_done_with_inputs(name: str) -> None:
    with pytest.raises(ParamErrors) as found:
        parse(d.smallest(**{name: True}))
    assert [(fault.field, fault.rule) for fault in found.value.errors] == [(name, "without effect")]


def test_a_task_that_makes_up_its_work_waits_for_other_inputs() -> None:
    more = d.template("input", "--calibration=${CAL}", "lab.cal", attributes="nosplit, repeat")
    parse(d.smallest(jobParameters=[more], inputPreStaging=True, waitInput=True))


@pytest.mark.parametrize(
    "changes",
    [
        {"ttcrTimestamp": "2031-05-06 07:08:09.5"},
        {"ttcrTimestamp": "2031-05-06 07:08:09.123456+00:00"},
        {"ttcrTimestamp": ""},
        {"walltimeUnit": "kSI2kseconds"},
        {"transferType": "root,davs"},
        {"transferType": ""},
        {"skipShortInput": True, "nEventsPerJob": 5, "nEventsPerFile": 12},
        {"coreCount": 2, "maxCoreCount": 2},
        {"retryRamMax": 8000, "retryRamOffset": 4000, "ramCount": 2000, "ramUnit": "MBPerCore", "coreCount": 4},
        {"minGranularity": 5, "getNumEventsInMetadata": True},
    ],
)
def test_what_goes_together_is_taken_without_a_word(changes: Params) -> None:
    assert remarks(parse(reading(**changes))) == []


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"nMaxFilesPerJob": 2}, "nMaxFilesPerJob 2 has no effect: a job gets 5 files, as nFilesPerJob says."),
        ({"nMaxFilesPerJob": 5}, ""),
        ({"nMaxFilesPerJob": 2, **SENT}, "--maxNFilesPerJob 2 has no effect: a job gets 5 files"),
        ({"tgtNumEventsPerJob": 9}, "tgtNumEventsPerJob has no effect: nFilesPerJob says what a job gets."),
        ({"tgtNumEventsPerJob": 9, "nEventsPerJob": 4}, "tgtNumEventsPerJob has no effect: nEventsPerJob"),
        ({"disableAutoRetry": True, "maxAttempt": 5}, "maxAttempt 5 has no effect with disableAutoRetry"),
        ({"disableAutoRetry": True, "maxAttempt": 1}, ""),
        ({"maxFailure": 500, "maxAttempt": 1}, "maxFailure 500 has no effect: each input is tried once"),
        ({"maxFailure": 7, "maxAttempt": 3}, "maxFailure 7 has no effect: each input is tried 3 times"),
        ({"maxFailure": 2, "maxAttempt": 3}, ""),
        ({"addNthFieldToLFN": "2"}, "addNthFieldToLFN has no effect: no name of an output has ${MIDDLENAME}"),
        ({"useFileAsSourceLFN": True}, "useFileAsSourceLFN has no effect without addNthFieldToLFN"),
        ({"addNthFieldToLFN": "2", "useFileAsSourceLFN": True, "nFilesPerJob": 1}, ""),
        (
            {"addNthFieldToLFN": "2", "useFileAsSourceLFN": True},
            "With useFileAsSourceLFN a job may get fewer than 5 files",
        ),
        ({"useExhausted": True}, "useExhausted has no effect but for production tasks."),
        ({"useExhausted": True, "taskType": "prod"}, ""),
        ({"nFilesPerMergeJob": 3}, "nFilesPerMergeJob has no effect without mergeOutput"),
        ({"mergeRamCount": 3000}, "mergeRamCount has no effect without mergeOutput"),
        ({"mergeRamCount": 0}, ""),
        ({"nGBPerMergeJob": 3, **SENT}, "--nGBPerMergeJob has no effect without --mergeOutput"),
        ({"mergeSpec": {"jobParameters": "x"}}, "mergeSpec has no effect without mergeOutput"),
        ({"noInputPooling": True, "nChunksToWait": 3}, "noInputPooling has no effect"),
        (
            {"nEventsPerInputFile": 20, "useRealNumEvents": True, "nEventsPerWorker": 5},
            "useRealNumEvents has no effect: each file counts as 20 events, as nEventsPerInputFile says;",
        ),
        ({"noWaitParent": True}, "noWaitParent has no effect without parent_tid"),
        ({"noWaitParent": True, **SENT}, "--noWaitParent has no effect"),
        ({"noWaitParent": True, "parent_tid": 7}, ""),
        ({"umNameAtEnd": True}, "umNameAtEnd has no effect without mergeOutput"),
        ({"onlyTagsForFC": True}, "onlyTagsForFC has no effect without container_name."),
        ({"onlyTagsForFC": True, "container_name": "docker://x"}, ""),
        ({"cloudAsVO": True}, "cloudAsVO has no effect without cloud."),
        ({"cloudAsVO": True, "cloud": "DE"}, ""),
        ({"useInFilesWithNewAttemptNr": True}, "useInFilesWithNewAttemptNr has no effect where no item names files."),
        ({"inFilePosEvtNum": True}, "inFilePosEvtNum has no effect where jobs take whole files"),
        ({"inFilePosEvtNum": True, "nEventsPerJob": 5, "nEventsPerFile": 12}, ""),
        ({"orderInputBy": "eventsAlignment"}, "orderInputBy has no effect where jobs are not made by events"),
        ({"orderInputBy": "eventsAlignment", "nEventsPerJob": 5}, ""),
        ({"noInput": True, "pfnList": ["file:///a"], "nEvents": 3, "jobParameters": [d.constant("x")]}, "nEvents has"),
        ({"noInput": True, "pfnList": ["file:///a"], "nFiles": 1, "jobParameters": [d.constant("x")]}, ""),
        ({"forceStaged": True, "useLocalIO": False}, "useLocalIO has no effect: forceStaged says the opposite."),
    ],
)
def test_what_clients_send_together_is_taken_and_told(changes: Params, says: str) -> None:
    said = remarks(parse(reading(**changes)))
    assert len(said) == bool(says) and all(one.startswith(says) for one in said), said


def test_a_field_that_stands_in_the_name_of_an_output_has_its_effect() -> None:
    raw = reading(addNthFieldToLFN="2")
    raw["jobParameters"][1]["value"] = "o${MIDDLENAME}.${SN}.txt"
    assert remarks(parse(raw)) == []


def test_a_task_without_input_is_told_what_is_said_of_inputs_in_vain() -> None:
    said = remarks(parse(d.smallest(allowEmptyInput=True)))
    assert said == ["allowEmptyInput has no effect with noInput: the task reads no dataset."]
