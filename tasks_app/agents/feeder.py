"""The feeder: finds the files of a task's inputs and stores them. Growing datasets are looked at again and again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from jedisite.agents.passes import kick, owner
from jedisite.agents.registry import Pass, agent
from jedisite.vocabulary.words import plural
from tasks_app.domain.states import TaskStatus
from tasks_app.generation.nuclei import waits_for_nucleus
from tasks_app.inputs import changes, input_wishes, locality, schedules
from tasks_app.inputs.awaited_inputs import (
    BEGUN,
    GROWING_IN,
    HAS_WORK,
    growing_by,
    inputs_of,
    totals,
    what_is_awaited,
    why_nothing,
)
from tasks_app.inputs.feed import (
    PORTION,
    CannotFeedError,
    NothingToDoError,
    NotThereYetError,
    feed_dataset,
    needs_feeding,
)
from tasks_app.inputs.input_wishes import Feeding
from tasks_app.lifecycle import claims, task_moves
from tasks_app.models import Dataset, Task
from tasks_app.params.dataset_attributes import Attributes
from tasks_app.scouts import scouting

ME = "feeder"
LIMIT = 20
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
PASS_S = 5.0
"""After so long a pass begins no further turn: the next one sees what has been submitted meanwhile."""


@agent("feeder", every="5s", title="Finds the files of input datasets")
def run(limit: int = LIMIT, now: datetime | None = None, portion: int = PORTION) -> Pass:
    """Feed newly defined tasks, then look at datasets that grow. A turn stores about `portion` rows of a task at most."""
    now = now or timezone.now()
    work = partial(feed_task, now=now, portion=portion)
    claimed = claims.claim_tasks(owner(), [TaskStatus.DEFINED], limit, condition=HAS_WORK, agent=ME, begun=BEGUN)
    items = claims.for_each(claimed, work, by=ME, for_s=PASS_S)
    # The wait that the job generator sets while files are too few for a job must not keep more files away.
    growing = claims.claim_tasks(owner(), GROWING_IN, limit, condition=growing_by(now), even_waiting=True, agent=ME)
    items += claims.for_each(growing, work, by=ME, for_s=PASS_S)
    return Pass(items, more=len(claimed) == limit or len(growing) == limit)


def feed_task(task_id: int, fence: int, *, now: datetime, portion: int) -> bool:
    """Feed a portion of what has to be fed of a task; when that was all, move it on if it waited for that.

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
        scouting.release_scouts(task_id, fence, skip=bool(task.raw.get("periodic")))
        if task.status == TaskStatus.DEFINED:
            return _begin_schedule(task, now) if task.raw.get("periodic") else _conclude(task)
    except NotThereYetError as exc:
        return _wait(task, exc)
    except NothingToDoError as exc:
        return _nothing_to_do(task, str(exc))
    except CannotFeedError as exc:
        return _give_up(task, str(exc))
    claims.release_task(task_id, fence)
    news = totals(task_id) != before
    if news:
        kick("job_generator", "post_processor")
    return news


def _go_on_later(task: Feeding) -> bool:
    """It is the turn of other tasks. The rows that are stored stay, and the next turn goes on behind them."""
    if task.status != TaskStatus.DEFINED:
        scouting.release_scouts(task.id, task.fence)
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
    known = sum(d.files for d in masters)
    growing = [d for d in masters if d.state == "mutable"]
    if any(d.files_to_be_used > d.files_used for d in masters) or (known and not growing):
        reason = f"{plural(known, 'input file is', 'input files are')} known"
        to = TaskStatus.ASSIGNING if waits_for_nucleus(Task.objects.get(pk=task.id)) else TaskStatus.READY
        task_moves.move_task(task.id, to, by=ME, reason=reason, fence=task.fence, error_dialog=None)
        return True
    if growing:
        claims.release_task(task.id, task.fence, note=what_is_awaited(task, growing))
        return False
    lost = sum(d.files_missing for d in masters)
    sentence = why_nothing(task, masters) + (f": {plural(lost, 'file is', 'files are')} lost" if lost else "")
    if task.parent_runs:
        raise NotThereYetError(f"{sentence}; the parent task runs")
    if task.rule.flag("AE"):
        raise NothingToDoError(f"{sentence}; the task has nothing to do (allowEmptyInput)")
    raise CannotFeedError(sentence)


@transaction.atomic
def _begin_schedule(task: Feeding, now: datetime) -> bool:
    """The task is ready, though it has no input yet: that is made at the times of its schedule."""
    schedules.begin(task.id, task.raw, now)
    task_moves.move_task(task.id, TaskStatus.READY, by=ME, reason="input is made on a schedule", fence=task.fence)
    kick("periodic")
    return True


def _wait(task: Feeding, exc: NotThereYetError) -> bool:
    if task.status != TaskStatus.DEFINED:
        claims.release_task(task.id, task.fence, note=str(exc))
        return False
    wait = timedelta(seconds=settings.JEDI_PENDING_RETRY_S)
    task_moves.set_aside(
        task.id, task.fence, by=ME, reason=str(exc), wait=wait, frozen=exc.frozen, parent_ran=task.parent_runs
    )
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
