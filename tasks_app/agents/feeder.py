"""The feeder: finds the files of a task's inputs and stores them. Growing datasets are looked at again and again."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial

from django.conf import settings
from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from jedisite.agents.passes import kick, owner
from jedisite.agents.registry import Pass, agent
from jedisite.vocabulary.words import plural
from tasks_app.configured import timeout_limits
from tasks_app.ddm import data_management
from tasks_app.ddm.base import UnknownDatasetError
from tasks_app.domain.states import DatasetStatus, TaskStatus
from tasks_app.generation.nuclei import waits_for_nucleus
from tasks_app.inputs import changes, input_wishes, locality, makers, schedules
from tasks_app.inputs.feed import (
    PORTION,
    CannotFeedError,
    NothingToDoError,
    NotThereYetError,
    feed_dataset,
    needs_feeding,
)
from tasks_app.inputs.input_wishes import Feeding
from tasks_app.inputs.rules.bunches import bunch_in_words
from tasks_app.inputs.rules.selection import why_none
from tasks_app.lifecycle import claims, task_moves
from tasks_app.models import Dataset, Task
from tasks_app.models.dataset import INPUT_TYPES, TO_BE_FED
from tasks_app.params import clientwords
from tasks_app.params.dataset_attributes import Attributes
from tasks_app.scouts import scouting

ME = "feeder"
LIMIT = 20
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
LOOKED_AT = 50_000
"""In so many files it is looked up which pattern takes none of them."""
PASS_S = 5.0
"""After so long a pass begins no further turn: the next one sees what has been submitted meanwhile."""
GROWING_IN = (TaskStatus.DEFINED, TaskStatus.READY, TaskStatus.SCOUTING, TaskStatus.RUNNING)
_INPUTS = ", ".join(f"'{kind}'" for kind in INPUT_TYPES)
_TO_BE_FED = ", ".join(f"'{status}'" for status in TO_BE_FED)

_BEGUN = f"""EXISTS (SELECT 1 FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.type IN ({_INPUTS})
            AND d.nfiles > 0 AND (d.status IS NULL OR d.status IN ({_TO_BE_FED})))"""  # noqa: S608 - constants of ours
"""An input has a part of its rows."""

# A defined task that only waits for its datasets to grow is looked at when it is time for that.
_HAS_WORK = f"""
(EXISTS (SELECT 1 FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.type IN ({_INPUTS})
            AND (d.status IS NULL OR d.status IN ({_TO_BE_FED})))
 OR NOT EXISTS (SELECT 1 FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.type = 'input' AND d.state = 'mutable'))
"""  # noqa: S608 - constants of ours


@agent("feeder", every="5s", title="Finds the files of input datasets")
def run(limit: int = LIMIT, now: datetime | None = None, portion: int = PORTION) -> Pass:
    """Feed newly defined tasks, then look at datasets that grow. A turn stores about `portion` rows of a task at most."""
    now = now or timezone.now()
    work = partial(_feed_task, now=now, portion=portion)
    claimed = claims.claim_tasks(owner(), [TaskStatus.DEFINED], limit, condition=_HAS_WORK, agent=ME, begun=_BEGUN)
    items = claims.for_each(claimed, work, by=ME, for_s=PASS_S)
    # The wait that the job generator sets while files are too few for a job must not keep more files away.
    growing = claims.claim_tasks(owner(), GROWING_IN, limit, condition=_growing(now), even_waiting=True, agent=ME)
    items += claims.for_each(growing, work, by=ME, for_s=PASS_S)
    return Pass(items, more=len(claimed) == limit or len(growing) == limit)


def _growing(now: datetime) -> str:
    checked_before = now - timeout_limits.limit("dataset.growing")
    return f"""EXISTS (SELECT 1 FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.state = 'mutable'
                 AND d.type = 'input' AND d.statecehcktime < '{checked_before.isoformat()}'::timestamptz)"""  # noqa: S608


def _inputs_of(task_id: int) -> list[Dataset]:
    """Masters before secondaries: how long a sequence of numbers is may depend on its master."""
    found = Dataset.objects.of_task(task_id).filter(type__in=INPUT_TYPES).exclude(status=DatasetStatus.REMOVED)
    return sorted(found, key=lambda d: (d.master_id is not None, d.list_position, d.id))


def _feed_task(task_id: int, fence: int, *, now: datetime, portion: int) -> bool:
    """Feed a portion of what has to be fed of a task; when that was all, move it on if it waited for that.

    Returns whether anything is new.
    """
    # Before anything is read: what changes meanwhile makes the time old again, and the next look comes at once.
    Dataset.objects.filter(task_id=task_id).to_be_looked_at().update(state_check_time=now)
    task = input_wishes.read(Task.objects.get(pk=task_id), fence)
    before = _totals(task_id)
    try:
        for dataset in _inputs_of(task_id):
            if not needs_feeding(task, dataset):
                continue
            if portion <= 0:
                return _go_on_later(task)
            fed = feed_dataset(task, dataset, now, portion=portion)
            portion -= fed.files
            if fed.cut:
                return _go_on_later(task)
        _keep_consistent(task)
        locality.ask((d.name for d in _inputs_of(task_id) if d.type == "input"), now)
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
    news = _totals(task_id) != before
    if news:
        kick("job_generator", "post_processor")
    return news


def _go_on_later(task: Feeding) -> bool:
    """It is the turn of other tasks. The rows that are stored stay, and the next turn goes on behind them."""
    if task.status != TaskStatus.DEFINED:
        scouting.release_scouts(task.id, task.fence)
    Dataset.objects.filter(task_id=task.id).to_be_looked_at().update(state_check_time=LONG_AGO)
    known = sum(d.files for d in _inputs_of(task.id))
    note = f"its input is read in portions: {plural(known, 'file or range is', 'files or ranges are')} known so far"
    claims.release_task(task.id, task.fence, note=note if task.status == TaskStatus.DEFINED else None)
    kick(ME)
    return True


def _totals(task_id: int) -> tuple[object, ...]:
    """What a look may change: the files known and released, and which datasets still grow."""
    sums = Dataset.objects.filter(task_id=task_id, type__in=INPUT_TYPES).aggregate(
        files=Sum("files"), released=Sum("files_to_be_used"), missing=Sum("files_missing")
    )
    growing = Dataset.objects.filter(task_id=task_id, state="mutable").count()
    return (*sums.values(), growing)


def _keep_consistent(task: Feeding) -> None:
    consistent = [d.id for d in _inputs_of(task.id) if "ic" in Attributes.parse(d.attributes)]
    changes.keep_consistent(task.id, task.fence, consistent)


def _conclude(task: Feeding) -> bool:
    """Whether jobs can be made now: the task is ready; or it waits, with a sentence, for its inputs to grow."""
    masters = [d for d in _inputs_of(task.id) if d.master_id is None]
    known = sum(d.files for d in masters)
    growing = [d for d in masters if d.state == "mutable"]
    if any(d.files_to_be_used > d.files_used for d in masters) or (known and not growing):
        reason = f"{plural(known, 'input file is', 'input files are')} known"
        to = TaskStatus.ASSIGNING if waits_for_nucleus(Task.objects.get(pk=task.id)) else TaskStatus.READY
        task_moves.move_task(task.id, to, by=ME, reason=reason, fence=task.fence, error_dialog=None)
        return True
    if growing:
        claims.release_task(task.id, task.fence, note=_what_is_awaited(task, growing))
        return False
    lost = sum(d.files_missing for d in masters)
    sentence = _nothing_of(task, masters) + (f": {plural(lost, 'file is', 'files are')} lost" if lost else "")
    if task.parent_runs:
        raise NotThereYetError(f"{sentence}; the parent task runs")
    if task.rule.flag("AE"):
        raise NothingToDoError(f"{sentence}; the task has nothing to do (allowEmptyInput)")
    raise CannotFeedError(sentence)


def _nothing_of(task: Feeding, masters: list[Dataset]) -> str:
    """Why there is no input: the dataset has no files, or none that the task takes."""
    for dataset in masters:
        with suppress(UnknownDatasetError):
            if dataset.type == "input" and (there := data_management().describe(dataset.name).files):
                return _nothing_taken(task, dataset, there)
    return "the primary input dataset is empty"


def _nothing_taken(task: Feeding, dataset: Dataset, there: int) -> str:
    """Why a task takes none of the files that are there: a pattern that fits none of them, else all that may be the cause."""
    item = input_wishes.item_of(task, dataset)
    pages = data_management().list_files(dataset.name, LOOKED_AT) if there <= LOOKED_AT else ()
    lfns = [file.lfn for page in pages for file in page]
    given = Attributes.parse(dataset.attributes)
    if not item.get("files"):
        why = why_none(
            [lfns], item.get("include"), item.get("exclude"), dataset.name, given.offset, clientwords.quoting(task.raw)
        )
        if why:
            return "; ".join(f"{clientwords.option_of_input(item, key, task.raw)} {said}" for key, said in why)
    whose = f"of the {there} files of {dataset.name} none is" if there > 1 else f"the file of {dataset.name} is not"
    such = f"; there is, for example, {lfns[0]}" if there > 1 and lfns else ""
    keys = [
        key
        for key in ("include", "exclude", "files", "offset")
        if item.get(key) not in (None, "", 0, clientwords.ADDED)
    ]
    keys += ["skipFilesUsedBy"] if task.raw.get("skipFilesUsedBy") else []
    said = ", ".join(clientwords.option_of_input(item, key, task.raw) for key in keys)
    return f"{whose} taken by what the task says of it{f' ({said})' if said else ''}{such}"


@transaction.atomic
def _begin_schedule(task: Feeding, now: datetime) -> bool:
    """The task is ready, though it has no input yet: that is made at the times of its schedule."""
    schedules.begin(task.id, task.raw, now)
    task_moves.move_task(task.id, TaskStatus.READY, by=ME, reason="input is made on a schedule", fence=task.fence)
    kick("periodic")
    return True


def _what_is_awaited(task: Feeding, growing: list[Dataset]) -> str:
    dataset = growing[0]
    waiting = dataset.files - dataset.files_to_be_used
    if waiting:
        whose = f"{plural(waiting, 'new file')} of {dataset.name}"
        waits = "waits" if waiting == 1 else "wait"
        if task.status == TaskStatus.SCOUTING:
            return f"{whose} {waits} until the scout jobs are judged"
        enough = bunch_in_words(task.rule, to_scout=task.rule.get_int("US") == 2)
        maker = makers.still_at_it([dataset.name], task.id).get(dataset.name)
        over = f"task {maker}, which makes the dataset, has ended" if maker else "the dataset is closed"
        return f"{whose} {waits} until there are {enough}, or until {over}"
    if dataset.files:
        files, are = ("only file", "is") if dataset.files == 1 else (f"{dataset.files} files", "are")
        return f"the {files} that {dataset.name} has so far {are} processed; it may still get more"
    return f"{dataset.name} has no files yet; it may still get some"


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
