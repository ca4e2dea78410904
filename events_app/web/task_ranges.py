"""The tab of a task with event service: its ranges, file by file, and who takes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.db.models import F, QuerySet, Sum
from django.db.models.fields.tuple_lookups import TupleGreaterThan
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from events_app.jumbo.jumbo_turns import why_none_of
from events_app.jumbo.watched_tasks import ME as WATCH_DOG
from events_app.reading import consumer_counts, range_counts
from events_app.reading.range_counts import BINS, FileCounts
from events_app.rules.range_standing import LIVE, Piece, map_of
from events_app.web.range_listing import TAB, Number, listed
from jedisite.identity.callers import Right, needs
from tasks_app.domain.jumbo_use import UseJumbo, read_use
from tasks_app.domain.states import FileStatus
from tasks_app.models import Dataset, File, Task, TaskStatusLog
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.params.splitrule import SplitRule
from tasks_app.web.lists.misspelt import a_number, one_of, takes

FILES: Final = 25
REFRESH_S: Final = 30
SHOWN: Final = tuple(
    str(status)
    for status in (FileStatus.READY, FileStatus.RUNNING, FileStatus.FINISHED, FileStatus.PARTIAL, FileStatus.FAILED)
)


@dataclass(frozen=True, slots=True)
class FileRow:
    """A file with its ranges; `found` is None while it has none."""

    file: File
    found: FileCounts | None
    strip: list[Piece]
    map: list[Piece]
    numbers: list[Number]


@needs(Right.READ)
@require_safe
@takes(after=a_number(), files=one_of(SHOWN))
def task_ranges(request: HttpRequest, task_id: int) -> HttpResponse:
    """How far the ranges of a task are. Six statements of bounded length, one more behind the first files, and one where the task
    has jumbo jobs."""
    task = get_object_or_404(Task, pk=task_id)
    now = timezone.now()
    counted = range_counts.of_task(task_id)
    shown = request.GET.get("files", "")
    after = int(request.GET.get("after") or 0)
    files = list(_files(task_id, shown, after)[: FILES + 1])
    found = consumer_counts.at_work(task_id)
    masters = _masters(task_id)
    context: dict[str, Any] = {
        "section": "tasks",
        "task": task,
        "tab": TAB,
        "tab_title": "Events",
        "counts": counted.counts,
        "numbers": listed(counted.counts, task_id),
        "attempts": counted.attempts,
        "is_capped": counted.is_capped,
        "most": range_counts.MOST_OF_TASK,
        "failed_files": masters["failed"],
        "jumbo": read_use(task.use_jumbo),
        "jumbo_why": _why_no_jumbo(task),
        "jumbo_wanted": SplitRule.parse(task.split_rule or "").get_int("NJ") or 0,
        "waiting_files": masters["waiting"],
        "files": _rows(task_id, files[:FILES]),
        "more_files": files[FILES - 1].id if len(files) > FILES else None,
        "after": after,
        "shown": shown,
        "choices": SHOWN,
        "bins": BINS,
        "most_of_file": range_counts.MOST_OF_FILE,
        "legend": LIVE,
        "consumers": [(one, one.rate(now)) for one in found[: consumer_counts.MOST]],
        "more_consumers": len(found) > consumer_counts.MOST,
        "most_consumers": consumer_counts.MOST,
        "seconds": REFRESH_S,
        "now": now,
    }
    return render(request, "events_app/task_ranges.html", context)


def _why_no_jumbo(task: Task) -> str:
    """What the watch dog said when it switched the jumbo jobs of a task off, or why none could be made; "" otherwise."""
    use = read_use(task.use_jumbo)
    if use is not UseJumbo.DISABLED:
        return why_none_of(task.id) if use is not None else ""
    said = TaskStatusLog.objects.filter(task_id=task.id, by=WATCH_DOG).order_by("-at", "-id")
    return said.values_list("reason", flat=True).first() or ""


def _masters(task_id: int) -> dict[str, int]:
    """How many input files have failed for good, so that no ranges of theirs count, and how many wait for jumbo jobs."""
    masters = Dataset.objects.filter(task_id=task_id, type__in=INPUT_TYPES, master_id=None)
    return masters.aggregate(failed=Sum("files_failed", default=0), waiting=Sum("files_waiting", default=0))


def _files(task_id: int, shown: str, after: int) -> QuerySet[File]:
    """The input files that jobs are made for, behind that of a number: dataset by dataset, the order of the primary key."""
    masters = Dataset.objects.filter(task_id=task_id, type__in=INPUT_TYPES, master_id=None).values("id")
    files = File.objects.filter(task_id=task_id, dataset_id__in=masters).as_seen().order_by("dataset_id", "id")
    last = File.objects.filter(task_id=task_id, id=after).first() if after else None
    if last is not None:
        files = files.filter(TupleGreaterThan((F("dataset_id"), F("id")), (last.dataset_id, last.id)))
    return files.seen_in([shown]) if shown else files


def _rows(task_id: int, files: list[File]) -> list[FileRow]:
    found = range_counts.of_files(task_id, [file.id for file in files])
    rows = []
    for file in files:
        one = found.get(file.id)
        numbers = listed(one.counts, task_id, file=file.id) if one else []
        rows.append(
            FileRow(file, one, one.counts.pieces() if one else [], map_of(one.cells, BINS) if one else [], numbers)
        )
    return rows
