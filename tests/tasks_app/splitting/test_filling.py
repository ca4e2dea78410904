"""Reasons for the end of a job, dynamic numbers of events, events of secondaries, fields of names, short jobs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.params.splitrule import SplitRule
from tasks_app.splitting.chunk import Chunk, End, Group, InputFile, Secondary, Split
from tasks_app.splitting.limits import (
    GB,
    MB,
    SLACK_BYTES,
    Boundaries,
    SiteNumbers,
    SplitLimits,
    TaskNumbers,
    limits_for,
    reads_directly,
)
from tasks_app.splitting.splitter import split
from tests.tasks_app.splitting.test_splitter import all_limits, files, ids, input_files, numbers, sliced

NO_SIZE = 2**62


def cut(master: list[InputFile], limits: SplitLimits, *others: Secondary, **more: bool) -> Split:
    return split(Chunk(1, master, others), limits, **more)


# --- why a job ended ---


@pytest.mark.parametrize(
    ("master", "limits", "reason"),
    [
        (files(1, 1), SplitLimits(files_per_job=1), End.FILES),
        (files(1, 1), SplitLimits(max_files=1), End.FILES),
        (files(900, 900), SplitLimits(max_size_bytes=GB + SLACK_BYTES), End.SIZE),
        (files(1, 1, events=9), SplitLimits(max_walltime_s=10, walltime_s_per_event=1), End.WALLTIME),
        (files(1, 1, events=9), SplitLimits(events_per_job=10), End.EVENTS),
        (files(1, 1, events=9), SplitLimits(max_output_bytes=10, output_bytes_per_event=1), End.OUTPUT),
        (files(9, 9), SplitLimits(max_size_bytes=NO_SIZE, max_disk_bytes=10 * MB), End.DISK),
        (files(1, 1), SplitLimits(max_total_files=1), End.TOTAL),
        ([sliced(10, 30)[n] for n in (0, 2)], SplitLimits(events_per_job=90), End.JUMP),
        ([InputFile(n, f"f{n}", boundary=n) for n in (0, 1)], SplitLimits(boundaries=Boundaries.SPLIT), End.BOUNDARY),
        ([InputFile(n, f"f{n}", lumiblock=n) for n in (0, 1)], SplitLimits(respect_lumiblock=True), End.LUMIBLOCK),
        ([InputFile(n, f"a.{n}.root") for n in (0, 1)], SplitLimits(name_fields=(2,)), End.NAME),
    ],
)
def test_each_limit_is_named_when_it_ends_a_job(master: list[InputFile], limits: SplitLimits, reason: End) -> None:
    result = cut(master, limits)
    assert numbers(result.groups) == [[master[0].file_id], [master[1].file_id]]
    assert result.ends[reason] >= 1 and sum(result.ends.values()) == 2


def test_of_several_limits_the_first_in_order_is_named() -> None:
    limits = SplitLimits(max_size_bytes=GB + SLACK_BYTES, max_walltime_s=1, walltime_s_per_event=1, events_per_job=1)
    assert End.SIZE in cut(files(900, 900, events=9), limits).ends


@given(master=input_files, limits=all_limits, more=st.booleans())
def test_each_job_has_one_reason_to_end(master: list[InputFile], limits: SplitLimits, more: bool) -> None:
    result = cut(master, limits, more_to_come=more)
    assert sum(result.ends.values()) == len(result.groups)
    assert not more or End.INPUT not in result.ends


# --- fields of names ---


def test_jobs_do_not_mix_files_whose_names_differ_in_the_fields() -> None:
    names = ["d.run1.a.root", "d.run1.b.root", "d.run2.a.root"]
    master = [InputFile(n, name, MB) for n, name in enumerate(names)]
    assert numbers(cut(master, SplitLimits(name_fields=(2,))).groups) == [[0, 1], [2]]
    assert numbers(cut(master, SplitLimits(name_fields=(2,), files_per_job=3)).groups) == [[0, 1], [2]]


@pytest.mark.parametrize(
    ("rule", "merging", "fields"),
    [
        ("UF=1,AN=2,3", False, (2, 3)),
        ("AN=2,3", False, ()),
        ("UF=1", False, ()),
        ("UF=1,AN=2,3", True, (5, 6)),
        ("AN=2,3", True, ()),
    ],
)
def test_fields_count_when_names_come_from_files(rule: str, merging: bool, fields: tuple[int, ...]) -> None:
    limits = limits_for(SplitRule.parse(rule), TaskNumbers(), SiteNumbers(), merging=merging)
    assert limits.name_fields == fields


# --- dynamic numbers of events ---


def dynamic(site_s: int = 100, task: TaskNumbers | None = None, rule: str = "DY=10,MX=40,NF=7,NE=3") -> SplitLimits:
    numbers_of_task = task or TaskNumbers(cpu_time=100, base_walltime_s=10, cpu_efficiency_percent=100)
    return limits_for(SplitRule.parse(rule), numbers_of_task, SiteNumbers(min_time_s=site_s, core_power=10))


def test_dynamic_events_put_other_wishes_for_numbers_aside() -> None:
    limits = dynamic()
    assert (limits.files_per_job, limits.events_per_job, limits.min_walltime_s) == (None, 40, 100)
    assert [group.events for group in cut(sliced(10, 90), limits).groups] == [40, 40, 10]


def test_a_job_below_the_least_wall_time_of_a_site_is_not_made_there() -> None:
    # 10 s an event and 10 s before the first: 40 events take 410 s, the last 10 events 110 s.
    result = cut(sliced(10, 90), dynamic(200))
    assert [group.events for group in result.groups] == [40, 40]
    assert (result.too_short, len(result.rest)) == (True, 1)


def test_nothing_is_too_short_when_the_wall_time_is_unknown() -> None:
    assert not cut(sliced(10, 90), dynamic(200, TaskNumbers(base_walltime_s=10))).too_short


def test_a_job_that_is_too_short_takes_no_secondary_files() -> None:
    other = Secondary(2, [InputFile(50 + n, f"s{n}") for n in range(9)], files_per_job=1)
    result = cut(sliced(10, 90), dynamic(200), other)
    assert [ids(group.secondaries[0]) for group in result.groups] == [[50], [51]]


def test_ranges_of_a_file_count_as_one_file() -> None:
    limits = SplitLimits(max_files=2, dynamic_events=True)
    assert [group.events for group in cut(sliced(10, 30, 20, 40), limits).groups] == [50, 40]


def test_ranges_that_may_go_on_wait_for_the_rest() -> None:
    assert not cut(sliced(10, 30), SplitLimits(max_files=1, dynamic_events=True), more_to_come=True).groups


# --- events of secondaries ---


def test_the_first_secondary_says_the_events_when_the_master_has_none() -> None:
    first = Secondary(2, [InputFile(50 + n, f"s{n}", MB, 100) for n in range(6)], ratio=1)
    second = Secondary(3, [InputFile(70 + n, f"t{n}", MB, 999) for n in range(6)], ratio=1)
    limits = SplitLimits(events_per_job=250, walltime_s_per_event=2, output_bytes_per_event=3)
    groups = cut(files(1, 1, 1), limits, first, second).groups
    assert [(len(g.files), g.events, g.walltime_s, g.output_bytes) for g in groups] == [
        (2, 200, 400, 600),
        (1, 100, 200, 300),
    ]


def test_the_events_of_the_master_come_first() -> None:
    first = Secondary(2, [InputFile(50 + n, f"s{n}", MB, 100) for n in range(6)])
    assert [g.events for g in cut(files(1, 1, events=7), SplitLimits(files_per_job=1), first).groups] == [7, 7]


# --- merging on the site, direct reading, short jobs ---


def test_jobs_that_merge_on_their_site_have_no_limit_but_the_thousand() -> None:
    rule = SplitRule.parse("OM=1,NE=5,NG=1,MW=1")
    limits = limits_for(rule, TaskNumbers(cpu_time=9000), SiteNumbers(max_work_dir_bytes=GB))
    assert [len(g.files) for g in cut(files(*[5000] * 1200, events=50), limits).groups] == [1000, 200]
    exact = limits_for(SplitRule.parse("OM=1,NF=4"), TaskNumbers(), SiteNumbers())
    assert [len(g.files) for g in cut(files(*[5000] * 6), exact).groups] == [4, 2]


@pytest.mark.parametrize(
    ("rule", "site", "wanted"),
    [
        ("IL=1", {"capable": True}, True),
        ("IL=1", {"capable": False}, False),
        ("", {"capable": True}, False),
        ("IL=1,LI=1", {"capable": True}, False),
        ("IL=1,LI=0", {"capable": True}, True),
        ("LI=1", {"capable": True, "enforced": True}, True),
        ("IL=1", {"capable": True, "enforced": True, "merging": True}, False),
        ("IW=1", {"capable": True, "from_afar": True}, True),
        ("IW=1", {"capable": True}, False),
        ("IW=1,LI=1", {"capable": False, "from_afar": True}, False),
    ],
)
def test_who_reads_inputs_over_the_network(rule: str, site: dict[str, bool], wanted: bool) -> None:
    assert reads_directly(SplitRule.parse(rule), **site) is wanted  # type: ignore[arg-type]


def test_incomplete_jobs_can_be_left_out() -> None:
    result = cut(files(*[1] * 7), SplitLimits(files_per_job=3), skip_short=True)
    assert (numbers(result.groups), ids(result.left_out), list(result.rest)) == ([[0, 1, 2], [3, 4, 5]], [6], [])
    by_events = cut(files(1, 1, 1, events=10), SplitLimits(events_per_job=20), skip_short=True)
    assert (numbers(by_events.groups), ids(by_events.left_out)) == ([[0, 1]], [2])


def test_an_incomplete_end_waits_when_more_files_come() -> None:
    result = cut(files(*[1] * 5), SplitLimits(files_per_job=3), skip_short=True, more_to_come=True)
    assert (ids(result.left_out), ids(result.rest)) == ([], [3, 4])


@given(master=input_files, limits=all_limits)
def test_leaving_short_jobs_out_loses_no_file(master: list[InputFile], limits: SplitLimits) -> None:
    def used(groups: list[Group]) -> list[InputFile]:
        return [file for group in groups for file in group.files]

    result = cut(master, limits, skip_short=True)
    assert sorted([*used(result.groups), *result.left_out, *result.rest]) == sorted(master, key=lambda f: f.file_id)
    assert all(group in cut(master, limits).groups for group in result.groups)
