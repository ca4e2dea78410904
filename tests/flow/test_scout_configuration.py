"""What each parameter of the configuration changes in the verdict on scouts, and in what is measured of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from brokerage_app.grid.configuring import set_value
from tasks_app.models import Task
from tasks_app.params.splitrule import SplitRule
from tasks_app.scouts.rules.scout_metrics import ExpectedJobs, JobSample, Measured, Presets, measure
from tasks_app.scouts.rules.scout_verdict import ScoutView, judge
from tasks_app.scouts.scout_sample import limits_for, settings_for

pytestmark = pytest.mark.usefixtures("books")
MANY = ExpectedJobs(5000, None, 4990)


def scouts(*exec_s: float, cpu_s: float = 0.9) -> tuple[JobSample, ...]:
    """Jobs on one core that used this part of it."""
    return tuple(JobSample(n, s, s * cpu_s, 1) for n, s in enumerate(exec_s, start=1))


def view(rule: str = "US=2,NF=1", /, **more: Any) -> ScoutView:
    return ScoutView(SplitRule.parse(rule), **{"finished_jobs": 10, "ok": 10, "exhausted": 0, "expected": MANY, **more})


class Row(NamedTuple):
    """Parameters that are set first, one with its value, scouts, and their verdict without it and with it."""

    others: dict[str, str]
    key: str
    value: str
    scouts: ScoutView
    usual: str
    changed: str
    label: str = "user"


SIX_SHORT = view(samples=scouts(*[239.0] * 6, *[3600.0] * 4))
IDLE = view(samples=scouts(*[1000.0] * 10, cpu_s=0.4), measured=Measured(10, io_intensity_kb_s=300))
LEAKING = view(measured=Measured(10, leak_kb_s_per_core=2.0))
INEFFICIENT = {"SCOUT_LOW_CPU_EFFICIENCY_user": "50"}
DEAR = view(
    measured=Measured(10, cpu_time=250, cpu_time_unit="HS06sPerEvent", tags=(("cpuTime", 1),)),
    presets=Presets(cpu_time=100),
    samples=scouts(600.0),
)
LARGE = view(measured=Measured(10, ram_mb=5000), presets=Presets(ram=2000, ram_unit="MBPerCore"))
PASSED, SHORT, LOW = "PASSED", "EXHAUSTED scouts_short_jobs", "EXHAUSTED scouts_low_efficiency"
ROWS = [
    Row({}, "SCOUT_SHORT_EXECTIME_user", "3", SIX_SHORT, SHORT, PASSED),
    Row({}, "SCOUT_NUM_SHORT_user", "7", SIX_SHORT, SHORT, PASSED),
    Row({}, "SCOUT_THR_SHORT_user", "6000", SIX_SHORT, SHORT, PASSED),
    Row({}, "SCOUT_CHANGE_SR_user", "true", SIX_SHORT, SHORT, "PASSED larger"),
    Row({}, "SCOUT_LOW_CPU_EFFICIENCY_user", "50", IDLE, PASSED, LOW),
    Row(
        INEFFICIENT,
        "SCOUT_NUM_CPU_INEFFICIENT_user",
        "5",
        view(samples=(*IDLE.samples[:5], *scouts(*[1000.0] * 5))),
        PASSED,
        LOW,
    ),
    Row(INEFFICIENT, "SCOUT_THR_CPU_INEFFICIENT_user", "6000", IDLE, LOW, PASSED),
    Row(INEFFICIENT, "SCOUT_MAX_IO_INTENSITY_FOR_EXHAUSTED_user", "200", IDLE, LOW, PASSED),
    Row({}, "SCOUT_WRONG_CPUTIME_THRESHOLD", "3", DEAR, "EXHAUSTED scouts_cpu_time", PASSED, "managed"),
    Row({}, "RAM_THR_EXAUSTED", "6", LARGE, "EXHAUSTED scouts_memory", PASSED),
    Row({}, "SCOUT_MEM_LEAK_PER_CORE_user", "1", LEAKING, PASSED, "PASSED scouts_memory_leak"),
    Row(
        {},
        "SCOUT_MIN_OK_RATE_EXHAUSTED_user",
        "0.3",
        view("US=2,SS=5", finished_jobs=4, ok=4, exhausted=6),
        "FAILED scouts_too_few_succeeded",
        "EXHAUSTED scouts_too_few_succeeded",
    ),
]


def verdict(row: Row) -> str:
    seen = row.scouts
    found = judge(seen, limits_for(Task(prod_source_label=row.label, vo="lab")))
    larger = ["larger"] if "NF" in seen.rule and "NF" not in found.rule else []
    codes = [reason.code for reason in (found.reason, *found.messages) if reason]
    return " ".join([found.outcome.name, *(larger or codes)])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_a_parameter_changes_the_verdict_on_scouts(row: Row) -> None:
    for key, value in row.others.items():
        set_value("dbproxy", key, value, by="ada")
    assert verdict(row) == row.usual
    set_value("dbproxy", row.key, row.value, by="ada")
    assert verdict(row) == row.changed


@pytest.mark.parametrize(
    ("key", "value", "usual", "changed"),
    [
        ("SCOUT_RAMCOUNT_RANK", "50", 5500, 3300),
        ("SCOUT_RAMCOUNT_MARGIN", "0", 5500, 5000),
        ("SCOUT_RAMCOUNT_MIN", "6000", 5500, 6000),
    ],
)
def test_a_parameter_changes_the_memory_that_scouts_set(key: str, value: str, usual: int, changed: int) -> None:
    """Four jobs use 2, 2, 4 and 8 GB."""
    used = [JobSample(n, 1000.0, 900.0, 1, max_pss_kb=gb * 1000 * 1024) for n, gb in enumerate((2, 2, 4, 8), start=1)]

    def memory() -> int | None:
        return measure(used, Presets(ram=2000), settings_for(Task(vo="lab", ram_count=2000))).ram_mb

    assert memory() == usual
    set_value("dbproxy", key, value, by="ada")
    assert memory() == changed


@pytest.mark.parametrize(
    ("key", "value", "usual", "changed"),
    [("SCOUT_CPUTIME_RANK", "50", (1053, 836), (810, 836)), ("SCOUT_DISK_IO_CAP", "700", (1053, 836), (1053, 700))],
)
def test_a_parameter_changes_the_other_measures_of_scouts(
    key: str, value: str, usual: tuple[int, int], changed: tuple[int, int]
) -> None:
    used = [JobSample(n, 600 + 400.0 * n, 300.0 * n, 1, events=10, disk_io_kb=900_000.0) for n in (1, 1, 1, 2)]

    def measures() -> tuple[int | None, int | None]:
        found = measure(used, Presets(), settings_for(Task(vo="lab", ram_count=2000)))
        return found.cpu_time, found.disk_io_kb_s

    assert measures() == usual
    set_value("dbproxy", key, value, by="ada")
    assert measures() == changed
