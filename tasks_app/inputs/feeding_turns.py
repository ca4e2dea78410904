"""One task's turn with the feeder: a portion of its inputs is read, and once all is known the task moves on."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import Count, Q

from jedisite.agents.passes import kick
from jedisite.vocabulary.words import plural
from tasks_app.domain.states import FileStatus, TaskStatus
from tasks_app.inputs import changes, input_wishes, locality, schedules, staging
from tasks_app.inputs.awaited_inputs import inputs_of, totals, what_is_awaited, why_nothing
from tasks_app.inputs.event_inputs import EventsUnknownError
from tasks_app.inputs.feed import (
    CannotFeedError,
    NothingToDoError,
    NotThereYetError,
    feed_dataset,
    needs_feeding,
)
from tasks_app.inputs.input_wishes import Feeding
from tasks_app.inputs.released_files import release_scouts
from tasks_app.inputs.rules.block_warnings import asks_for_blocks, block_warning
from tasks_app.inputs.rules.event_warnings import asks_by_events, event_warning
from tasks_app.inputs.rules.feeding_ends import FeedingEnd, Master, feeding_end
from tasks_app.inputs.rules.staged import STAGES
from tasks_app.lifecycle import claims, task_moves
from tasks_app.lifecycle.nucleus_waits import needs_nucleus
from tasks_app.models import Dataset, File, Task
from tasks_app.models.dataset import LONG_AGO
from tasks_app.params.dataset_attributes import Attributes

ME = "feeder"


def feed_task(task_id: int, fence: int, *, now: datetime, portion: int) -> bool:
    """Feed a portion of a task's input; after the last portion, move the task on if it waited for that.

    Returns whether anything is new.
    """
    # Before anything is read: what changes meanwhile makes the time old again, and the next look comes at once.
    Dataset.objects.filter(task_id=task_id).to_be_looked_at().update(state_check_time=now)
    task = input_wishes.read(Task.objects.get(pk=task_id), fence)
    before = totals(task_id)
    try:
        for dataset in inputs_of(task_id):
            if not needs_feeding(task, dataset):
                continue
            if portion <= 0:
                return _go_on_later(task)
            fed = feed_dataset(task, dataset, now, portion=portion)
            portion -= fed.files
            if fed.cut:
                return _go_on_later(task)
        _keep_consistent(task)
        locality.ask((d.name for d in inputs_of(task_id) if d.type == "input"), now)
        # A task that is made of the same job again and again learns nothing from scouts.
        release_scouts(task_id, fence, skip=bool(task.raw.get("periodic")))
        if task.status == TaskStatus.DEFINED:
            return _begin_schedule(task, now) if task.raw.get("periodic") else _conclude(task)
    except NotThereYetError as exc:
        return _wait(task, exc)
    except NothingToDoError as exc:
        return _nothing_to_do(task, str(exc))
    except (CannotFeedError, EventsUnknownError, staging.NoDiskError) as exc:
        return _give_up(task, str(exc))
    claims.release_task(task_id, fence)
    news = totals(task_id) != before
    if news:
        kick("job_generator", "post_processor")
    return news


def _go_on_later(task: Feeding) -> bool:
    """Let other tasks have their turn. Stored rows stay, and the next turn continues after them."""
    if task.status != TaskStatus.DEFINED:
        release_scouts(task.id, task.fence)
    Dataset.objects.filter(task_id=task.id).to_be_looked_at().update(state_check_time=LONG_AGO)
    known = sum(d.files for d in inputs_of(task.id))
    note = f"its input is read in portions: {plural(known, 'file or range is', 'files or ranges are')} known so far"
    claims.release_task(task.id, task.fence, note=note if task.status == TaskStatus.DEFINED else None)
    kick(ME)
    return True


def _keep_consistent(task: Feeding) -> None:
    consistent = [d.id for d in inputs_of(task.id) if "ic" in Attributes.parse(d.attributes)]
    changes.keep_consistent(task.id, task.fence, consistent)


def _conclude(task: Feeding) -> bool:
    """Whether jobs can be made now: the task is ready; or it waits, with a sentence, for its inputs to grow."""
    masters = [d for d in inputs_of(task.id) if d.master_id is None]
    numbers = [Master(d.files, d.files_to_be_used, d.files_used, d.state == "mutable") for d in masters]
    end = feeding_end(numbers, parent_runs=task.parent_runs, allow_empty=task.rule.flag("AE"))
    if end == FeedingEnd.READY:
        reason = f"{plural(sum(d.files for d in masters), 'input file is', 'input files are')} known"
        reason = task_moves.with_warning(reason, "; ".join(_doubts(task, masters)))
        to = TaskStatus.ASSIGNING if needs_nucleus(Task.objects.get(pk=task.id)) else TaskStatus.READY
        task_moves.move_task(task.id, to, by=ME, reason=reason, fence=task.fence, error_dialog=None)
        return True
    if end == FeedingEnd.AWAITS_FILES:
        growing = [d for d in masters if d.state == "mutable"]
        if staging.is_to_wait(task):
            left = staging.progress(task.id).left
            reason = f"{plural(left, 'file has', 'files have')} to come from tape"
            to = TaskStatus.STAGING
            # What stays until it goes on names no numbers, which change: pages ask for those of now.
            task_moves.move_task(
                task.id, to, by=ME, reason=reason, remember=True, fence=task.fence, error_dialog=STAGES
            )
            return True
        claims.release_task(task.id, task.fence, note=what_is_awaited(task, growing))
        return False
    lost = sum(d.files_missing for d in masters)
    sentence = why_nothing(task, masters) + (f": {plural(lost, 'file is', 'files are')} lost" if lost else "")
    if end == FeedingEnd.PARENT_RUNS:
        raise NotThereYetError(f"{sentence}; the parent task runs")
    if end == FeedingEnd.NOTHING_TO_DO:
        raise NothingToDoError(f"{sentence}; the task has nothing to do (allowEmptyInput)")
    raise CannotFeedError(sentence)


def _doubts(task: Feeding, masters: list[Dataset]) -> list[str]:
    """What the files lack that the task asks for: luminosity blocks, numbers of events. One query where it asks for any."""
    blocks, events = asks_for_blocks(task.rule), asks_by_events(task.rule, task.raw)
    read = [d.id for d in masters if d.type == "input"]
    if not read or not (blocks or events):
        return []
    files = File.objects.filter(task_id=task.id, dataset_id__in=read)
    counted = files.exclude(status__in=[FileStatus.LOST, FileStatus.MISSING, FileStatus.REMOVED]).aggregate(
        all=Count("id"),
        no_block=Count("id", filter=Q(lumi_block=None)),
        no_events=Count("id", filter=Q(events=None) | Q(events=0)),
    )
    files_in_all = counted["all"]
    said = (
        block_warning(blocks, files_in_all, counted["no_block"]),
        event_warning(events, files_in_all, counted["no_events"], task.raw),
    )
    return [one for one in said if one]


@transaction.atomic
def _begin_schedule(task: Feeding, now: datetime) -> bool:
    """The task is ready, though it has no input yet: that is made at the times of its schedule."""
    schedules.begin(task.id, task.raw, now)
    task_moves.move_task(task.id, TaskStatus.READY, by=ME, reason="input is created on a schedule", fence=task.fence)
    kick("periodic")
    return True


def _wait(task: Feeding, exc: NotThereYetError) -> bool:
    if task.status != TaskStatus.DEFINED:
        claims.release_task(task.id, task.fence, note=str(exc))
        return False
    task_moves.set_aside(task.id, task.fence, by=ME, reason=str(exc), frozen=exc.frozen, parent_ran=task.parent_runs)
    return True


def _nothing_to_do(task: Feeding, sentence: str) -> bool:
    if task.status != TaskStatus.DEFINED:
        claims.release_task(task.id, task.fence, note=sentence)
        return False
    task_moves.move_task(task.id, TaskStatus.FINISHING, by=ME, reason=sentence, fence=task.fence, error_dialog=sentence)
    return True


def _give_up(task: Feeding, sentence: str) -> bool:
    if task.status != TaskStatus.DEFINED:
        claims.release_task(task.id, task.fence, note=sentence)
        return False
    task_moves.break_task(task.id, task.fence, by=ME, reason=sentence)
    return True
