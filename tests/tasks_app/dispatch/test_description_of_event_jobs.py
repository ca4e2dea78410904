"""The job object of jobs that take ranges of events, or merge what they made, as PanDA's pilots and ours read it."""

from __future__ import annotations

from typing import Any

import pytest

from tasks_app.dispatch.description import AtQueue, File, behind_walls, described
from tasks_app.worker_node.pilot.job import parse_job
from tasks_app.worker_node.pilot.lists_of_inputs import lists_in
from tasks_app.worker_node.pilot.oneword import of_word

JOBSET = 14
INPUT: File = ["input", "ev.npy", "lab", "g", "10", "ad:1", "lab.in", None, "file:///ev.npy"]
OUTPUTS: list[File] = [
    ["output", "lab.a.1", "lab", None, None, None, "lab.out", "SE", None],
    ["output", "lab.b.1", "lab", None, None, None, "lab.out", "SE", None],
]
LOG: File = ["log", "lab.log.1", "lab", "h", None, None, "lab.log", "SE", None]
ZIPS: list[File] = [
    ["zipinput", "z1.tar", "transient", "z", "99", "ad:2", None, "11/1000", "file:///z1.tar"],
    ["zipinput", "z2.tar", None, None, None, None, None, "12", None],
]
LIBRARY: File = ["lib", "lib.tgz", "lab", "l", "7", "ad:3", "lab.lib", None, "file:///lib.tgz"]


def job(kind: int | None, secret: str, *files: File, program: str = "event_command", params: str = "-p x") -> Any:
    row: list[Any] = [None] * 29
    row[:5] = [7, 3, 1, 1, program]
    row[JOBSET] = 900
    return described((*row, kind, params, list(files)), secret, AtQueue("SE", "SE", 0, frozenset({"SE"})))


@pytest.mark.parametrize("kind", [1, 4, 5, 6])
def test_a_job_that_takes_ranges_has_its_inputs_and_its_log_and_no_outputs(kind: int) -> None:
    said = job(kind, "secret", INPUT, *OUTPUTS, LOG)
    assert (said["eventService"], said["jobsetID"], said["inFiles"], said["jobPars"]) == ("True", 900, "ev.npy", "-p x")
    assert (said["outFiles"], said["logFile"], said["scopeOut"], said["scopeLog"]) == (
        "lab.log.1",
        "lab.log.1",
        "",
        "lab",
    )
    assert said["ddmEndPointOut"] == "SE" and said["realDatasets"] == "lab.log"
    read = parse_job(said)
    assert read.takes_ranges and not read.outputs and read.log


@pytest.mark.parametrize("secret", ["secret", ""])
def test_a_clone_is_an_ordinary_job_to_all_pilots(secret: str) -> None:
    said = job(3, secret, INPUT, *OUTPUTS, LOG)
    assert said == job(None, secret, INPUT, *OUTPUTS, LOG)
    assert said["outFiles"] == "lab.a.1,lab.b.1,lab.log.1" and "eventService" not in said


@pytest.mark.parametrize("kind", [1, 4, 5])
def test_pandas_pilots_get_no_log_since_theirs_is_lost_and_the_word_that_they_look_for(kind: int) -> None:
    said = job(kind, "", INPUT, *OUTPUTS, LOG)
    assert (said["eventService"], said["outFiles"], said["logFile"], said["logGUID"]) == ("True", "", "", "")
    assert said["jobPars"] == "--channel PILOT_EVENTRANGECHANNEL -p x"


@pytest.mark.parametrize(
    ("program", "params", "told"),
    [
        ("http://x/trf/user/zmumu_ranges", "--output o", "--channel PILOT_EVENTRANGECHANNEL --output o"),
        ("event_command", "--channel PILOT_EVENTRANGECHANNEL", "--channel PILOT_EVENTRANGECHANNEL"),
        ("users.py", "a b", "a b"),
        (None, "", ""),
    ],
)
def test_only_our_programs_get_the_word_since_others_would_read_it_as_theirs(
    program: Any, params: str, told: str
) -> None:
    assert job(1, "", program=program, params=params)["jobPars"] == told


@pytest.mark.parametrize("where", ["", "http://x:80/trf/user/"])
@pytest.mark.parametrize("kind", [1, 6])
def test_who_runs_a_command_runs_it_for_each_range(kind: int, where: str) -> None:
    said = job(kind, "secret", program=f"{where}run_command")
    assert (said["transformation"], said["jobPars"]) == (f"{where}event_command", "-p x")
    assert job(2, "secret", program="run_command")["transformation"] == "run_command"
    assert job(1, "secret", program="my_run_command")["transformation"] == "my_run_command"


def test_a_fine_grained_job_is_like_any_other_to_pandas_pilots() -> None:
    assert job(6, "", INPUT, *OUTPUTS, LOG) == job(None, "", INPUT, *OUTPUTS, LOG)


@pytest.mark.parametrize("secret", ["", "secret"])
def test_a_merge_job_reads_the_files_of_ranges_and_none_of_its_inputs(secret: str) -> None:
    said = job(2, secret, INPUT, LIBRARY, *ZIPS, *OUTPUTS, LOG)
    told = {
        "eventServiceMerge": "True",
        "inFiles": "lib.tgz,z1.tar,z2.tar",
        "scopeIn": "lab,transient,transient",
        "prodDBlockToken": "NULL,11/1000,12/1000",
        "ddmEndPointIn": "SE,SE,SE",
        "GUID": "l,z,NULL",
        "fsize": "7,99,NULL",
        "checksum": "ad:3,ad:2,NULL",
        "surlsIn": ["file:///lib.tgz", "file:///z1.tar", None],
        "outFiles": "lab.a.1,lab.b.1,lab.log.1",
        "writeToFile": "inputFor_lab.a.1:z1.tar,z2.tar^inputFor_lab.b.1:z1.tar,z2.tar",
    }
    assert {key: said[key] for key in told} == told
    assert "eventService" not in said
    read = parse_job(said)
    assert read.merges_ranges and [file.lfn for file in read.inputs] == ["lib.tgz", "z1.tar", "z2.tar"]
    assert lists_in(read.write_to_file)["inputFor_lab.b.1"] == ["z1.tar", "z2.tar"]
    assert of_word(behind_walls(said, "walls")["jobPars"])[-1] == said["writeToFile"]


def test_a_job_without_events_is_described_as_ever() -> None:
    plain = job(None, "secret", INPUT, *ZIPS, *OUTPUTS, LOG)
    assert plain == job(0, "secret", INPUT, *OUTPUTS, LOG)
    assert not {"eventService", "eventServiceMerge", "writeToFile"} & plain.keys()
    assert (
        plain["outFiles"] == "lab.a.1,lab.b.1,lab.log.1" and of_word(behind_walls(plain, "walls")["jobPars"])[-1] == ""
    )
