"""The verdict on scouts: the task goes on, is exhausted (somebody has to look), or is broken. Pure.

The order of the tests is lifecycle 5.3. The JEDI document decides where it says something: scouts of production that
need more than twice the CPU time declared, and more than five short scouts of an analysis with more than 1 000 jobs,
exhaust a task; three failed build jobs break it. The further conditions that the running system puts on the first two
are limits here, off by default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from brokerage_app.formulas.memory import is_per_core
from brokerage_app.formulas.walltime import hs06s_per_event
from jedisite.vocabulary.words import plural
from tasks_app.domain import attempt_refusal_codes
from tasks_app.domain.reasons import Reason
from tasks_app.domain.units import percentile
from tasks_app.inputs.rules.scout_share import HAS_SCOUTED, WILL_SCOUT
from tasks_app.params.splitrule import SplitRule
from tasks_app.scouts.rules.scout_metrics import (
    SIZE_RULES,
    ExpectedJobs,
    JobSample,
    Measured,
    Presets,
    efficiencies_percent,
)

ANALYSIS_LABELS: Final = frozenset({"user", "panda"})
BUILD_ATTEMPTS: Final = 3
MAX_FILES_FOR_SHORT: Final = 200
LATER_JOBS_GROW: Final = 10
"""Jobs without a size of their own read up to ten times as much as scouts."""


@dataclass(frozen=True, slots=True)
class ScoutLimits:
    """Thresholds of the tests; None switches a test off. Hours, minutes, MB, per cent and tenths as named.

    min_new_jobs            the running system's tests are made only when more jobs than this are still to be made
    wrong_cpu_factor        scouts' CPU time over the declared one (SCOUT_WRONG_CPUTIME_THRESHOLD)
    wrong_cpu_min_exec_h    … and its job ran longer than this (0: the document's rule; the running system has 24)
    ram_threshold_mb        memory per core that a task may not pass without having said so (RAM_THR_EXAUSTED × 1000)
    leak_kb_s_per_core      memory leak that is worth a message (SCOUT_MEM_LEAK_PER_CORE_)
    short_minutes           jobs shorter than this are short (SCOUT_SHORT_EXECTIME_)
    short_more_than         … and more than so many are too many, unless `short_tenths` says which share of them is
                            (SCOUT_NUM_SHORT_), when more than `short_expected_jobs` jobs are expected (SCOUT_THR_SHORT_)
    short_changes_rule      make jobs larger instead, when the split rule allows (SCOUT_CHANGE_SR_)
    low_efficiency_percent  jobs that use less of their CPUs are inefficient (SCOUT_LOW_CPU_EFFICIENCY_), and
                            `inefficient_tenths` of them too many (SCOUT_NUM_CPU_INEFFICIENT_) with more than
                            `inefficient_expected_jobs` (SCOUT_THR_CPU_INEFFICIENT_), unless the task reads or writes
                            more than `max_io_intensity_kb_s` (SCOUT_MAX_IO_INTENSITY_FOR_EXHAUSTED_)
    overuse_factor          CPU seconds over cores × exec of the same job
    overuse_min_exec_s      … that ran for this long: times are reported in whole seconds
    min_ok_rate             success rate (0 to 1) below which a task breaks although it asks for more
                            (SCOUT_MIN_OK_RATE_EXHAUSTED_); between the two it is exhausted
    """

    min_new_jobs: int = 20
    wrong_cpu_factor: float | None = None
    wrong_cpu_min_exec_h: float = 0.0
    ram_threshold_mb: int | None = 4000
    leak_kb_s_per_core: float | None = None
    short_minutes: float | None = None
    short_more_than: int = 5
    short_tenths: float | None = None
    short_expected_jobs: int = 1000
    short_changes_rule: bool = False
    low_efficiency_percent: float | None = None
    inefficient_tenths: float = 10
    inefficient_expected_jobs: int = 0
    max_io_intensity_kb_s: float | None = None
    overuse_factor: float | None = 2.0
    overuse_min_exec_s: float = 60.0
    min_ok_rate: float | None = None


PRODUCTION: Final = ScoutLimits(wrong_cpu_factor=2.0)
ANALYSIS: Final = ScoutLimits(short_minutes=4.0)


def limits_of(label: str) -> ScoutLimits:
    """The document's limits for a prodSourceLabel."""
    return ANALYSIS if label in ANALYSIS_LABELS else PRODUCTION


def configured(label: str, values: Mapping[str, float | bool]) -> ScoutLimits:
    """The limits for a label with what the configuration (component dbproxy) says for it; other keys are ignored."""

    def read(key: str, fallback: float | None) -> float | None:
        return values.get(key, fallback)

    plain = limits_of(label)
    factor = read("SCOUT_WRONG_CPUTIME_THRESHOLD", plain.wrong_cpu_factor) if plain.wrong_cpu_factor else None
    ram = values.get("RAM_THR_EXAUSTED")
    return replace(
        plain,
        wrong_cpu_factor=factor if factor and factor > 0 else None,
        ram_threshold_mb=plain.ram_threshold_mb if ram is None else int(ram * 1000),
        leak_kb_s_per_core=read("SCOUT_MEM_LEAK_PER_CORE", None),
        short_minutes=read("SCOUT_SHORT_EXECTIME", plain.short_minutes),
        short_tenths=read("SCOUT_NUM_SHORT", None),
        short_expected_jobs=int(values.get("SCOUT_THR_SHORT", plain.short_expected_jobs)),
        short_changes_rule=bool(values.get("SCOUT_CHANGE_SR", False)),
        low_efficiency_percent=read("SCOUT_LOW_CPU_EFFICIENCY", None),
        inefficient_tenths=values.get("SCOUT_NUM_CPU_INEFFICIENT", plain.inefficient_tenths),
        inefficient_expected_jobs=int(values.get("SCOUT_THR_CPU_INEFFICIENT", 0)),
        max_io_intensity_kb_s=read("SCOUT_MAX_IO_INTENSITY_FOR_EXHAUSTED", None),
        min_ok_rate=read("SCOUT_MIN_OK_RATE_EXHAUSTED", None),
    )


@dataclass(frozen=True, slots=True)
class ScoutView:
    """What the verdict looks at.

    finished_jobs, ok, exhausted   finished scout jobs; master files finished and without attempts left
    build_failures                 build jobs of the task that failed
    samples, measured, presets     the jobs, what they said, and what the task declared
    may_exhaust                    the caller wants the tests (the verdict on scouts, the second look at five jobs)
    limited_by_scratch             jobs are short since sites copy the input to a small disk
    """

    rule: SplitRule
    finished_jobs: int
    ok: int
    exhausted: int
    build_failures: int = 0
    samples: Sequence[JobSample] = ()
    measured: Measured = field(default_factory=lambda: Measured(0))
    presets: Presets = field(default_factory=Presets)
    expected: ExpectedJobs = field(default_factory=lambda: ExpectedJobs(0, None, 0))
    may_exhaust: bool = True
    limited_by_scratch: bool = False


class Outcome(Enum):
    PASSED = "the task continues"
    EXHAUSTED = "the task waits for a decision"
    FAILED = "the task is broken"


@dataclass(frozen=True, slots=True)
class ScoutVerdict:
    """`reason` is None only for PASSED. `rule` is the new split rule: scouting is over, jobs may be larger.

    `messages` are for the task's page and change nothing.
    """

    outcome: Outcome
    rule: SplitRule
    reason: Reason | None = None
    messages: tuple[Reason, ...] = ()


def judge(view: ScoutView, limits: ScoutLimits) -> ScoutVerdict:
    """The verdict on scouts; the first test that objects gives the reason. Raises ValueError for an unknown unit."""
    if failure := _failure(view, limits):
        return ScoutVerdict(Outcome.FAILED, view.rule, failure)
    messages = tuple(m for m in (_leak(view, limits),) if m)
    rule = view.rule.having("US", HAS_SCOUTED)
    larger = None
    if view.may_exhaust and _many_short(view, limits):
        larger = larger_jobs(rule) if limits.short_changes_rule else None
    if larger:
        rule = larger
        messages += (
            Reason(
                attempt_refusal_codes.SCOUTS_LARGER_JOBS,
                f"{_short_words(view, limits)}, so the split rule becomes {rule}",
            ),
        )
    skipped = {_many_short, _low_efficiency} if larger else set()
    for test, always in _TESTS:
        if test in skipped or not view.may_exhaust or not (always or view.expected.new > limits.min_new_jobs):
            continue
        if found := test(view, limits):
            return ScoutVerdict(Outcome.EXHAUSTED, rule, found, messages)
    if found := _low_success(view, limits):
        return ScoutVerdict(Outcome.EXHAUSTED, rule, found, messages)
    return ScoutVerdict(Outcome.PASSED, rule, None, messages)


def larger_jobs(rule: SplitRule) -> SplitRule | None:
    """The rule without NF and NG and with MF of at least 200; None when that changes nothing."""
    changed = rule.without("NF", "NG")
    most = changed.get_int("MF")
    if most is not None and most < MAX_FILES_FOR_SHORT:
        changed = changed.having("MF", MAX_FILES_FOR_SHORT)
    return changed if changed != rule else None


def _wanted_rate(view: ScoutView) -> float | None:
    """Success rate (0 to 1) that a scouting task asks for; SS is in tenths."""
    tenths = view.rule.get_int("SS") if view.rule.get_int("US") == WILL_SCOUT else None
    return None if tenths is None or not view.ok + view.exhausted else tenths / 10


def _below(view: ScoutView, rate: float) -> bool:
    return view.ok + 1e-9 < rate * (view.ok + view.exhausted)


def _rate_words(view: ScoutView, wanted: float) -> str:
    total = view.ok + view.exhausted
    done = f"{view.ok} of {plural(total, 'input file')} of scouts succeeded ({100 * view.ok / total:.0f} %)"
    return f"{done}, {100 * wanted:.0f} % are needed"


def _failure(view: ScoutView, limits: ScoutLimits) -> Reason | None:
    if view.build_failures >= BUILD_ATTEMPTS:
        return Reason(
            attempt_refusal_codes.SCOUTS_BUILD_FAILED,
            f"{plural(view.build_failures, 'build job')} failed, the limit is {BUILD_ATTEMPTS}",
        )
    if view.finished_jobs <= 0:
        return Reason(
            attempt_refusal_codes.SCOUTS_NONE_FINISHED,
            f"no scout job finished, {plural(view.exhausted, 'input file')} failed",
        )
    wanted = _wanted_rate(view)
    if wanted is None:
        return None
    least = wanted if limits.min_ok_rate is None else min(wanted, limits.min_ok_rate)
    if _below(view, least):
        return Reason(attempt_refusal_codes.SCOUTS_TOO_FEW_SUCCEEDED, _rate_words(view, least))
    return None


def _low_success(view: ScoutView, limits: ScoutLimits) -> Reason | None:
    """Fewer than the task asks for, but enough not to break it: whatever the number of jobs."""
    wanted = _wanted_rate(view)
    if wanted is None or limits.min_ok_rate is None or not _below(view, wanted):
        return None
    return Reason(attempt_refusal_codes.SCOUTS_TOO_FEW_SUCCEEDED, _rate_words(view, wanted))


def _cpu_time(view: ScoutView, limits: ScoutLimits) -> Reason | None:
    found, declared = view.measured.cpu_time, view.presets.cpu_time
    if limits.wrong_cpu_factor is None or not found or not declared or view.expected.new <= 0:
        return None
    scout = hs06s_per_event(found, view.measured.cpu_time_unit or "")
    preset = hs06s_per_event(declared, view.presets.cpu_time_unit)
    job = next((j for name, j in view.measured.tags if name == "cpuTime"), None)
    ran_s = next((s.exec_s for s in view.samples if s.job_id == job), 0)
    if scout <= limits.wrong_cpu_factor * preset or (
        limits.wrong_cpu_min_exec_h > 0 and ran_s <= limits.wrong_cpu_min_exec_h * 3600
    ):
        return None
    times = f"{scout / preset:.1f} times the {preset:g} declared, {limits.wrong_cpu_factor:g} times are allowed"
    return Reason(attempt_refusal_codes.SCOUTS_CPU_TIME, f"scouts need {scout:g} HS06 s an event, {times}")


def _memory(view: ScoutView, limits: ScoutLimits) -> Reason | None:
    found, declared, most = view.measured.ram_mb, view.presets.ram, limits.ram_threshold_mb
    if most is None or found is None or declared is None or not is_per_core(view.presets.ram_unit):
        return None
    if not declared < most < found:
        return None
    return Reason(
        attempt_refusal_codes.SCOUTS_MEMORY,
        f"scouts need {found} MB a core, {declared} MB were declared, the limit is {most} MB",
    )


def _leak(view: ScoutView, limits: ScoutLimits) -> Reason | None:
    leak, most = view.measured.leak_kb_s_per_core, limits.leak_kb_s_per_core
    if leak is None or most is None or leak <= most:
        return None
    return Reason(
        attempt_refusal_codes.SCOUTS_MEMORY_LEAK,
        f"scouts leak {leak:.3g} kB/s a core, {most:g} is the limit for a warning",
    )


def _short(view: ScoutView, limits: ScoutLimits) -> list[JobSample]:
    return [s for s in view.samples if limits.short_minutes is not None and s.exec_s < limits.short_minutes * 60]


def _short_words(view: ScoutView, limits: ScoutLimits) -> str:
    return (
        f"{len(_short(view, limits))} of {plural(len(view.samples), 'scout')} ran less than {limits.short_minutes:g} min"
        f" and {view.expected.fewest} jobs are expected"
    )


def _many_short(view: ScoutView, limits: ScoutLimits) -> Reason | None:
    short = _short(view, limits)
    if limits.short_tenths is None:
        many = len(short) > limits.short_more_than
    else:
        many = bool(short) and len(short) * 10 >= limits.short_tenths * len(view.samples)
    if not many or limits.short_minutes is None or view.expected.fewest <= limits.short_expected_jobs:
        return None
    free = not any(view.rule.get_int(code) for code in SIZE_RULES)
    grown_s = max(s.exec_s for s in short) * LATER_JOBS_GROW
    if view.limited_by_scratch or (free and grown_s > limits.short_minutes * 60):
        return None
    return Reason(
        attempt_refusal_codes.SCOUTS_SHORT_JOBS, f"{_short_words(view, limits)}, more than {limits.short_expected_jobs}"
    )


def _low_efficiency(view: ScoutView, limits: ScoutLimits) -> Reason | None:
    """A task's own minimum (MC) decides alone; else the share of inefficient jobs does."""
    found, least = efficiencies_percent(view.samples), view.rule.get_int("MC")
    if not found:
        return None
    if least is not None:
        median = percentile(found, 50)
        detail = f"the median CPU efficiency of scouts is {median:g} %, the task asks for {least} %"
        return Reason(attempt_refusal_codes.SCOUTS_LOW_EFFICIENCY, detail) if median < least else None
    low, io = limits.low_efficiency_percent, view.measured.io_intensity_kb_s
    if low is None or (limits.max_io_intensity_kb_s is not None and (io or 0) > limits.max_io_intensity_kb_s):
        return None
    bad = sum(e < low for e in found)
    if not bad or bad * 10 < limits.inefficient_tenths * len(found):
        return None
    if view.expected.most <= limits.inefficient_expected_jobs:
        return None
    detail = (
        f"{bad} of {plural(len(found), 'scout uses', 'scouts use')} less than {low:g} % of their CPUs "
        f"and {view.expected.most} jobs are expected"
    )
    return Reason(attempt_refusal_codes.SCOUTS_LOW_EFFICIENCY, detail)


def _overuse(view: ScoutView, limits: ScoutLimits) -> Reason | None:
    known = [s for s in view.samples if s.cpu_s is not None and s.exec_s >= limits.overuse_min_exec_s]
    if limits.overuse_factor is None or not known:
        return None
    worst = max(known, key=lambda s: (s.cpu_s or 0, s.job_id))
    wall_s = worst.exec_s * worst.used_cores
    if (worst.cpu_s or 0) <= wall_s * limits.overuse_factor:
        return None
    detail = (
        f"job {worst.job_id} used {worst.cpu_s:.0f} CPU seconds in {worst.exec_s:.0f} s on {plural(worst.used_cores, 'core')},"
        f" more than {limits.overuse_factor:g} times what they give"
    )
    return Reason(attempt_refusal_codes.SCOUTS_CPU_OVERUSE, detail)


_TESTS: Final[tuple[tuple[Callable[[ScoutView, ScoutLimits], Reason | None], bool], ...]] = (
    (_cpu_time, True),
    (_memory, False),
    (_many_short, True),
    (_low_efficiency, False),
    (_overuse, False),
)
"""The tests in order, and whether they are made however few jobs are still to be made."""
