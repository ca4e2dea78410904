"""Whether running a task again would do anything: a task that is done has processed all that it has of its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.db.models import Count, Q, Sum

from jedisite.vocabulary.patterns import PatternError
from jedisite.vocabulary.words import plural, some
from tasks_app.ddm import data_management
from tasks_app.ddm.base import UnknownDatasetError
from tasks_app.domain.accepting import RUN_AGAIN
from tasks_app.domain.states import DatasetStatus, TaskStatus
from tasks_app.inputs import foreseen, input_wishes, preprocessed
from tasks_app.inputs.input_wishes import Feeding
from tasks_app.inputs.makers import reading_parents
from tasks_app.inputs.missing_files import lost_of, tasks_with_missing
from tasks_app.inputs.partial_inputs import with_partial
from tasks_app.inputs.removed_files import all_removed
from tasks_app.inputs.replaced import lost_before
from tasks_app.models import Dataset, Task
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.params.keys import stream_of_ds_for
from tasks_app.params.resubmission import apply_changes, changed_rule
from tasks_app.params.splitrule import SplitRuleError

RETRIED_AT_REST = (TaskStatus.FINISHED, TaskStatus.FAILED, TaskStatus.ABORTED)
RESTORED = (TaskStatus.RUNNING, TaskStatus.SCOUTING)
"""What an exhausted task did before goes on with a retry: no file of it is asked for again."""
MOST_COMPARED = 50_000
"""Inputs with more files are not compared: the task then runs, and finds out."""


def opens_files(task: Task) -> bool:
    """Whether a retry asks for the unprocessed files of the task again: it rests, and does not just go on as it was."""
    return task.status in RETRIED_AT_REST or (task.status == TaskStatus.EXHAUSTED and task.old_status not in RESTORED)


def why_nothing_new(task: Task, changes: Mapping[str, Any]) -> str:
    """Why the task would do nothing if it ran again with these changes, without its beginning; "" when it may do something."""
    if task.status != TaskStatus.DONE:
        return ""
    masters = list(
        Dataset.objects.filter(task=task, type__in=INPUT_TYPES, master_id=None).exclude(status=DatasetStatus.REMOVED)
    )
    if not masters:
        return ""
    stored = input_wishes.read(task, 0)
    try:
        feeding = replace(stored, raw=apply_changes(stored.raw, changes), rule=changed_rule(stored.rule, changes))
    except SplitRuleError:
        return ""
    other = any(stream_of_ds_for(name) is not None and stored.raw.get(name) != value for name, value in changes.items())
    listed = [row for row in masters if row.type == "input"]
    made_up = [row for row in masters if row.type != "input"]
    if other or (made_up and feeding.raw.get("periodic") and feeding.raw != stored.raw):
        return ""
    if any(foreseen.would_get_records(feeding, row) for row in made_up) or _would_get_files(feeding, listed):
        return ""
    why = "has processed every input file that it selects"
    return f"and {why if listed else 'its numbers of files and events give no further work'}: nothing runs"


def not_retried(tasks: Sequence[Task]) -> dict[int, str]:
    """Why a retry of these tasks would be in vain, with their numbers. Up to seven queries, and three for parents."""
    return left_of(tasks) | lost_to(tasks)


def lost_to(tasks: Sequence[Task]) -> dict[int, str]:
    """Of each of these tasks that rests and whose unprocessed files include lost ones, in whose place their maker makes others:
    that a retry would ask for those again, and what helps. One query."""
    resting = {task.id: task for task in tasks if opens_files(task)}
    return (
        {task_id: _lost_in_part(resting[task_id], lfns) for task_id, lfns in lost_before(resting).items()}
        if resting
        else {}
    )


def lost_at_work(task_id: int) -> str:
    """The same of a task at work, which cannot run again before it has ended: the end of an answer, or "". One query."""
    lost = lost_before([task_id]).get(task_id, [])
    then = f"once the task has ended, {RUN_AGAIN} to read what is made in {'its' if len(lost) == 1 else 'their'} place"
    return f"; {len(lost)} of them {'is' if len(lost) == 1 else 'are'} lost ({some(lost)}): {then}" if lost else ""


def _lost_in_part(task: Task, lost: Sequence[str]) -> str:
    """`task 7 is finished, and 1 of its unprocessed files is lost: a.root. A retry would ask for it again; ...`"""
    is_lost, it, its = ("is lost", "it", "its") if len(lost) == 1 else ("are lost", "them", "their")
    says = f"task {task.id} is {task.status}, and {len(lost)} of its unprocessed files {is_lost}: {some(lost)}"
    helps = f"to read what is made in {its} place, and to have all others tried again, {RUN_AGAIN}"
    return f"{says}. A retry would ask for {it} again; {helps}"


def left_of(tasks: Sequence[Task]) -> dict[int, str]:
    """Of each of these tasks that rests and has processed all files that it has of its inputs, or never had any, what
    stands in the way of a retry, with its number. Up to six queries, and three for parents."""
    tasks = [task for task in tasks if task.status in RETRIED_AT_REST]
    if not tasks:
        return {}
    read = Dataset.objects.filter(
        task_id__in=[task.id for task in tasks], type__in=(*INPUT_TYPES, preprocessed.INPUT), master_id=None
    ).exclude(status=DatasetStatus.REMOVED)
    counted = read.values("task_id").annotate(
        all=Sum("files"),
        done=Sum("files_finished"),
        gone=Sum("files_missing"),
        growing=Count("pk", filter=Q(state="mutable")),
    )
    has = {row["task_id"]: row for row in counted}
    short = [task_id for task_id, row in has.items() if row["gone"]]
    partial = with_partial(task for task in tasks if task.status == TaskStatus.FINISHED)
    missing, lost = tasks_with_missing(short), lost_of(read.filter(task_id__in=short, files_missing__gt=0))
    found: dict[int, str] = {}
    whole, empty = [], []
    for task in tasks:
        row = has.get(task.id)
        if task.id in missing or task.id in partial:
            continue  # those are brought from tape once more; of these some events are tried again
        if row and (row["growing"] or row["all"] != row["done"]):
            continue
        if lost[task.id] and row:
            found[task.id] = _lost(task, lost[task.id], others=bool(row["all"]))
        elif row and row["all"]:
            whole.append(task)
        else:
            empty.append(task)
    return found | _without_input(empty) | _processed(whole)


def _without_input(tasks: Sequence[Task]) -> dict[int, str]:
    removed, found = all_removed([task.id for task in tasks]), {}
    for task in tasks:
        how = "was aborted before it had" if task.status == TaskStatus.ABORTED else f"is {task.status} and never had"
        found[task.id] = f"task {task.id} {how} any input; nothing to retry. To have it looked up, {RUN_AGAIN}"
        if task.id in removed:
            found[task.id] = f"task {task.id} is {task.status}: {removed[task.id]}; nothing to retry"
    return found


def _lost(task: Task, lost: int, *, others: bool) -> str:
    whose, them = plural(lost, "input file is", "input files are"), "it" if lost == 1 else "them"
    rest = ", and all others were processed" if others else ""
    says = f"task {task.id} is {task.status}: {whose} lost{rest}; nothing to retry"
    return f"{says}. To have {them} looked up, {RUN_AGAIN}"


def _processed(tasks: Sequence[Task]) -> dict[int, str]:
    """What is said of tasks whose files were all processed, and of their parents. Up to three queries."""
    wanted = {task.parent_id for task in tasks if task.parent_id and task.parent_id != task.id}
    parents = dict(Task.objects.filter(pk__in=wanted).values_list("id", "status")) if wanted else {}
    unread = [task for task in tasks if task.status == TaskStatus.FINISHED and parents.get(task.parent_id or 0)]
    reading = reading_parents(unread) if unread else set()
    found = {}
    for task in tasks:
        says = f"task {task.id} is {task.status}, and all of its files were processed; nothing to retry"
        parent = parents.get(task.parent_id or 0) if task.parent_id != task.id else None
        then = "it is done too" if task.status == TaskStatus.FINISHED and task.id not in reading else RUN_AGAIN
        if parent is None or task.status == TaskStatus.ABORTED:
            found[task.id] = f"{says}. If there is more input by now, {RUN_AGAIN}"
        elif parent == TaskStatus.DONE:
            found[task.id] = f"{says}. Its parent task {task.parent_id} is now done: {RUN_AGAIN}, and it is done too"
        else:
            not_done = f"It is not done because its parent task {task.parent_id} is {parent}"
            found[task.id] = f"{says}. {not_done}; once that is done, {then}"
    return found


def _would_get_files(task: Feeding, masters: Sequence[Dataset]) -> bool:
    """Whether an input may have more for the task: also when that cannot be said in a short time, or it still grows."""
    known = {row.name for row in masters}
    names = sorted({row.container_name or row.name for row in masters})
    try:
        found = [data_management().describe(name) for name in names]
        if any(info.open for info in found) or sum(info.files for info in found) > MOST_COMPARED:
            return True
        parts = {part for name in names if name not in known for part in data_management().constituents(name)}
        if any(data_management().describe(part).files for part in sorted(parts - known)):
            return True
        return any(foreseen.would_get_files(task, row) for row in masters)
    except (UnknownDatasetError, PatternError):
        return True
