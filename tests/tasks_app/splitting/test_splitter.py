from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.splitting.chunk import Chunk, Group, InputFile, Secondary, events_of
from tasks_app.splitting.limits import GB, MB, SLACK_BYTES, Boundaries, SplitLimits
from tasks_app.splitting.slicing import SourceFile
from tasks_app.splitting.splitter import split
from tests.tasks_app.splitting.test_slicing import slice_events

NO_SIZE = 2**62


def files(*sizes_mb: int, events: int | None = None) -> list[InputFile]:
    return [InputFile(n, f"f{n:03d}", size * MB, events) for n, size in enumerate(sizes_mb)]


def numbers(groups: Sequence[Group]) -> list[list[int]]:
    return [[file.file_id for file in group.files] for group in groups]


def ids(some: Sequence[InputFile]) -> list[int]:
    return [file.file_id for file in some]


# --- properties ---

input_files = st.lists(
    st.tuples(
        st.integers(0, 3 * GB),
        st.none() | st.integers(0, 5000),
        st.none() | st.integers(1, 4),
        st.none() | st.integers(1, 3),
    ),
    max_size=60,
).map(
    lambda rows: [
        InputFile(n, f"f{n}", size, events, lumiblock=block, boundary=boundary)
        for n, (size, events, block, boundary) in enumerate(rows)
    ]
)
all_limits = st.builds(
    SplitLimits,
    files_per_job=st.none() | st.integers(1, 12),
    max_files=st.integers(1, 20),
    events_per_job=st.none() | st.integers(1, 8000),
    max_size_bytes=st.none() | st.integers(SLACK_BYTES, 10 * GB),
    max_disk_bytes=st.none() | st.integers(0, 10 * GB),
    max_output_bytes=st.none() | st.integers(0, 10 * GB),
    max_walltime_s=st.none() | st.integers(600, 100_000),
    max_total_files=st.integers(5, 40),
    output_bytes_per_mb=st.sampled_from([0.0, 100_000.0, 2e6]),
    output_bytes_per_event=st.sampled_from([0.0, 50_000.0]),
    work_bytes=st.sampled_from([0, 300 * MB]),
    base_walltime_s=st.sampled_from([0.0, 600.0]),
    walltime_s_per_event=st.sampled_from([0.0, 7.5]),
    direct_io=st.booleans(),
    respect_lumiblock=st.booleans(),
    boundaries=st.sampled_from(Boundaries),
)
secondaries = st.builds(
    Secondary,
    dataset_id=st.integers(2, 9),
    files=st.integers(0, 15).map(lambda n: [InputFile(1000 + k, f"s{k}", 10 * MB, 50) for k in range(n)]),
    nosplit=st.booleans(),
    repeat=st.booleans(),
    ratio=st.sampled_from([0.3, 1.0, 2.0]),
    files_per_job=st.none() | st.integers(1, 3),
    event_ratio=st.none() | st.sampled_from([0.5, 2.0]),
    reusable=st.booleans(),
)


@given(master=input_files, limits=all_limits, others=st.lists(secondaries, max_size=2), more=st.booleans())
def test_no_file_is_lost_none_is_used_twice_and_order_is_kept(
    master: list[InputFile], limits: SplitLimits, others: list[Secondary], more: bool
) -> None:
    result = split(Chunk(1, master, tuple(others)), limits, more_to_come=more)
    used = [file for group in result.groups for file in group.files]
    assert [*used, *result.rest] == master
    assert all(group.files for group in result.groups)


@given(master=input_files, limits=all_limits, others=st.lists(secondaries, max_size=2))
def test_the_same_input_gives_the_same_groups(
    master: list[InputFile], limits: SplitLimits, others: list[Secondary]
) -> None:
    chunk = Chunk(1, master, tuple(others))
    assert split(chunk, limits) == split(chunk, limits)


def bunches(group: Group, limits: SplitLimits) -> int:
    """Bunches of a group: runs of one boundary where they must stay together, files otherwise."""
    if limits.boundaries is not Boundaries.TOGETHER:
        return len(group.files)
    return 1 + sum(a.boundary is None or a.boundary != b.boundary for a, b in pairwise(group.files))


@given(master=input_files, limits=all_limits, others=st.lists(secondaries, max_size=2))
def test_no_limit_is_exceeded_except_by_the_first_bunch(
    master: list[InputFile], limits: SplitLimits, others: list[Secondary]
) -> None:
    for group in split(Chunk(1, master, tuple(others)), limits).groups:
        if bunches(group, limits) == 1:
            continue
        total = len(group.files) + sum(len(some) for some in group.secondaries)
        assert total <= limits.max_total_files
        if limits.boundaries is Boundaries.WHOLE:
            continue
        if limits.files_per_job is not None:
            assert len(group.files) <= limits.files_per_job
            if not limits.respect_lumiblock and limits.boundaries is not Boundaries.TOGETHER:
                continue
        else:
            assert len(group.files) <= limits.max_files
        everything = group.input_bytes + group.output_bytes + limits.work_bytes
        # Outputs are rounded to whole bytes when they are reported.
        everything -= 1
        assert limits.size_limit_bytes is None or everything <= limits.size_limit_bytes
        assert limits.events_per_job is None or group.events <= limits.events_per_job
        assert limits.max_walltime_s is None or group.walltime_s <= limits.max_walltime_s + 1e-6
        assert limits.max_output_bytes is None or group.output_bytes - 1 <= limits.max_output_bytes
        if limits.max_disk_bytes is not None:
            assert everything - (group.input_bytes if limits.direct_io else 0) <= limits.max_disk_bytes


@given(master=input_files, limits=all_limits)
def test_a_group_ends_only_where_one_more_file_would_not_do(master: list[InputFile], limits: SplitLimits) -> None:
    """Greedy: moving the first file of the next group into this one breaks a rule."""
    limits = replace(limits, boundaries=Boundaries.NONE, respect_lumiblock=False)
    groups = split(Chunk(1, master), limits).groups
    for group, after in pairwise(groups):
        together = [*group.files, after.files[0]]
        assert len(split(Chunk(1, together), limits).groups) == 2


@given(master=input_files, limits=all_limits)
def test_groups_of_a_cut_chunk_stay_what_they_are_when_the_rest_arrives(
    master: list[InputFile], limits: SplitLimits
) -> None:
    if limits.events_per_job:
        # A group that has its events is full, and does not wait for a file without any.
        master = [file._replace(events=file.events or 1) for file in master]
    cut = len(master) // 2
    first = split(Chunk(1, master[:cut]), limits, more_to_come=True).groups
    assert split(Chunk(1, master), limits).groups[: len(first)] == first


@given(others=secondaries, master=input_files, limits=all_limits)
def test_a_job_never_lists_a_secondary_file_twice(
    others: Secondary, master: list[InputFile], limits: SplitLimits
) -> None:
    for group in split(Chunk(1, master, (others,)), limits).groups:
        assert len(set(ids(group.secondaries[0]))) == len(group.secondaries[0])


# --- numbers of files ---


def test_files_per_job_is_exact_and_the_last_job_takes_what_is_left() -> None:
    result = split(Chunk(1, files(*[1] * 7)), SplitLimits(files_per_job=3))
    assert numbers(result.groups) == [[0, 1, 2], [3, 4, 5], [6]]


def test_files_per_job_does_not_look_at_sizes() -> None:
    limits = SplitLimits(files_per_job=2, max_size_bytes=SLACK_BYTES + GB, max_walltime_s=1)
    assert numbers(split(Chunk(1, files(5000, 5000, 5000)), limits).groups) == [[0, 1], [2]]


def test_a_last_group_that_could_grow_waits_when_more_files_come() -> None:
    result = split(Chunk(1, files(*[1] * 7)), SplitLimits(files_per_job=3), more_to_come=True)
    assert (numbers(result.groups), ids(result.rest)) == ([[0, 1, 2], [3, 4, 5]], [6])


def test_a_full_last_group_does_not_wait() -> None:
    result = split(Chunk(1, files(*[1] * 4)), SplitLimits(max_files=2), more_to_come=True)
    assert numbers(result.groups) == [[0, 1], [2, 3]]


def test_without_any_wish_a_job_takes_two_hundred_files_or_twenty_gigabytes() -> None:
    assert [len(group.files) for group in split(Chunk(1, files(*[1] * 450)), SplitLimits()).groups] == [200, 200, 50]
    # 20 GB less the room for outputs is 18.5 GB.
    assert [len(g.files) for g in split(Chunk(1, files(*[1000] * 40)), SplitLimits()).groups] == [18, 18, 4]


def test_only_as_many_groups_are_made_as_are_asked_for() -> None:
    result = split(Chunk(1, files(*[1] * 9)), SplitLimits(files_per_job=2), most_groups=2)
    assert (numbers(result.groups), ids(result.rest)) == ([[0, 1], [2, 3]], [4, 5, 6, 7, 8])


# --- sizes ---


def test_small_outputs_leave_the_slack_unused_by_inputs() -> None:
    limits = SplitLimits(max_size_bytes=GB + SLACK_BYTES)
    assert numbers(split(Chunk(1, files(512, 512, 1)), limits).groups) == [[0, 1], [2]]


def test_large_outputs_may_use_the_slack() -> None:
    # With outputs as large as inputs, 2798 MB of each fill 4 GB and the slack.
    limits = SplitLimits(max_size_bytes=4 * GB + SLACK_BYTES, output_bytes_per_mb=MB)
    assert numbers(split(Chunk(1, files(1600, 1198, 1)), limits).groups) == [[0, 1], [2]]


def test_a_file_larger_than_the_limit_still_makes_a_job() -> None:
    limits = SplitLimits(max_size_bytes=GB + SLACK_BYTES)
    assert numbers(split(Chunk(1, files(10, 9000, 10)), limits).groups) == [[0], [1], [2]]


def test_outputs_of_unknown_files_are_those_of_one_megabyte() -> None:
    group = split(Chunk(1, files(0, 0)), SplitLimits(output_bytes_per_mb=1000)).groups[0]
    assert group.output_bytes == 2000


def test_ranges_of_one_file_count_the_file_once() -> None:
    ranges = [InputFile(n, "f", 100 * MB, 30, n * 10, n * 10 + 9) for n in range(3)]
    group = split(Chunk(1, ranges), SplitLimits(output_bytes_per_mb=3000)).groups[0]
    assert (group.input_bytes, group.output_bytes, group.events) == (100 * MB, 300_000, 30)


def test_direct_reading_needs_no_disk_for_inputs() -> None:
    limits = SplitLimits(max_size_bytes=NO_SIZE, max_disk_bytes=1500 * MB)
    assert len(split(Chunk(1, files(1000, 1000)), limits).groups) == 2
    assert len(split(Chunk(1, files(1000, 1000)), replace(limits, direct_io=True)).groups) == 1


def test_wall_time_limits_events() -> None:
    limits = SplitLimits(max_walltime_s=3600, base_walltime_s=600, walltime_s_per_event=10)
    groups = split(Chunk(1, files(1, 1, 1, 1, events=100)), limits).groups
    assert [(len(group.files), group.walltime_s) for group in groups] == [(3, 3600), (1, 1600)]


# --- events, boundaries, luminosity blocks ---


def sliced(per_slice: int, *events: int) -> list[InputFile]:
    sources = [SourceFile(f"f{n}", number) for n, number in enumerate(events)]
    of = {source.lfn: source.events for source in sources}
    return [
        InputFile(n, s.lfn, MB, of[s.lfn], s.start_event, s.end_event, s.first_event)
        for n, s in enumerate(slice_events(sources, per_slice))
    ]


def test_slices_over_the_end_of_a_file_make_one_job() -> None:
    # Files of 25 events in slices of 10: 10, 10, 5 + 5, 10, 10.
    groups = split(Chunk(1, sliced(10, 25, 25)), SplitLimits(events_per_job=10)).groups
    assert [group.events for group in groups] == [10, 10, 10, 10, 10]
    assert [file.lfn for file in groups[2].files] == ["f0", "f1"]


def test_a_gap_in_the_events_ends_the_job() -> None:
    ranges = [piece for piece in sliced(10, 40) if piece.start_event != 10]
    assert numbers(split(Chunk(1, ranges), SplitLimits(events_per_job=40)).groups) == [[0], [2, 3]]


def test_a_job_does_not_go_on_in_another_file_before_the_end_of_the_first() -> None:
    ranges = [sliced(10, 20)[0], InputFile(7, "other", MB, 20, 0, 9)]
    assert len(split(Chunk(1, ranges), SplitLimits(events_per_job=40)).groups) == 2


def with_boundaries(*values: int | None) -> list[InputFile]:
    return [InputFile(n, f"f{n}", MB, boundary=value) for n, value in enumerate(values)]


@pytest.mark.parametrize(
    ("boundaries", "wanted"),
    [
        (Boundaries.NONE, [[0, 1], [2, 3], [4, 5]]),
        (Boundaries.SPLIT, [[0, 1], [2], [3, 4], [5]]),
        (Boundaries.WHOLE, [[0, 1, 2], [3, 4], [5]]),
        (Boundaries.TOGETHER, [[0, 1, 2], [3, 4], [5]]),
    ],
)
def test_boundaries_cut_or_hold_files_together(boundaries: Boundaries, wanted: list[list[int]]) -> None:
    limits = SplitLimits(max_files=2, boundaries=boundaries)
    assert numbers(split(Chunk(1, with_boundaries(7, 7, 7, 8, 8, 9)), limits).groups) == wanted


def test_several_boundaries_share_a_job_when_they_only_must_not_be_cut() -> None:
    limits = SplitLimits(max_files=5, boundaries=Boundaries.TOGETHER)
    assert numbers(split(Chunk(1, with_boundaries(7, 7, 8, 8, 9, 9)), limits).groups) == [[0, 1, 2, 3], [4, 5]]


def test_boundaries_that_must_not_be_cut_are_stronger_than_the_number_of_files() -> None:
    limits = SplitLimits(files_per_job=3, boundaries=Boundaries.TOGETHER)
    assert numbers(split(Chunk(1, with_boundaries(7, 7, 8, 8, 9)), limits).groups) == [[0, 1], [2, 3, 4]]


def test_an_exact_number_of_files_ends_at_the_cap() -> None:
    limits = SplitLimits(files_per_job=6, max_total_files=5)
    assert numbers(split(Chunk(1, files(*[1] * 6)), limits).groups) == [[0, 1, 2, 3, 4], [5]]


def test_a_boundary_that_may_go_on_waits_for_the_rest_of_it() -> None:
    limits = SplitLimits(max_files=2, boundaries=Boundaries.TOGETHER)
    result = split(Chunk(1, with_boundaries(7, 7, 8, 8)), limits, more_to_come=True)
    assert (numbers(result.groups), ids(result.rest)) == ([[0, 1]], [2, 3])


def test_secondaries_with_boundaries_go_where_their_master_goes() -> None:
    outputs = [InputFile(10 + n, f"o{n}", MB, boundary=b) for n, b in enumerate([9, 7, 8, 7])]
    limits = SplitLimits(max_files=2, boundaries=Boundaries.TOGETHER)
    groups = split(Chunk(1, with_boundaries(7, 8, 9), (Secondary(2, outputs),)), limits).groups
    assert [ids(group.secondaries[0]) for group in groups] == [[11, 13, 12], [10]]


@pytest.mark.parametrize("exact", [None, 2])
def test_a_job_stays_inside_a_luminosity_block(exact: int | None) -> None:
    blocks = [InputFile(n, f"f{n}", MB, lumiblock=b) for n, b in enumerate([1, 1, 1, 2, 3])]
    limits = SplitLimits(max_files=2, files_per_job=exact, respect_lumiblock=True)
    assert numbers(split(Chunk(1, blocks), limits).groups) == [[0, 1], [2], [3], [4]]


# --- secondaries ---


def extra(number: int) -> list[InputFile]:
    return [InputFile(100 + n, f"s{n}", MB, 10) for n in range(number)]


@pytest.mark.parametrize(
    ("attributes", "wanted"),
    [
        ({}, [[100, 101], [102, 103]]),
        ({"ratio": 0.5}, [[100], [101]]),
        ({"ratio": 1.2}, [[100, 101, 102], [103, 104, 105]]),
        ({"files_per_job": 1}, [[100], [101]]),
        ({"nosplit": True}, [[100, 101, 102, 103, 104, 105]] * 2),
        ({"event_ratio": 1.5}, [[100, 101, 102], [103, 104, 105]]),
    ],
)
def test_secondaries_follow_the_master(attributes: dict[str, float], wanted: list[list[int]]) -> None:
    secondary = Secondary(2, extra(6), **attributes)  # type: ignore[arg-type]
    groups = split(Chunk(1, files(1, 1, 1, 1, events=10), (secondary,)), SplitLimits(files_per_job=2)).groups
    assert [ids(group.secondaries[0]) for group in groups] == wanted


@pytest.mark.parametrize(
    ("attributes", "wanted"),
    [
        ({"repeat": True}, [[100, 101], [102, 100], [101, 102]]),
        ({"reusable": True}, [[100, 101], [100, 101], [100, 101]]),
        ({"repeat": True, "event_ratio": 2.0}, [[100, 101], [102, 100], [101, 102]]),
    ],
)
def test_secondaries_start_again_when_they_may(attributes: dict[str, bool], wanted: list[list[int]]) -> None:
    secondary = Secondary(2, extra(3), ratio=2, **attributes)
    groups = split(Chunk(1, files(1, 1, 1, events=10), (secondary,)), SplitLimits(files_per_job=1)).groups
    assert [ids(group.secondaries[0]) for group in groups] == wanted


@pytest.mark.parametrize("attributes", [{"ratio": 2}, {"event_ratio": 2.0}])
def test_a_secondary_that_runs_dry_leaves_the_master_and_is_named(attributes: dict[str, float]) -> None:
    secondary = Secondary(42, extra(3), **attributes)  # type: ignore[arg-type]
    result = split(Chunk(1, files(1, 1, events=10), (secondary,)), SplitLimits(files_per_job=1))
    assert (numbers(result.groups), ids(result.rest), result.short_of) == ([[0]], [1], 42)


def test_secondaries_count_for_the_size_of_a_job() -> None:
    heavy = [InputFile(100 + n, f"s{n}", 400 * MB) for n in range(10)]
    limits = SplitLimits(max_size_bytes=GB + SLACK_BYTES)
    groups = split(Chunk(1, files(*[100] * 4), (Secondary(2, heavy),)), limits).groups
    assert [(len(group.files), group.input_bytes // MB) for group in groups] == [(2, 1000), (2, 1000)]


@pytest.mark.parametrize("exact", [None, 900])
def test_a_job_has_at_most_a_thousand_files_of_all_kinds(exact: int | None) -> None:
    secondary = Secondary(2, extra(300), ratio=3, repeat=True)
    limits = SplitLimits(files_per_job=exact, max_files=900)
    group = split(Chunk(1, files(*[1] * 900), (secondary,)), limits).groups[0]
    total = len(group.files) + len(group.secondaries[0])
    # 300 different secondary files exist, so the rest of the thousand is of the master.
    assert (len(group.files), total) == (700, 1000)


def test_effective_events_are_those_of_the_range() -> None:
    assert events_of(InputFile(1, "f", MB, 100, 10, 19)) == 10
    assert events_of(InputFile(1, "f", MB, 100)) == 100
    assert events_of(InputFile(1, "f")) == 0


def test_a_ratio_is_rounded_up() -> None:
    groups = split(Chunk(1, files(1, 1, 1), (Secondary(2, extra(9), ratio=0.7),)), SplitLimits(files_per_job=3)).groups
    assert len(groups[0].secondaries[0]) == math.ceil(0.7 * 3)


# --- groups: never two in one job, and every file of every group exactly once ---

groups_of_files = st.lists(st.integers(1, 9), min_size=1, max_size=12)


@given(
    sizes=groups_of_files,
    others=st.lists(st.integers(0, 3), min_size=12, max_size=12),
    limits=all_limits,
    whole=st.booleans(),
    slab=st.integers(1, 4),
)
def test_a_job_has_one_group_and_every_file_of_every_group_is_used_once(
    sizes: list[int], others: list[int], limits: SplitLimits, whole: bool, slab: int
) -> None:
    limits = replace(
        limits,
        boundaries=Boundaries.WHOLE if whole else Boundaries.SPLIT,
        max_total_files=1000,
        respect_lumiblock=False,
    )
    numbered = [(group, n) for group, size in enumerate(sizes) for n in range(size)]
    files = [InputFile(i, f"g{group}.{n}", MB, boundary=group) for i, (group, n) in enumerate(numbered)]
    paired = [(group, n) for group in range(len(sizes)) for n in range(others[group])]
    second = [InputFile(1000 + i, f"s{group}.{n}", MB, boundary=group) for i, (group, n) in enumerate(paired)]
    # A second input without any file of a group is one that goes by its ratio, as a job without groups would have it.
    chunk = Chunk(1, files, (Secondary(2, second),) if whole and second else ())
    found = split(chunk, limits)
    used = [file for job in found.groups for file in job.files]
    assert [*used, *found.rest] == files and not found.rest
    for job in found.groups:
        assert len({file.boundary for file in (*job.files, *(f for some in job.secondaries for f in some))}) == 1
    if whole:
        assert len(found.groups) == len(sizes)
        assert [file for job in found.groups for some in job.secondaries for file in some] == second
