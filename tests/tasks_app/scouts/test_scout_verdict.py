from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.params.splitrule import SplitRule
from tasks_app.scouts.rules.scout_metrics import ExpectedJobs, JobSample, Measured, Presets
from tasks_app.scouts.rules.scout_verdict import (
    ANALYSIS,
    PRODUCTION,
    Outcome,
    ScoutLimits,
    ScoutView,
    configured,
    judge,
    larger_jobs,
    limits_of,
)

MANY = ExpectedJobs(5000, None, 4990)
FEW = ExpectedJobs(30, None, 20)


def jobs(*exec_s: float, cpu_s: float | None = None, cores: int = 1) -> tuple[JobSample, ...]:
    return tuple(JobSample(n, s, cpu_s, cores) for n, s in enumerate(exec_s, start=1))


def view(rule: str = "US=2,NF=1", /, **more: object) -> ScoutView:
    values: dict[str, object] = {"finished_jobs": 10, "ok": 10, "exhausted": 0, "expected": MANY, **more}
    return ScoutView(SplitRule.parse(rule), **values)  # type: ignore[arg-type]


def verdict(seen: ScoutView, limits: ScoutLimits = PRODUCTION) -> tuple[str, str | None]:
    found = judge(seen, limits)
    return found.outcome.name, found.reason.code if found.reason else None


PASSED = ("PASSED", None)


def test_good_scouts_pass_and_scouting_is_over() -> None:
    found = judge(view(), PRODUCTION)
    assert (found.outcome, str(found.rule)) == (Outcome.PASSED, "US=3,NF=1")


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"finished_jobs": 0, "ok": 0, "exhausted": 10}, "scouts_none_finished"),
        ({"build_failures": 3}, "scouts_build_failed"),
        ({"build_failures": 2}, None),
    ],
)
def test_without_a_finished_scout_or_build_the_task_breaks(more: dict[str, object], code: str | None) -> None:
    assert verdict(view(**more)) == (("FAILED", code) if code else PASSED)


@pytest.mark.parametrize(
    ("rule", "ok", "least", "wanted"),
    [
        ("US=2", 1, None, PASSED),
        ("US=2,SS=5", 5, None, PASSED),
        ("US=2,SS=5", 4, None, ("FAILED", "scouts_too_few_succeeded")),
        ("US=3,SS=5", 4, None, PASSED),  # a later look
        ("US=2,SS=5", 4, 0.3, ("EXHAUSTED", "scouts_too_few_succeeded")),
        ("US=2,SS=5", 3, 0.3, ("EXHAUSTED", "scouts_too_few_succeeded")),
        ("US=2,SS=5", 2, 0.3, ("FAILED", "scouts_too_few_succeeded")),
        ("US=2,SS=2", 2, 0.3, PASSED),  # the task asks for less than the limit
        ("US=2,SS=2", 1, 0.3, ("FAILED", "scouts_too_few_succeeded")),
    ],
)
def test_the_success_rate(rule: str, ok: int, least: float | None, wanted: tuple[str, str | None]) -> None:
    seen = view(rule, ok=ok, exhausted=10 - ok, finished_jobs=ok, expected=FEW)
    assert verdict(seen, replace(PRODUCTION, min_ok_rate=least)) == wanted


def test_rates_are_exact_at_the_limit() -> None:
    for tenths in range(1, 10):
        for total in range(10, 200, 10):
            seen = view(f"US=2,SS={tenths}", ok=total * tenths // 10, exhausted=total - total * tenths // 10)
            assert verdict(seen) == PASSED


def cpu(value: int, unit: str = "HS06sPerEvent", preset: float = 100, exec_s: float = 600) -> ScoutView:
    measured = Measured(10, cpu_time=value, cpu_time_unit=unit, tags=(("cpuTime", 1),))
    return view(measured=measured, presets=Presets(cpu_time=preset), samples=jobs(exec_s), expected=FEW)


@pytest.mark.parametrize(
    ("seen", "limits", "hit"),
    [
        (cpu(200), PRODUCTION, False),
        (cpu(201), PRODUCTION, True),
        (cpu(201_000, "mHS06sPerEvent"), PRODUCTION, True),
        (cpu(201, "mHS06sPerEvent"), PRODUCTION, False),
        (cpu(201), ANALYSIS, False),
        (cpu(201, preset=0), PRODUCTION, False),
        (cpu(201), replace(PRODUCTION, wrong_cpu_min_exec_h=24), False),
        (cpu(201, exec_s=24 * 3600 + 1), replace(PRODUCTION, wrong_cpu_min_exec_h=24), True),
    ],
)
def test_more_than_twice_the_declared_cpu_time_exhausts_production(
    seen: ScoutView, limits: ScoutLimits, hit: bool
) -> None:
    assert verdict(seen, limits) == (("EXHAUSTED", "scouts_cpu_time") if hit else PASSED)


@pytest.mark.parametrize(
    ("found", "declared", "unit", "expected", "hit"),
    [
        (4001, 3999, "MBPerCore", MANY, True),
        (4000, 2000, "MBPerCore", MANY, False),
        (9000, 4000, "MBPerCore", MANY, False),
        (9000, 2000, "MB", MANY, False),
        (9000, 2000, "MBPerCore", FEW, False),  # no more than 20 jobs are to come
    ],
)
def test_undeclared_high_memory_exhausts(
    found: int, declared: int, unit: str, expected: ExpectedJobs, hit: bool
) -> None:
    seen = view(measured=Measured(10, ram_mb=found), presets=Presets(ram=declared, ram_unit=unit), expected=expected)
    assert verdict(seen) == (("EXHAUSTED", "scouts_memory") if hit else PASSED)


def test_a_leak_is_only_worth_a_message() -> None:
    seen = view(measured=Measured(10, leak_kb_s_per_core=2.0))
    found = judge(seen, replace(PRODUCTION, leak_kb_s_per_core=1.0))
    assert (found.outcome, [m.code for m in found.messages]) == (Outcome.PASSED, ["scouts_memory_leak"])
    assert judge(seen, PRODUCTION).messages == ()


SIX_SHORT = jobs(*[239.0] * 6, *[3600.0] * 4)


@pytest.mark.parametrize(
    ("samples", "expected", "hit"),
    [
        (SIX_SHORT, MANY, True),
        (SIX_SHORT[1:], MANY, False),  # five are not more than five
        (jobs(*[240.0] * 10), MANY, False),
        (SIX_SHORT, ExpectedJobs(1001, None, 1), True),
        (SIX_SHORT, ExpectedJobs(1000, None, 999), False),
        (SIX_SHORT, ExpectedJobs(5000, 900, 4000), False),  # the smaller estimate counts
    ],
)
def test_many_short_jobs_exhaust_analysis(samples: tuple[JobSample, ...], expected: ExpectedJobs, hit: bool) -> None:
    seen = view(samples=samples, expected=expected)
    assert verdict(seen, ANALYSIS) == (("EXHAUSTED", "scouts_short_jobs") if hit else PASSED)
    assert verdict(seen, PRODUCTION) == PASSED


@pytest.mark.parametrize(
    ("more", "rule", "hit"),
    [
        ({}, "US=2,NF=1", True),
        ({"limited_by_scratch": True}, "US=2,NF=1", False),
        ({}, "US=2", False),  # later jobs are ten times as long
        ({"samples": jobs(*[20.0] * 10)}, "US=2", True),
        ({"may_exhaust": False}, "US=2,NF=1", False),
    ],
)
def test_short_jobs_may_have_an_excuse(more: dict[str, object], rule: str, hit: bool) -> None:
    values: dict[str, object] = {"samples": SIX_SHORT, **more}
    assert verdict(view(rule, **values), ANALYSIS) == (("EXHAUSTED", "scouts_short_jobs") if hit else PASSED)


def test_a_share_of_short_jobs_can_be_configured() -> None:
    limits = replace(ANALYSIS, short_tenths=8)
    assert verdict(view(samples=SIX_SHORT), limits) == PASSED
    assert verdict(view(samples=jobs(*[10.0] * 8, 900, 900)), limits)[1] == "scouts_short_jobs"


def test_jobs_are_made_larger_instead_where_that_is_configured() -> None:
    limits = replace(ANALYSIS, short_changes_rule=True, low_efficiency_percent=50, inefficient_tenths=1)
    slow = tuple(replace(s, cpu_s=1.0) for s in SIX_SHORT)
    found = judge(view("US=2,NF=1,MF=10,NG=3", samples=slow), limits)
    assert (found.outcome, str(found.rule)) == (Outcome.PASSED, "US=3,MF=200")
    assert [m.code for m in found.messages] == ["scouts_larger_jobs"]
    assert verdict(view("US=2,NE=5", samples=slow), limits) == ("EXHAUSTED", "scouts_short_jobs")


@pytest.mark.parametrize(
    ("rule", "wanted"), [("NF=2", ""), ("NG=2,MF=199", "MF=200"), ("MF=300", None), ("NE=5", None), ("", None)]
)
def test_larger_jobs(rule: str, wanted: str | None) -> None:
    changed = larger_jobs(SplitRule.parse(rule))
    assert (None if changed is None else str(changed)) == wanted


LOW = replace(PRODUCTION, low_efficiency_percent=50, inefficient_tenths=5, inefficient_expected_jobs=1000)


@pytest.mark.parametrize(
    ("rule", "cpu_s", "expected", "io", "hit"),
    [
        ("US=2,NF=1,MC=60", 590, MANY, None, True),
        ("US=2,NF=1,MC=60", 600, MANY, None, False),
        ("US=2,NF=1,MC=30", 400, MANY, None, False),  # the task's own minimum decides alone
        ("US=2,NF=1", 490, MANY, None, True),
        ("US=2,NF=1", 500, MANY, None, False),
        ("US=2,NF=1", 490, ExpectedJobs(1000, 900, 900), None, False),
        ("US=2,NF=1", 490, ExpectedJobs(10, 1001, 900), None, True),  # the larger estimate counts
        ("US=2,NF=1", 490, MANY, 301, False),
        ("US=2,NF=1", 490, MANY, 300, True),
        ("US=2,NF=1,MC=60", 490, MANY, 301, True),
    ],
)
def test_low_efficiency(rule: str, cpu_s: float, expected: ExpectedJobs, io: int | None, hit: bool) -> None:
    seen = view(
        rule, samples=jobs(*[1000.0] * 10, cpu_s=cpu_s), expected=expected, measured=Measured(10, io_intensity_kb_s=io)
    )
    limits = replace(LOW, max_io_intensity_kb_s=300)
    assert verdict(seen, limits) == (("EXHAUSTED", "scouts_low_efficiency") if hit else PASSED)


def test_half_of_the_scouts_may_be_inefficient() -> None:
    slow, quick = jobs(*[1000.0] * 10, cpu_s=10), jobs(*[1000.0] * 10, cpu_s=900)
    assert verdict(view(samples=slow[:4] + quick[:6]), LOW) == PASSED
    assert verdict(view(samples=slow[:5] + quick[:5]), LOW)[1] == "scouts_low_efficiency"


def test_short_jobs_say_nothing_about_cores() -> None:
    assert verdict(view(samples=jobs(59.0, cpu_s=8000, cores=4))) == PASSED
    assert verdict(view(samples=jobs(60.0, cpu_s=8000, cores=4)))[1] == "scouts_cpu_overuse"


@pytest.mark.parametrize(("cpu_s", "hit"), [(8000, False), (8001, True)])
def test_more_cpu_than_the_cores_give(cpu_s: float, hit: bool) -> None:
    seen = view(samples=jobs(1000.0, cpu_s=cpu_s, cores=4))
    assert verdict(seen) == (("EXHAUSTED", "scouts_cpu_overuse") if hit else PASSED)


def test_the_first_test_that_objects_gives_the_reason() -> None:
    everything = replace(
        cpu(201),
        expected=MANY,
        samples=jobs(*[10.0] * 10, cpu_s=100.0),
        presets=Presets(cpu_time=100, ram=2000),
    )
    everything = replace(everything, measured=replace(everything.measured, ram_mb=9000))
    limits = replace(PRODUCTION, short_minutes=4, overuse_min_exec_s=0)
    order = []
    for off in ({}, {"wrong_cpu_factor": None}, {"ram_threshold_mb": None}, {"short_minutes": None}):
        limits = replace(limits, **off)  # type: ignore[arg-type]
        order.append(verdict(everything, limits)[1])
    assert order == ["scouts_cpu_time", "scouts_memory", "scouts_short_jobs", "scouts_cpu_overuse"]


def test_reasons_carry_their_numbers() -> None:
    found = judge(cpu(450), PRODUCTION).reason
    assert found and found.detail == "scouts need 450 HS06 s an event, 4.5 times the 100 declared, 2 times are allowed"
    found = judge(view("US=2,SS=5", ok=4, exhausted=6), PRODUCTION).reason
    assert found and found.detail == "4 of 10 input files of scouts succeeded (40 %), 50 % are needed"


def test_limits_come_from_the_label_and_the_configuration() -> None:
    assert (limits_of("user"), limits_of("panda"), limits_of("managed")) == (ANALYSIS, ANALYSIS, PRODUCTION)
    assert configured("user", {}) == ANALYSIS and configured("managed", {"OTHER": 1}) == PRODUCTION
    values: dict[str, float | bool] = {
        "SCOUT_WRONG_CPUTIME_THRESHOLD": 0,
        "RAM_THR_EXAUSTED": 6,
        "SCOUT_SHORT_EXECTIME": 10,
        "SCOUT_NUM_SHORT": 5,
        "SCOUT_THR_SHORT": 100,
        "SCOUT_CHANGE_SR": True,
        "SCOUT_MIN_OK_RATE_EXHAUSTED": 0.2,
    }
    found = configured("managed", values)
    assert found == replace(
        PRODUCTION,
        wrong_cpu_factor=None,
        ram_threshold_mb=6000,
        short_minutes=10,
        short_tenths=5,
        short_expected_jobs=100,
        short_changes_rule=True,
        min_ok_rate=0.2,
    )


@given(
    rule=st.sampled_from(["US=2", "US=2,SS=7", "US=3,NF=4,MC=50", "US=2,NG=3,MF=9"]),
    finished=st.integers(0, 10),
    ok=st.integers(0, 20),
    exhausted=st.integers(0, 20),
    exec_s=st.lists(st.floats(0, 1e5), max_size=10),
    new=st.integers(0, 10**5),
    may=st.booleans(),
    limits=st.sampled_from([PRODUCTION, ANALYSIS, LOW, replace(ANALYSIS, short_changes_rule=True, min_ok_rate=0.4)]),
)
def test_every_verdict_but_a_pass_has_a_reason(
    rule: str, finished: int, ok: int, exhausted: int, exec_s: list[float], new: int, may: bool, limits: ScoutLimits
) -> None:
    seen = view(
        rule,
        finished_jobs=finished,
        ok=ok,
        exhausted=exhausted,
        samples=jobs(*exec_s, cpu_s=5.0),
        expected=ExpectedJobs(new, None, new),
        may_exhaust=may,
    )
    found = judge(seen, limits)
    assert (found.reason is None) == (found.outcome == Outcome.PASSED)
    assert found.rule == seen.rule if found.outcome == Outcome.FAILED else found.rule.get_int("US") == 3
    if not finished:
        assert found.outcome == Outcome.FAILED
