"""The plan of one step: picked files, sites and limits become the jobs of each site, or a word on what is lacking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.verdict import Choice
from tasks_app.generation.rules.job_plan import JOBS_A_STEP, JobPlan, Level, Place, files_to_read, plan_jobs
from tasks_app.generation.rules.sources import (
    DatasetRow,
    Picked,
    Source,
    copies_lacking,
    files_per_job,
    numbers_lacking,
    secondary_limit,
)
from tasks_app.splitting.chunk import InputFile
from tasks_app.splitting.limits import SplitLimits

MASTER = DatasetRow(1, "lab.in", "input", "IN", "", 0, 100, 100)
PILE = DatasetRow(2, "lab.pile", "input", "IN2", "np=1", 0, 3, 3)
NUMBERS = DatasetRow(3, "seq_number", "pseudo_input", "SEQ", "", 0, 5, 5)
ONE = SplitLimits(files_per_job=1)


def files(*memory: int) -> list[InputFile]:
    return [InputFile(n, f"f{n}", 2**20, memory=one) for n, one in enumerate(memory, 1)]


def source(number: int, row: DatasetRow = MASTER, *, is_cut: bool = False) -> Source:
    some = files(*[0] * number)
    return Source(row, Picked(some, is_cut=is_cut), some)


def place(name: str, room: int = 100, weight: float = 1.0, limits: SplitLimits = ONE, portion: int = 0) -> Place:
    return Place(SiteView(name, portion=portion), Choice(name, weight), limits, room)


def planned(sources: Sequence[Source], *places: Place, most: int = 1000, raised: bool = False) -> JobPlan:
    return plan_jobs(sources, Level(2000, places, raised), most=most, is_all=False)


def jobs(plan: JobPlan) -> dict[str, int]:
    return {one.place.site.name: len(one.groups) for one in plan.jobs}


@pytest.mark.parametrize(
    ("places", "most", "made"),
    [
        ([place("A")], 1000, {"A": 60}),
        ([place("A")], 7, {"A": 7}),
        ([place("A", room=5)], 1000, {"A": 5}),
        ([place("A", weight=2.0), place("B")], 1000, {"A": 35, "B": 25}),
        ([place("A", room=10), place("B", room=20)], 1000, {"A": 10, "B": 20}),
        ([place("A", portion=50)], 1000, {"A": 50}),
        ([place("A", portion=80)], 1000, {}),
        ([place("A", room=0)], 1000, {}),
        ([place("A", limits=SplitLimits(files_per_job=7))], 1000, {"A": 9}),
    ],
)
def test_jobs_of_each_site(places: list[Place], most: int, made: dict[str, int]) -> None:
    assert jobs(planned([source(60)], *places, most=most)) == made


@pytest.mark.parametrize(
    ("is_cut", "grows", "raised", "is_all", "reads_on"),
    [
        (True, False, False, False, True),
        (False, True, False, False, True),
        (False, False, False, False, None),  # the last job may be short
        (True, False, True, False, None),  # more files of that memory may never come
        (True, False, False, True, False),
    ],
)
def test_a_job_that_more_files_would_fill_waits_for_them(
    is_cut: bool, grows: bool, raised: bool, is_all: bool, reads_on: bool | None
) -> None:
    few = source(3, replace(MASTER, grows=grows), is_cut=is_cut)
    level = Level(2000, [place("A", limits=SplitLimits(files_per_job=4))], raised)
    plan = plan_jobs([few], level, most=10, is_all=is_all)
    assert (jobs(plan), plan.reads_on) == (({"A": 1}, False) if reads_on is None else ({}, reads_on))


def test_what_the_next_job_lacks() -> None:
    assert planned([source(4), source(0, PILE)], place("A")) == JobPlan(short_of=source(0, PILE))
    assert jobs(planned([source(4), source(3, PILE)], place("A"))) == {"A": 3}
    late = SplitLimits(min_walltime_s=3600, walltime_s_per_mb=1.0)
    assert planned([source(4)], place("A", limits=late), place("B", limits=late)).too_short == ("A", "B")


def test_incomplete_jobs_that_are_not_wanted_are_left_out_beside_the_others() -> None:
    level = Level(2000, [place("A", limits=SplitLimits(files_per_job=3))])
    plan = plan_jobs([source(8)], level, most=10, is_all=True, skip_short=True)
    assert (jobs(plan), [file.file_id for file in plan.left_out]) == ({"A": 2}, [7, 8])


def test_the_most_jobs_of_a_step_are_those_that_sites_take_and_the_task_may_get() -> None:
    level = Level(2000, [place("A", 30), place("B", 5)])
    assert (level.most_jobs(10), level.most_jobs(1000)) == (10, 35)
    assert Level(2000, [place("A", 10**9)]).most_jobs(10**9) == JOBS_A_STEP


@pytest.mark.parametrize(
    ("limits", "row", "read"),
    [
        (SplitLimits(files_per_job=4), MASTER, 44),
        (SplitLimits(max_files=20), MASTER, 220),
        (SplitLimits(max_files=200), MASTER, 550),
        (SplitLimits(max_files=1000), MASTER, 1001),
        (SplitLimits(events_per_job=30, max_files=20), replace(MASTER, events=1000), 44),  # three files, and a part
    ],
)
def test_files_that_are_read_for_ten_jobs(limits: SplitLimits, row: DatasetRow, read: int) -> None:
    assert files_to_read(row, limits, 10) == read


def test_files_by_memory() -> None:
    picked = Picked(files(0, 3000, 1000, 4000, 3000))
    assert picked.memory_levels(2000) == [2000, 3000, 4000]
    assert [[f.file_id for f in picked.of_memory(mb, 2000)] for mb in (2000, 3000, 4000)] == [[1, 3], [2, 5], [4]]
    assert picked.memory_levels(5000) == [5000]
    assert Picked([]).memory_levels(2000) == []


@given(memory=st.lists(st.sampled_from([0, 1000, 2000, 3000, 4000]), max_size=30), least=st.sampled_from([0, 2000]))
def test_each_file_is_of_one_memory_level(memory: list[int], least: int) -> None:
    picked = Picked(files(*memory))
    by_level = [file for level in picked.memory_levels(least) for file in picked.of_memory(level, least)]
    assert sorted(by_level) == list(picked.files)


@given(
    number=st.integers(1, 40),
    rooms=st.lists(st.integers(0, 20), min_size=1, max_size=4),
    each=st.integers(1, 5),
    most=st.integers(0, 30),
)
def test_no_file_is_in_two_jobs_and_no_site_gets_more_than_it_takes(
    number: int, rooms: list[int], each: int, most: int
) -> None:
    places = [place(f"S{n}", room, limits=SplitLimits(files_per_job=each)) for n, room in enumerate(rooms)]
    plan = planned([source(number)], *places, most=most)
    used = [file.file_id for one in plan.jobs for group in one.groups for file in group.files]
    assert len(used) == len(set(used)) <= number
    assert all(len(one.groups) <= one.place.room for one in plan.jobs)
    assert sum(jobs(plan).values()) == min(-(-number // each), sum(rooms), most)


# --- secondary datasets that run short ---


def test_secondary_files_that_are_read_and_that_lack() -> None:
    assert [files_per_job(row) for row in (PILE, NUMBERS, replace(PILE, attributes=""))] == [1, 1, None]
    assert secondary_limit(PILE, masters=10, jobs=4) == 4
    assert secondary_limit(replace(PILE, attributes="ratio=0.5"), masters=9, jobs=4) == 9
    assert secondary_limit(replace(PILE, attributes="er=2"), masters=9, jobs=4) == 10_000
    assert numbers_lacking(source(2, NUMBERS), files(*[0] * 10), jobs=10) == 8
    assert numbers_lacking(source(2, NUMBERS), files(*[0] * 10), jobs=1) == 1


@pytest.mark.parametrize(
    ("attributes", "in_dataset", "events", "copies"),
    [("np=1", 3, 0, 3), ("np=1", 0, 0, 0), ("er=1", 3, 0, 0), ("er=1", 3, 30, 4), ("np=1", 200_000, 0, 1)],
)
def test_how_often_a_secondary_dataset_that_ran_short_is_used_once_more(
    attributes: str, in_dataset: int, events: int, copies: int
) -> None:
    short = source(2, replace(PILE, attributes=attributes))
    masters = [file._replace(events=10) for file in files(*[0] * 10)]
    assert copies_lacking(short, masters, 10, in_dataset, events) == copies
