"""Pages on tasks: the list, one task, and commands to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db.models import Exists
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from brokerage_app.models import ResourceType, VerdictRecord
from jedisite.identity.callers import Right, caller_of, needs
from tasks_app.domain import progress
from tasks_app.domain.states import TASK_FINAL, JobStatus
from tasks_app.explaining import goals, time_split
from tasks_app.explaining.stored_verdicts import QueueSkip, by_queue
from tasks_app.failures.error_queries import error_groups
from tasks_app.inputs import removed_files
from tasks_app.inputs.missing_files import missing_of, total
from tasks_app.lifecycle import task_moves
from tasks_app.models import Command, Dataset, JobArchive, OutputTemplate, PeriodicTask, Task, TaskParams
from tasks_app.models.dataset import INPUT_TYPES, UNMERGED_TYPES, DatasetQuerySet
from tasks_app.outcomes.ranges import MOST_RANGES, RangedFiles, files_of_ranges
from tasks_app.outcomes.task_progress import failure_rate_of
from tasks_app.params.splitrule import SplitRule
from tasks_app.transfers import link_use
from tasks_app.transfers.rules.under_way import NOTHING
from tasks_app.web.commands import command_buttons
from tasks_app.web.lists import list_page
from tasks_app.web.lists.misspelt import takes
from tasks_app.web.tasks import page_queries, scout_words, sentences
from tasks_app.web.tasks.folding import latest_lines
from tasks_app.web.tasks.histograms import ENDING
from tasks_app.web.tasks.task_listing import LISTING
from tasks_app.workflows.places_of_tasks import is_of_workflow, place_of_task

REFRESH_S = 5
LOG_LINES = 100
DATASETS = 200
ERRORS = 200


@needs(Right.READ)
@require_safe
def task_list(request: HttpRequest) -> HttpResponse:
    """Tasks, newest first unless the address says another order."""
    return list_page.show(request, LISTING)


def _awaited(verdict: VerdictRecord | None, schedule: PeriodicTask | None) -> str:
    """Why no job is made now: no site takes any, or the next time of the schedule has not come."""
    if verdict is not None and not verdict.chosen:
        return verdict.sentence
    return schedule.awaited() if schedule is not None and schedule.ended is None else ""


@needs(Right.READ)
@require_safe
@takes("unmerged")
def task_page(request: HttpRequest, task_id: int) -> HttpResponse:
    """One task: what it does, how far it is, and what went wrong."""
    histograms = OutputTemplate.objects.filter(task_id=task_id, file_name_template__contains=ENDING)
    tasks = Task.objects.select_related("work_queue", "params", "periodic").annotate(
        has_histograms=Exists(histograms),
        has_removed=Exists(removed_files.commands_on([task_id])),
        goal_due=goals.next_look(),
        is_of_workflow=is_of_workflow(),
    )
    task = get_object_or_404(tasks, pk=task_id)
    every = Dataset.objects.of_task(task_id)
    datasets, unmerged = _datasets(every, "unmerged" in request.GET)
    masters = [
        d for d in (datasets if len(datasets) <= DATASETS else every) if d.type in INPUT_TYPES and d.master_id is None
    ]
    ranged, removed = _ranged(task, masters), removed_files.counts(task_id) if task.has_removed else {}  # type: ignore[attr-defined]
    log = latest_lines(task_id, LOG_LINES)
    verdict = page_queries.latest_verdicts([task_id]).get(task_id)
    schedule: PeriodicTask | None = getattr(task, "periodic", None)
    submitted: TaskParams | None = getattr(task, "params", None)
    matrix = page_queries.job_matrix(task_id)
    missing = missing_of(masters)
    done = replace(
        progress.of_datasets(masters, total(missing.values()).files), removed=sum(removed.get(d.id, 0) for d in masters)
    )
    if done.failed and not matrix.by_status.get(JobStatus.FAILED):
        archived = JobArchive.objects.filter(task_id=task_id, status=JobStatus.FAILED)
        done = replace(done, tried=archived.exists())
    last = log[0] if log else None
    now = timezone.now()
    facts = sentences.TaskFacts(
        status=task.status,
        progress=done,
        grows=next((d.name for d in masters if d.type == "input" and d.state == "mutable"), ""),
        jobs=matrix.by_status,
        sites=matrix.running_sites,
        error_dialog=task.error_dialog or "",
        waits_for=_awaited(verdict, schedule),
        last_reason=last.reason if last is not None and last.status == task.status else "",
        outgoing=link_use.outputs_of(task_id=task_id) if matrix.by_status.get(JobStatus.TRANSFERRING) else NOTHING,
    )
    context: dict[str, Any] = {
        "section": "tasks",
        "task": task,
        "line": sentences.status_line(facts),
        "warned": task_moves.warnings_of(task_id),
        "progress": done,
        "has_ended": task.status in TASK_FINAL,
        # The column is as old as the last forecast, while the numbers of jobs beside it are those of now.
        "failed_percent": task.failure_rate if task.status in TASK_FINAL else failure_rate_of(task_id),
        "datasets": [(dataset, ranged.get(dataset.id), removed.get(dataset.id)) for dataset in datasets[:DATASETS]],
        "unmerged": 0 if "unmerged" in request.GET else unmerged,
        "more_datasets": len(datasets) > DATASETS,
        "matrix": matrix,
        "errors": error_groups(task_id)[:ERRORS],
        "verdict": verdict,
        "skips": _skips(verdict),
        "scouting": scout_words.of_task(task),
        "log": log,
        "goal": goals.goal_of(task, masters, missing, task.goal_due),  # type: ignore[attr-defined]
        "rule_effects": page_queries.rule_effects(task_id),
        "params": submitted.params if submitted is not None else None,
        "schedule": schedule,
        "place": place_of_task(task_id) if task.is_of_workflow else None,  # type: ignore[attr-defined]
        "has_histograms": task.has_histograms,  # type: ignore[attr-defined]
        "commands": Command.objects.filter(task_id=task_id).order_by("-id")[:10],
        "buttons": command_buttons.buttons(task, caller_of(request)),
        "seconds": REFRESH_S,
        "time_split": time_split.of_task(task, now),
        "now": now,
    }
    return render(request, "tasks_app/task_page.html", context)


def _datasets(every: DatasetQuerySet, with_unmerged: bool) -> tuple[list[Dataset], int]:
    """The first DATASETS of a task and one more, and how many of unmerged files it has. One query, or two with very many."""
    found = list(every[: DATASETS + 1])
    unmerged = sum(d.type in UNMERGED_TYPES for d in found)
    if len(found) > DATASETS:
        unmerged = every.filter(type__in=UNMERGED_TYPES).count()
        found = found if with_unmerged else list(every.shown()[: DATASETS + 1])
    return [d for d in found if with_unmerged or d.type not in UNMERGED_TYPES], unmerged


def _skips(verdict: VerdictRecord | None) -> list[QueueSkip]:
    """The queues that got nothing. One query, where sites may be variants of one."""
    if verdict is None or not verdict.skipped:
        return []
    sizes = (
        ResourceType.objects.values_list("name", flat=True) if any("/" in skip[0] for skip in verdict.skipped) else ()
    )
    return by_queue(verdict.skipped, verdict.chosen, set(sizes))


def _ranged(task: Task, masters: list[Dataset]) -> dict[int, RangedFiles]:
    """Files of the inputs that are cut into ranges of events, where that many can be counted at once."""
    rule = SplitRule.parse(task.split_rule)
    if "NE" not in rule and "DY" not in rule:
        return {}
    return files_of_ranges(task.id, [d.id for d in masters if d.type == "input" and 0 < d.files <= MOST_RANGES])
