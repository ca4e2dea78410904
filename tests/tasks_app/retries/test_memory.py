from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.formulas.memory import analysis_need_mb
from tasks_app.params.splitrule import SplitRule
from tasks_app.retries.rules.memory import (
    LADDER_MB,
    TOP_MB,
    JobMemory,
    MemoryNeeds,
    RaisedFiles,
    increase_memory,
    multiply_memory,
    next_rung,
    normalised_job_mb,
    normalised_pss_mb,
    task_is_due,
)

NONE_RAISED = RaisedFiles(0, 100)


@pytest.mark.parametrize(
    ("mb", "rung"),
    [(0, 1000), (999, 1000), (1000, 2000), (3999.5, 4000), (4000, 6000), (7999, 8000), (8000, None), (9000, None)],
)
def test_the_next_rung_is_strictly_above(mb: float, rung: int | None) -> None:
    assert next_rung(mb) == rung


@given(
    ram=st.integers(1, 20_000),
    base=st.integers(0, 3000),
    cores=st.integers(1, 64),
    unit=st.sampled_from(["MB", "MBPerCore", "MBPerCoreFixed"]),
)
def test_normalising_undoes_what_storing_did(ram: int, base: int, cores: int, unit: str) -> None:
    stored = analysis_need_mb(ram, unit, base_mb=base, cores=cores)
    back = normalised_job_mb(JobMemory(stored, cores), MemoryNeeds(ram, unit, base))
    assert ram - 2 <= back <= ram


def test_a_job_on_a_rung_comes_back_on_that_rung() -> None:
    for rung in LADDER_MB:
        stored = analysis_need_mb(rung, "MBPerCore", base_mb=1000, cores=8)
        assert normalised_job_mb(JobMemory(stored, 8), MemoryNeeds(rung, "MBPerCore", 1000)) == rung


def test_measured_memory_is_per_core_and_without_the_base() -> None:
    job = JobMemory(1, 4, max_pss_kb=9000 * 1024)
    assert normalised_pss_mb(job, MemoryNeeds(2000, "MBPerCore", 1000)) == 2000
    assert normalised_pss_mb(job, MemoryNeeds(2000, "MB", 1000)) == 8000
    assert normalised_pss_mb(JobMemory(1, 4), MemoryNeeds(2000)) == 0


@pytest.mark.parametrize(
    ("had", "pss_mb", "file_mb"),
    [
        (2000, None, 3000),
        (2000, 1500, 3000),
        (2000, 3500, 4000),  # the document: above max(maxPSS, current)
        (2000, 30_000, 8000),  # beyond the ladder: the top
        (6000, None, 8000),
        (8000, None, None),
    ],
)
def test_a_retry_gets_the_rung_above_what_it_had_and_used(had: int, pss_mb: int | None, file_mb: int | None) -> None:
    stored = analysis_need_mb(had, "MBPerCore", cores=1)
    job = JobMemory(stored, 1, None if pss_mb is None else pss_mb * 1024)
    raised = increase_memory(job, MemoryNeeds(2000), NONE_RAISED)
    assert raised.file_mb == file_mb and raised.task_mb is None
    assert raised.reasons[0].code == ("retry_more_memory" if file_mb else "retry_memory_at_top")


def test_a_job_of_unknown_memory_had_the_tasks() -> None:
    assert normalised_job_mb(JobMemory(0), MemoryNeeds(2500)) == 2500
    assert increase_memory(JobMemory(0), MemoryNeeds(2500), NONE_RAISED).file_mb == 3000


def test_nothing_is_raised_when_the_task_already_gives_more() -> None:
    raised = increase_memory(JobMemory(1800), MemoryNeeds(4000), NONE_RAISED)
    assert (raised.file_mb, raised.task_mb, raised.reasons[0].code) == (None, None, "retry_not_applicable")


@pytest.mark.parametrize(("raised", "unit", "due"), [(29, "MB", 0), (30, "MB", 1), (100, "MBPerCoreFixed", 0)])
def test_the_task_follows_at_thirty_per_cent(raised: int, unit: str, due: int) -> None:
    assert task_is_due(RaisedFiles(raised, 100), MemoryNeeds(2000, unit)) is bool(due)


def test_a_task_without_files_is_never_due() -> None:
    assert not task_is_due(RaisedFiles(0, 0), MemoryNeeds(2000))


def test_the_task_gets_the_highest_memory_of_a_file() -> None:
    raised = increase_memory(JobMemory(1800), MemoryNeeds(2000), RaisedFiles(40, 100, 3000))
    assert (raised.file_mb, raised.task_mb) == (3000, 3000)
    assert "40 of 100 input files" in raised.reasons[1].detail


@given(
    had=st.integers(0, 10_000),
    pss_kb=st.none() | st.integers(0, 20_000 * 1024),
    ram=st.integers(0, 9000),
    raised=st.integers(0, 100),
    highest=st.integers(0, 9000),
)
def test_memory_only_rises_and_only_to_rungs(had: int, pss_kb: int | None, ram: int, raised: int, highest: int) -> None:
    needs = MemoryNeeds(ram)
    result = increase_memory(JobMemory(had, 1, pss_kb), needs, RaisedFiles(raised, 100, highest))
    assert result.reasons
    if result.file_mb is not None:
        assert result.file_mb in LADDER_MB and result.file_mb > normalised_job_mb(JobMemory(had), needs)
    if result.task_mb is not None:
        assert result.file_mb and ram < result.task_mb <= TOP_MB


@pytest.mark.parametrize(
    ("rule", "cores", "wanted"),
    [("RY=4000", 1, 4000), ("RY=4000,RZ=3000", 1, 3000), ("RY=4000,RZ=12000", 4, 3000), ("", 1, None)],
)
def test_steps_of_the_tasks_own_multiply_the_memory(rule: str, cores: int, wanted: int | None) -> None:
    stored = analysis_need_mb(2000, "MBPerCore", cores=cores)
    raised = multiply_memory(JobMemory(stored, cores), MemoryNeeds(2000), NONE_RAISED, SplitRule.parse(rule))
    assert raised.file_mb == wanted


@pytest.mark.parametrize(
    ("rule", "had", "used", "cores", "wanted"),
    [
        ("RX=3000", 2000, 0, 1, 3000),
        ("RX=3000", 3000, 0, 1, None),
        ("RX=3000,RY=500", 3000, 0, 1, 3500),
        ("RX=3000,RY=500", 3200, 0, 1, 3500),
        ("RX=3000,RY=500", 2000, 4100, 1, 4500),
        ("RX=3000,RY=500,RZ=3300", 3000, 0, 1, 3300),
        ("RX=3000,RY=500,RZ=3300", 3300, 0, 1, None),
        ("RX=12000,RY=4000", 2000, 0, 4, 3000),
        ("RX=12000,RY=4000", 3000, 0, 4, 4000),
    ],
)
def test_a_first_step_of_the_tasks_own_and_those_above_it(
    rule: str, had: int, used: int, cores: int, wanted: int | None
) -> None:
    stored = analysis_need_mb(had, "MBPerCore", cores=cores)
    job = JobMemory(stored, cores, max_pss_kb=used * 1024 * cores or None)
    raised = multiply_memory(job, MemoryNeeds(2000), NONE_RAISED, SplitRule.parse(rule))
    assert raised.file_mb == wanted


def test_steps_may_pass_the_ladder_and_take_the_task_along() -> None:
    rule = SplitRule.parse("RY=20000")
    raised = multiply_memory(JobMemory(9000), MemoryNeeds(10_000), RaisedFiles(50, 100), rule)
    assert (raised.file_mb, raised.task_mb) == (20_000, 20_000)


def test_a_step_that_is_no_more_than_the_task_has_changes_nothing() -> None:
    raised = multiply_memory(JobMemory(1800), MemoryNeeds(2000), NONE_RAISED, SplitRule.parse("RY=2000"))
    assert (raised.file_mb, raised.reasons[0].code) == (None, "retry_memory_at_top")
    raised = multiply_memory(JobMemory(1800), MemoryNeeds(0), NONE_RAISED, SplitRule.parse("RY=2000"))
    assert (raised.file_mb, raised.reasons[0].code) == (None, "retry_not_applicable")
