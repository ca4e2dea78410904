"""The merge jobs of one site: which files are read together, and which jobs read files of the same streams."""

from __future__ import annotations

import pytest

from tasks_app.generation.rules.merge_plan import plan_merges
from tasks_app.params.splitrule import SplitRule
from tasks_app.splitting.chunk import InputFile
from tasks_app.splitting.limits import SiteNumbers, TaskNumbers, limits_for

PAIRS = limits_for(SplitRule.parse("ZM=2"), TaskNumbers(), SiteNumbers(), merging=True)
Planned = dict[tuple[str, ...], list[list[int]]]


def of_jobs(first_id: int, *jobs: int, size: int = 100) -> list[InputFile]:
    return [InputFile(first_id + n, f"f{first_id + n}", size, boundary=job) for n, job in enumerate(jobs)]


def jobs_of(
    outputs: dict[str, list[InputFile]], logs: list[InputFile], *, rest_too: bool
) -> dict[tuple[str, ...], list[list[int]]]:
    numbered = {stream: (number, some) for number, (stream, some) in enumerate(outputs.items(), 2)}
    planned = plan_merges(1, logs, numbered, PAIRS, rest_too=rest_too)
    return {
        streams: [[file.boundary or 0 for file in group.files] for group in some] for streams, some in planned.items()
    }


@pytest.mark.parametrize(("rest_too", "made"), [(True, [[1, 2], [3, 4], [5]]), (False, [[1, 2], [3, 4]])])
def test_a_last_job_that_could_take_more_is_made_when_nothing_more_comes(rest_too: bool, made: list[list[int]]) -> None:
    logs, outputs = of_jobs(1, 1, 2, 3, 4, 5), {"TRN_OUTPUT0": of_jobs(11, 1, 2, 3, 4, 5)}
    assert jobs_of(outputs, logs, rest_too=rest_too) == {("TRN_OUTPUT0",): made}


def test_jobs_that_read_other_streams_are_apart() -> None:
    logs = of_jobs(1, 1, 2, 3, 4)
    outputs = {"TRN_OUTPUT0": of_jobs(11, 1, 2, 3, 4), "TRN_OUTPUT1": of_jobs(21, 3)}
    assert jobs_of(outputs, logs, rest_too=True) == {
        ("TRN_OUTPUT0",): [[1, 2]],
        ("TRN_OUTPUT0", "TRN_OUTPUT1"): [[3, 4]],
    }


def test_each_stream_is_read_the_largest_file_first() -> None:
    logs = [*of_jobs(1, 1, size=5), *of_jobs(2, 2, size=9)]
    ((streams, (group,)),) = plan_merges(1, logs, {}, PAIRS, rest_too=True).items()
    assert (streams, [file.file_id for file in group.files], group.secondaries) == ((), [2, 1], ())
