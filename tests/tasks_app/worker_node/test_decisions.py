"""What the pilot decides from plain values."""

from __future__ import annotations

import argparse
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.worker_node.pilot.errors import Code, JobFailedError
from tasks_app.worker_node.pilot.job import BadJobError, is_plain_name, parse_job
from tasks_app.worker_node.pilot.job_limits import Limits, Measure, memory_limit_mb, verdict, with_disk
from tasks_app.worker_node.pilot.settings import SettingsError, add_arguments, from_arguments
from tasks_app.worker_node.pilot.site_client import LONGEST_DELAY_S, backoff
from tasks_app.worker_node.pilot.stagein import local_path
from tasks_app.worker_node.pilot.storage import Place, base_folder, default_endpoint, place

JOB: dict[str, Any] = {"PandaID": "7", "transformation": "t", "jobPars": None}


@pytest.mark.parametrize(
    ("measure", "code"),
    [
        (Measure(rss_kb=500 * 1024, disk_kb=100 * 1024, wall_s=60.0), None),
        (Measure(rss_kb=500 * 1024 + 1), Code.EXCEEDED_MAX_MEMORY),
        (Measure(disk_kb=100 * 1024 + 1), Code.WORK_FOLDER_TOO_LARGE),
        (Measure(unseen="it is deep"), Code.WORK_FOLDER_TOO_LARGE),
        (Measure(wall_s=60.1), Code.REACHED_MAX_TIME),
        (Measure(rss_kb=501 * 1024, disk_kb=101 * 1024, wall_s=61.0), Code.EXCEEDED_MAX_MEMORY),
    ],
)
def test_a_limit_is_passed_only_above_it(measure: Measure, code: Code | None) -> None:
    failure = verdict(measure, Limits(memory_mb=500, wall_s=60, disk_mb=100))
    assert (failure.code if failure else None) == code


def test_the_sentence_has_both_numbers() -> None:
    failure = verdict(Measure(rss_kb=812 * 1024), Limits(memory_mb=500))
    assert failure and failure.diag == "The payload used 812 MB, its limit is 500 MB"
    failure = verdict(Measure(unseen="it is deep"), Limits(disk_mb=10))
    assert failure and failure.diag == "The work folder cannot be measured: it is deep; its limit is 10 MB"


@given(st.builds(Measure, st.integers(0, 1 << 40), st.just(0.0), st.floats(0, 1e9), st.integers(0, 1 << 40)))
def test_without_limits_everything_is_allowed(measure: Measure) -> None:
    assert verdict(measure, Limits()) is None
    assert verdict(replace(measure, unseen="it is deep"), Limits()) is None


def test_the_job_is_held_to_what_it_asked_for_and_else_to_the_slot() -> None:
    assert (memory_limit_mb(450, 2000), memory_limit_mb(0, 2000), memory_limit_mb(0, 0)) == (500, 2000, 0)
    assert memory_limit_mb(1900, 2000) == 2000


@pytest.mark.parametrize(
    ("job_mb", "queue_mb", "free_mb", "most", "whose"),
    [
        (301, 20_000, 100_000, 20_000, "the limit of the queue (maxwdir)"),
        (301, 20_000, 10_000, 5000, "half of what was free on its disk"),
        (301, 20_000, 100, 301, "what the job was expected to need"),
        (301, 0, 100_000, 301, "what the job was expected to need"),
        (5000, 4000, 100_000, 5000, "what the job was expected to need"),
        (0, 4000, 100_000, 4000, "the limit of the queue (maxwdir)"),
    ],
)
def test_a_job_may_fill_what_the_queue_gives_and_the_sentence_says_whose_limit_it_is(
    job_mb: int, queue_mb: int, free_mb: int, most: int, whose: str
) -> None:
    limits = with_disk(Limits(memory_mb=7), job_mb, queue_mb, free_mb)
    assert (limits.memory_mb, limits.disk_mb) == (7, most)
    assert verdict(Measure(disk_kb=most * 1024), limits) is None
    failure = verdict(Measure(disk_kb=most * 1024 + 1), limits)
    limit = f"its limit is {most} MB, {whose}."
    assert failure and failure.diag.startswith(f"The work folder held {most + 1} MB, {limit}")
    # No workDiskCount gives more than the queue.
    assert ("workDiskCount" in failure.diag) is ("of the queue" not in whose)
    assert ("needs a queue with more disk" in failure.diag) is ("of the queue" in whose)
    assert with_disk(Limits(), 0, 0, 100) == Limits()


@given(st.integers(0, 10_000), st.floats(0, 1, exclude_max=True))
def test_waiting_grows_but_not_for_ever(attempt: int, chance: float) -> None:
    assert 0.25 <= backoff(attempt, chance) <= LONGEST_DELAY_S
    assert backoff(attempt + 1, chance) >= backoff(attempt, chance)


def test_a_file_lies_where_its_scope_and_name_say() -> None:
    digest = hashlib.md5(b"user.jdoe:x.txt").hexdigest()
    where = place(Path("/SE"), "user.jdoe", "x.txt")
    assert where.url == f"file://localhost/SE/user/jdoe/{digest[:2]}/{digest[2:4]}/x.txt"


@given(st.text(), st.text())
def test_no_scope_and_no_name_lead_out_of_the_storage(scope: str, lfn: str) -> None:
    try:
        where = place(Path("/SE"), scope, lfn)
    except JobFailedError:
        return
    assert ".." not in where.path.parts and where.path.is_relative_to("/SE/")
    assert where.path.name == lfn


@given(st.text())
def test_a_plain_name_is_one_file_in_a_folder(name: str) -> None:
    if is_plain_name(name):
        assert (Path("/a") / name).parent == Path("/a") and (Path("/a") / name).name == name


def test_an_endpoint_without_a_path_for_us_is_refused_with_its_own_code() -> None:
    wan = {"arprotocols": {"write_wan": [{"endpoint": "root://x", "path": "/d"}]}}
    for storage_map, code in (({}, Code.NO_STORAGE), ({"SE": wan}, Code.NO_STORAGE_PROTOCOL)):
        with pytest.raises(JobFailedError) as caught:
            base_folder("SE", storage_map)
        assert caught.value.failure.code == code


def test_a_queues_own_storage() -> None:
    assert default_endpoint({"astorages": {"write_lan": ["A", "B"], "pw": ["C"]}}) == "A"
    assert default_endpoint({"astorages": {"pw": ["C"]}}) == "C"
    assert default_endpoint({}) == ""


def test_addresses_of_files_are_decoded() -> None:
    assert local_path("file://localhost/a%20b,c") == Path("/a b,c")
    assert local_path(Place(Path("/SE"), Path("/SE/a b%20c")).url) == Path("/SE/a b%20c")
    assert local_path("file:///a") == Path("/a")
    assert local_path("file://elsewhere/a") is None
    assert local_path("root://x//a") is None


def test_null_and_absent_mean_none() -> None:
    job = parse_job(JOB | {"inFiles": "NULL", "outFiles": "", "logFile": None, "minRamCount": "NULL"})
    assert (job.id, job.inputs, job.outputs, job.log, job.memory_mb, job.parameters) == (7, (), (), None, 0, "")


def test_outputs_are_told_from_the_log() -> None:
    job = parse_job(
        JOB | {"outFiles": "a,l,b", "logFile": "l", "scopeOut": "s,t", "scopeLog": "u", "ddmEndPointOut": "A,L,B"}
    )
    assert [(o.lfn, o.scope, o.endpoint) for o in job.outputs] == [("a", "s", "A"), ("b", "t", "B")]
    assert job.log and (job.log.lfn, job.log.scope, job.log.endpoint) == ("l", "u", "L")


def test_unknown_checksums_and_sizes_are_not_compared() -> None:
    job = parse_job(JOB | {"inFiles": "a,b", "surlsIn": ["x", "y"], "checksum": "md:12,ad:0f", "fsize": "NULL,3"})
    assert [(i.size, i.adler32) for i in job.inputs] == [(None, None), (3, 15)]


@pytest.mark.parametrize(
    "change",
    [
        {"PandaID": None},
        {"transformation": ""},
        {"inFiles": "a", "surlsIn": []},
        {"inFiles": "a/b", "surlsIn": ["x"]},
        {"inFiles": "a,b", "surlsIn": ["x", "y"], "fsize": "1"},
        {"inFiles": "a", "surlsIn": ["x"], "checksum": "ad:zz"},
        {"outFiles": "a,b", "scopeOut": "s"},
        {"maxWalltime": "soon"},
    ],
)
def test_a_job_that_makes_no_sense_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(BadJobError):
        parse_job(JOB | change)


@pytest.mark.parametrize("token", ["sec\nret", "sec ret", "sécret"])
def test_a_broken_token_is_refused_and_not_shown(token: str) -> None:
    options = argparse.ArgumentParser()
    add_arguments(options)
    given = options.parse_args(["--queue", "Q", "--server", "http://127.0.0.1", "--isolation", "none"])
    with pytest.raises(SettingsError, match="JEDI_PILOT_TOKEN contains") as refused:
        from_arguments(given, {"JEDI_PILOT_TOKEN": token})
    assert "sec" not in str(refused.value)
