"""What finished jobs said about a task, for its page: the verdict on its scouts, and declared and measured numbers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from tasks_app.domain import words
from tasks_app.domain.units import USUAL_UNITS
from tasks_app.models import ScoutReport, Task, TaskParams

ANSWERS: Final = {
    "passed": "They passed:",
    "exhausted": "The task stops until somebody acts on it:",
    "failed": "The task is broken:",
}
# Attribute of the task, its words, and the attribute that holds the unit or the unit itself.
QUANTITIES: Final = (
    ("ram_count", "Memory", "ram_unit"),
    ("cpu_time", "CPU time", "cpu_time_unit"),
    ("walltime", "CPU time per MB of input", "=s"),
    ("merge_ram_count", "Memory of merge jobs", "merge_ram_unit"),
    ("merge_walltime", "CPU time of merge jobs per MB that they read", "=s"),
    ("out_disk_count", "Output per MB of input or per event", "out_disk_unit"),
    ("work_disk_count", "Work folder", "work_disk_unit"),
    ("io_intensity", "Input and output", "=kB/s"),
    ("disk_io", "Use of the local disk", "=kB/s"),
    ("memory_leak_core", "Memory leak per core", "=kB/s"),
    ("cpu_efficiency_percent", "CPU efficiency", "=%"),
)


USED: Final = {"ram_count": "ram_used"}
"""What jobs used, of quantities of which more is asked for: with a margin, and no less than the least."""

ASSUMED: Final = {"ram_count": "ramCount", "cpu_efficiency_percent": "cpuEfficiency"}
"""Quantities for which a task has a usual value when its parameters say nothing."""

TOLD_IN_SECONDS: Final = ("cpu_time", "walltime", "merge_walltime")
"""Made of what jobs tell in whole seconds: 0 is not nothing."""


@dataclass(frozen=True, slots=True)
class Row:
    """`asked` is what jobs ask for because of it, where that is not what was measured."""

    title: str
    declared: str
    measured: str
    asked: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """`verdict` is None while no scouts were judged.

    sample, finished      jobs that the latest look measured that measured some, and jobs of the task that had finished then
    measured_at           when that was; 0, 0 and None when no look measured any
    measured_times        how many looks measured some
    """

    verdict: ScoutReport | None
    answer: str
    rows: list[Row]
    sample: int
    finished: int
    measured_at: datetime | None
    measured_times: int


def of_task(task: Task) -> Section | None:
    """The section for a task's page; None when nobody has looked at its finished jobs yet."""
    reports = list(ScoutReport.objects.filter(task_id=task.id).order_by("-id")[:50])
    if not reports:
        return None
    verdict = next((r for r in reports if r.scouts), None) or next(
        (r for r in reports if r.outcome == "exhausted"), None
    )
    measured: dict[str, Any] = {}
    declared: dict[str, Any] = {}
    for report in reversed(reports):
        measured |= report.measured
        declared = report.presets | declared
    answer = ANSWERS.get(verdict.outcome, "") if verdict is not None else ""
    given_by_default = _by_default(task)
    rows = [
        _row(declared, measured, name, title, unit, task, given_by_default)
        for name, title, unit in QUANTITIES
        if measured.get(name) is not None
    ]
    measuring = [report for report in reports if report.sample]
    if not measuring:
        return Section(verdict, answer, rows, 0, 0, None, 0)
    last = measuring[0]
    return Section(verdict, answer, rows, last.sample, last.finished_jobs, last.at, len(measuring))


def _by_default(task: Task) -> set[str]:
    """Quantities of which the task's parameters say nothing. One statement, unless they are at hand."""
    submitted: TaskParams | None = getattr(task, "params", None)
    if submitted is None:
        return set()
    return {name for name, parameter in ASSUMED.items() if submitted.params.get(parameter) is None}


def _row(
    declared: dict[str, Any],
    measured: dict[str, Any],
    name: str,
    title: str,
    unit: str,
    task: Task,
    given_by_default: set[str],
) -> Row:
    before, now = (_value(values, name, unit, task) for values in (declared, measured))
    if before != "–" and name in given_by_default:
        before = f"– ({before} by default)"
    if name in TOLD_IN_SECONDS and not measured[name]:
        now = "too little to measure"
    used = measured.get(USED.get(name, ""))
    if used is None:
        return Row(title, before, now)
    return Row(title, before, _value({**measured, name: used}, name, unit, task), now)


def _value(values: dict[str, Any], name: str, unit: str, task: Task) -> str:
    value = values.get(name)
    if value is None:
        return "–"
    if str(values.get(unit)).startswith("mHS06"):
        value, values = value / 1000, {**values, unit: values[unit][1:]}
    number = words.count(value) if isinstance(value, int) else f"{value:g}"
    return f"{number} {unit[1:] if unit.startswith('=') else _unit(values, name, unit, task)}"


def _unit(values: dict[str, Any], name: str, unit: str, task: Task) -> str:
    known = values.get(unit) or (task.ram_unit if unit == "ram_unit" else None) or USUAL_UNITS[name]
    return words.unit(str(known))
