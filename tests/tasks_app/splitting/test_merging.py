from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tasks_app.params.splitrule import SplitRule
from tasks_app.splitting.chunk import InputFile
from tasks_app.splitting.limits import GB, MB, SiteNumbers, SplitLimits, TaskNumbers, limits_for
from tasks_app.splitting.merging import (
    Heap,
    may_be_full,
    merge_chunk,
    merge_groups,
    merge_inputs,
    merged_streams,
    nothing_more,
)
from tasks_app.splitting.splitter import split
from tests.tasks_app.splitting.test_splitter import ids


def made(first: int, jobs: list[int], size_mb: int = 1, events: int | None = None) -> list[InputFile]:
    return [InputFile(first + n, f"f{first + n}", size_mb * MB, events, boundary=job) for n, job in enumerate(jobs)]


def limits(rule: str = "", max_work_dir_bytes: int | None = None) -> SplitLimits:
    site = SiteNumbers(max_work_dir_bytes=max_work_dir_bytes)
    return limits_for(SplitRule.parse(rule), TaskNumbers(), site, merging=True)


def test_what_one_job_made_stays_together_with_the_log_as_master() -> None:
    merge = merge_chunk(
        1, made(0, [7, 8, 9]), {"TRN_OUTPUT0": (2, made(10, [9, 7, 8, 7])), "TRN_OUTPUT1": (3, made(20, [8]))}
    )
    groups = split(merge.chunk, limits("ZM=2")).groups
    assert [(ids(g.files), *map(ids, g.secondaries)) for g in groups] == [([0, 1], [11, 13, 12], [20]), ([2], [10], [])]
    assert merge.streams == ("TRN_OUTPUT0", "TRN_OUTPUT1")


def test_logs_of_one_job_stand_next_to_each_other() -> None:
    merge = merge_chunk(1, made(0, [7, 8, 7]), {})
    assert [ids(g.files) for g in split(merge.chunk, limits("ZM=1")).groups] == [[0, 2], [1]]


def test_outputs_without_a_log_wait() -> None:
    merge = merge_chunk(1, made(0, [7]), {"TRN_OUTPUT0": (2, made(10, [7, 8]))})
    assert (ids(merge.orphans), ids(merge.chunk.secondaries[0].files)) == ([11], [10])


def test_an_unmerged_file_must_say_who_made_it() -> None:
    with pytest.raises(ValueError, match="f5 does not say"):
        merge_chunk(1, [InputFile(5, "f5")], {})


def test_the_largest_merged_output_limits_the_job() -> None:
    # Each output grows by 1.2: three times 1.5 GB is more than 5 GB, logs and the other stream count for themselves.
    streams = {"TRN_OUTPUT0": (2, made(10, [7, 8, 9], 1500)), "TRN_OUTPUT1": (3, made(20, [7, 8, 9], 1000))}
    merge = merge_chunk(1, made(0, [7, 8, 9]), streams)
    assert [len(g.files) for g in split(merge.chunk, limits()).groups] == [2, 1]
    assert [len(g.files) for g in split(merge.chunk, limits("ZG=6")).groups] == [3]


def test_merging_needs_disk_for_inputs_and_for_the_merged_files() -> None:
    merge = merge_chunk(1, made(0, [7, 8]), {"TRN_OUTPUT0": (2, made(10, [7, 8], 1000))})
    group = split(merge.chunk, limits()).groups[0]
    assert (group.input_bytes, group.output_bytes) == (2002 * MB, round(2002 * MB * 1.2))
    assert len(split(merge.chunk, limits(max_work_dir_bytes=4 * GB)).groups) == 2
    assert len(split(merge.chunk, limits(max_work_dir_bytes=8 * GB)).groups) == 1


def test_events_of_merge_jobs_are_those_of_the_first_output() -> None:
    merge = merge_chunk(1, made(0, [7, 8, 9]), {"TRN_OUTPUT0": (2, made(10, [7, 8, 9], 1, 100))})
    assert [g.events for g in split(merge.chunk, limits("ZE=200")).groups] == [200, 100]


def test_a_number_of_files_for_merging_counts_what_is_a_master() -> None:
    merge = merge_chunk(1, made(0, [7, 8, 9]), {"TRN_OUTPUT0": (2, made(10, [7, 8, 9]))})
    assert [len(g.files) for g in split(merge.chunk, limits("ZF=2")).groups] == [2, 1]


def test_streams_without_files_are_left_out_with_their_outputs() -> None:
    merge = merge_chunk(
        1, made(0, [7]), {"TRN_OUTPUT0": (2, [*made(10, [7], 1), *made(11, [7], 9)]), "TRN_OUTPUT1": (3, [])}
    )
    inputs = merge_inputs(split(merge.chunk, limits()).groups[0], merge.streams)
    assert {stream: ids(some) for stream, some in inputs.items()} == {"TRN_LOG0": [0], "TRN_OUTPUT0": [11, 10]}
    assert merged_streams(inputs, ["OUTPUT0", "OUTPUT1", "LOG0", "LOG_MERGE"]) == ["OUTPUT0", "LOG0", "LOG_MERGE"]


# --- when merging begins ---

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


def heap(**changes: Any) -> Heap:
    return Heap("SITE_A", **{"producers": 3, "files": 6, "size": 6 * MB, "events": 0, "newest": NOW, **changes})


@pytest.mark.parametrize(
    ("changes", "over"),
    [
        ({}, True),
        ({"jobs_open": True}, False),
        ({"input_left": True}, False),
        ({"input_left": True, "newest": NOW - timedelta(minutes=59)}, False),
        ({"input_left": True, "newest": NOW - timedelta(hours=1)}, True),
        ({"input_left": True, "jobs_open": True, "newest": NOW - timedelta(days=1)}, False),
    ],
)
def test_nothing_more_comes_when_the_site_has_no_job_and_none_can_come_soon(
    changes: dict[str, Any], over: bool
) -> None:
    assert nothing_more(heap(**changes), NOW) is over


@pytest.mark.parametrize(
    ("rule", "changes", "full"),
    [
        ("", {}, False),
        ("", {"producers": 50}, True),
        ("ZM=3", {}, True),
        ("ZF=4", {}, False),
        ("ZF=3", {}, True),
        ("ZE=100", {"events": 99}, False),
        ("ZE=100", {"events": 100}, True),
        ("ZG=1", {"size": 800 * MB}, False),
        ("ZG=1", {"size": GB}, True),
        ("", {"files": 1000}, True),
    ],
)
def test_what_waits_may_be_full_by_any_limit(rule: str, changes: dict[str, Any], full: bool) -> None:
    assert may_be_full(heap(**changes), limits(rule)) is full


def test_what_waits_may_be_too_much_for_the_disk() -> None:
    small = limits(max_work_dir_bytes=2 * GB)
    assert not may_be_full(heap(size=600 * MB), small)
    assert may_be_full(heap(size=800 * MB), small)


@pytest.mark.parametrize(("rest_too", "sizes"), [(True, [2, 2, 1]), (False, [2, 2])])
def test_an_incomplete_merge_job_is_made_only_when_nothing_more_comes(rest_too: bool, sizes: list[int]) -> None:
    chunk = merge_chunk(1, made(0, [5, 6, 7, 8, 9]), {}).chunk
    assert [len(g.files) for g in merge_groups(chunk, limits("ZF=2"), rest_too=rest_too)] == sizes


def test_a_merge_job_that_is_just_full_is_made_at_once() -> None:
    chunk = merge_chunk(1, made(0, [5, 6]), {}).chunk
    assert [len(g.files) for g in merge_groups(chunk, limits("ZF=2"), rest_too=False)] == [2]
    assert merge_groups(merge_chunk(1, [], {}).chunk, limits("ZF=2"), rest_too=True) == []
