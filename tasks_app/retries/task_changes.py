"""Carries out what failed jobs asked of their tasks: more memory, another CPU time, smaller jobs, a new measurement."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from jedisite.agents import troubles
from tasks_app.models import Task, TaskChangeDue, TaskStatusLog
from tasks_app.params.splitrule import SplitRule
from tasks_app.submission.resource_typing import with_type

ME = "adder"
LIMIT = 1000


def carry_out(limit: int = LIMIT) -> int:
    """Carry out the changes that are due, one transaction for each task. Returns how many tasks changed."""
    due = sorted(set(TaskChangeDue.objects.order_by("id").values_list("task_id", flat=True)[:limit]))
    return troubles.each(ME, due, _change)


@transaction.atomic
def _change(task_id: int) -> bool:
    task = Task.objects.select_for_update().filter(pk=task_id).first()
    rows = list(TaskChangeDue.objects.select_for_update(skip_locked=True).filter(task_id=task_id).order_by("id"))
    TaskChangeDue.objects.filter(pk__in=[row.id for row in rows]).delete()
    if task is None:
        return False
    before = _columns(task)
    for row in rows:
        _apply(task, row.change)
    changed = {name: value for name, value in _columns(task).items() if value != before[name]}
    if not changed:
        return False
    Task.objects.filter(pk=task_id).update(**with_type(task, changed))
    why = "; ".join(dict.fromkeys(row.reason for row in rows if row.reason))
    TaskStatusLog.objects.create(
        task_id=task_id, old_status=task.status, status=task.status, attempt=task.attempt, by=ME, reason=why
    )
    return True


def _columns(task: Task) -> dict[str, Any]:
    names = (
        "ram_count",
        "merge_ram_count",
        "merge_ram_unit",
        "cpu_time",
        "cpu_time_unit",
        "walltime_unit",
        "split_rule",
    )
    return {name: getattr(task, name) for name in names}


def _apply(task: Task, change: dict[str, Any]) -> None:
    """The change was decided on numbers that may be older than the row: memory never falls, other codes stay."""
    if change.get("ramcount"):
        task.ram_count = max(task.ram_count or 0, int(change["ramcount"]))
    if change.get("mergeramcount"):
        task.merge_ram_count = max(task.merge_ram_count or 0, int(change["mergeramcount"]))
        task.merge_ram_unit = task.merge_ram_unit or "MB"
    if "cputime" in change:
        task.cpu_time, task.cpu_time_unit = change["cputime"], change.get("cputimeunit", task.cpu_time_unit)
    if change.get("measure_again") and not task.skips_scouts:
        task.walltime_unit = None
    if change.get("rule"):
        rule = SplitRule.parse(task.split_rule)
        for code, value in change["rule"].items():
            rule = rule.having(code, value)
        task.split_rule = str(rule)
