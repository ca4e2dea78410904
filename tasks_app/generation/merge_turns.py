"""One task's turn with the merger: whether it is due, the jobs that are made, and the sentence on what its outputs wait for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import structlog
from django.db import transaction

from brokerage_app.grid.configured import configuration
from brokerage_app.vocabulary.snapshot import Grid
from tasks_app.generation.merge_facts import merge_numbers
from tasks_app.generation.mergejobs import Made, make_merge_jobs
from tasks_app.lifecycle import task_moves
from tasks_app.models import Task
from tasks_app.params.buildstep import BadBuildError
from tasks_app.params.placeholders import BadTemplate, UnresolvedPlaceholder
from tasks_app.params.splitrule import SplitRule
from tasks_app.splitting.limits import MB, SiteNumbers, TaskNumbers, limits_for
from tasks_app.splitting.merging import Heap, may_be_full, nothing_more

log = structlog.get_logger(__name__)
ME = "merger"
WAITS = "its outputs wait to be merged"


def due_tasks(heaps: Mapping[int, Sequence[Heap]], grid: Grid, now: datetime) -> list[int]:
    """Tasks with unmerged files of which merge jobs can be made now; none of a VO for which no jobs are made."""
    columns = ("split_rule", "vo", "base_walltime", "merge_walltime", "merge_walltime_unit")
    config = configuration()
    found = {
        task.id: task
        for task in Task.objects.filter(pk__in=heaps).only(*columns)
        if config.get("jobgen", "JOB_SUBMISSION", vo=task.vo)
    }
    return [task_id for task_id, some in heaps.items() if task_id in found and _is_due(some, found[task_id], grid, now)]


def _is_due(heaps: Sequence[Heap], task: Task, grid: Grid, now: datetime) -> bool:
    """Whether a merge job of a task can be full, or nothing more comes at a site."""
    rule = SplitRule.parse(task.split_rule)
    base = TaskNumbers(base_walltime_s=task.base_walltime)
    numbers = merge_numbers(base, task.merge_walltime, task.merge_walltime_unit)
    for heap in heaps:
        site = grid.sites.get(heap.site)
        room = SiteNumbers(
            max_work_dir_bytes=site.work_dir_mb * MB if site and site.work_dir_mb else None,
            max_time_s=site.max_walltime_s or None if site else None,
        )
        limits = limits_for(rule, numbers, room, merging=True)
        if nothing_more(heap, now) or may_be_full(heap, limits):
            return True
    return False


def merge_task(task_id: int, grid: Grid, now: datetime) -> int:
    """Make the merge jobs of a task, and say on it what its outputs wait for. Returns how many."""
    try:
        made = make_merge_jobs(task_id, grid, now)
    except (UnresolvedPlaceholder, BadTemplate, BadBuildError) as exc:
        _break(task_id, f"the parameters of a merge job cannot be made: {exc}")
        return 0
    _say(task_id, made)
    return made.jobs


def _break(task_id: int, reason: str) -> None:
    try:
        task_moves.move_task(task_id, "tobroken", by=ME, reason=reason, error_dialog=reason)
    except task_moves.IllegalMoveError:
        log.warning("merger.cannot_break", task=task_id, reason=reason)


@transaction.atomic
def _say(task_id: int, made: Made) -> None:
    """Keep on the task which sites its unmerged files wait for, as long as they do."""
    task = Task.objects.select_for_update(skip_locked=True).filter(pk=task_id).first()
    if task is None:
        return
    said = task.error_dialog if (task.error_dialog or "").startswith(WAITS) else None
    note = f"{WAITS}: " + "; ".join(f"{s.site}: {s.detail}" for s in made.skipped) if made.skipped else None
    if note != said and (said or not task.error_dialog):
        Task.objects.filter(pk=task_id).update(error_dialog=note)
