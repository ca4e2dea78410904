"""Running a task again: retry, incremental execution, and the children that follow their parent."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from jedisite.agents.passes import kick
from jedisite.vocabulary.words import plural
from tasks_app.commands.handlers import Order, carries_out, increase_attempts
from tasks_app.ddm.base import ForeignDatasetError
from tasks_app.domain import attempt_refusal_codes
from tasks_app.domain.states import TASK_FINAL, DatasetStatus, TaskStatus
from tasks_app.domain.task_commands import MORE_ATTEMPTS_IN, TaskCommand
from tasks_app.inputs import nothing_new
from tasks_app.inputs.released_files import release_scouts_again
from tasks_app.lifecycle import attempts, dataset_moves, file_moves, job_hooks, serials, task_moves
from tasks_app.models import Command, Dataset, RetryNote, Task, TaskParams
from tasks_app.models.command import FOLLOWS
from tasks_app.models.dataset import INPUT_TYPES, LONG_AGO, MADE_TYPES, OUTPUT_TYPES
from tasks_app.outcomes import partial_files
from tasks_app.params.command_parameters import subjobs_in
from tasks_app.submission import command_queue, limited_retries
from tasks_app.submission.storing import register_outputs

MOST_KEPT = 3
NOT_FED = (DatasetStatus.REMOVED, DatasetStatus.DEFINED, DatasetStatus.REGISTERED)
LEFT_ALONE = (TaskStatus.ABORTING, TaskStatus.TOABORT, TaskStatus.TOBROKEN, TaskStatus.FINISHING, TaskStatus.PASSED)
_HOPELESS = (
    TaskStatus.ABORTED,
    TaskStatus.BROKEN,
    TaskStatus.FAILED,
    TaskStatus.TOABORT,
    TaskStatus.TOBROKEN,
    TaskStatus.ABORTING,
)


@carries_out(TaskCommand.RETRY, "retried")
def retry(task: Task, order: Order) -> str:
    """Try again what was not processed. Raises CommandRefusedError when there is nothing of the kind."""
    if task.status in MORE_ATTEMPTS_IN:
        said = increase_attempts(task, order)
        job_hooks.task_is_tried_again(task, discard=order.given("discard"))
        return said
    if task.status == TaskStatus.EXHAUSTED and task.old_status in nothing_new.RESTORED:
        return _restore(task, order)
    if lost := nothing_new.lost_to([task]):
        raise command_queue.CommandRefusedError(lost[task.id])
    limit = None if order.given("transcend") else limited_retries.reached([task]).get(task.id)
    if limit is not None and limit.to is None:
        raise command_queue.CommandRefusedError(limited_retries.refused(task.id, limit))
    if task.status != TaskStatus.TORETRY:
        task_moves.move_task(task.id, TaskStatus.TORETRY, by=order.by, reason=order.why, remember=True)
    if limit is not None:
        sentence = f"not tried again: {limit.sentence}"
        task_moves.move_task(
            task.id,
            limit.to or TaskStatus.EXHAUSTED,
            by=order.by,
            reason=sentence,
            old_status=None,
            error_dialog=sentence,
        )
        return sentence
    if order.given("staged"):
        file_moves.release_staging(task.id)
    subjobs = subjobs_in(order.parameters)
    partial_files.process_again(task, subjobs)
    left = file_moves.reopen(task.id, incremental=False, groups=subjobs)
    if not left.files and not left.growing:
        said = attempts.none_of_these(task.id) if subjobs is not None else _nothing_left(task.id)
        raise command_queue.CommandRefusedError(said)
    job_hooks.task_is_tried_again(task, discard=order.given("discard"))
    release_scouts_again(task.id)
    _open_outputs(task)
    sentence = f"{plural(left.files, 'file is', 'files are')} tried again; {_more_for(task.id)}"
    task_moves.move_task(
        task.id, TaskStatus.READY, by=order.by, reason=sentence, **_fresh(task, keep=order.given("keep"))
    )
    return sentence + _tell_children(task.id, order)


def _nothing_left(task_id: int) -> str:
    found = Dataset.objects.filter(task_id=task_id, type__in=INPUT_TYPES, files__gt=0).exists()
    return f"task {task_id} has no file to try again: {'all were processed' if found else 'none was ever found'}"


def _restore(task: Task, order: Order) -> str:
    """A task that was exhausted while its jobs ran goes on as it was; no file is touched."""
    back = task.old_status or TaskStatus.RUNNING
    if back == TaskStatus.SCOUTING and task.walltime_unit:
        back = TaskStatus.RUNNING  # what scouts were to measure is known
    task_moves.move_task(
        task.id, back, by=order.by, reason=order.why, old_status=None, frozen_time=None, error_dialog=None
    )
    return f"it is {back} again"


@carries_out(TaskCommand.INCEXEC, "run again")
def incexec(task: Task, order: Order) -> str:
    """Run a task again with changes, after its input was looked up again."""
    parent = order.parameters.get(FOLLOWS)
    if parent and not _starts_again(task, parent):
        return _grow(task, parent)
    if not parent and (nothing := nothing_new.why_nothing_new(task, order.parameters.get("changes") or {})):
        raise command_queue.CommandRefusedError(f"task {task.id} is done, {nothing}")
    kept = _change(task, order)
    if task.status != TaskStatus.TOINCEXEC:
        task_moves.move_task(task.id, TaskStatus.TOINCEXEC, by=order.by, reason=order.why)
    file_moves.reopen(task.id, incremental=True)
    if parent:
        _grow_inputs(task, parent)
    if order.given("staged"):
        file_moves.release_staging(task.id)
    _open_outputs(task)
    columns = _fresh(task, keep=order.given("keep"))
    task_moves.move_task(task.id, TaskStatus.REREFINE, by=order.by, reason="its parameters are read again", **columns)
    said = f"its parameters are read and its input is looked up again; {_more_for(task.id)}{kept}"
    return said + _tell_children(task.id, order)


def _more_for(task_id: int) -> str:
    said = f"each file without an attempt left gets {attempts.more([attempts.added_to(task_id)])}"
    codes = (attempt_refusal_codes.RETRY_LIMITED, attempt_refusal_codes.RETRY_NONE)
    limiting = RetryNote.objects.filter(task_id=task_id, code__in=codes, applied=True).order_by("id").last()
    return said + (f", or fewer where a retry rule limits them: {limiting.detail}" if limiting else "")


def _change(task: Task, order: Order) -> str:
    """Store the changed parameters. Returns what of those that stay would be refused by now, as the end of an answer. Raises
    CommandRefusedError when the changes do not go with the others."""
    changes = order.parameters.get("changes") or {}
    stored = TaskParams.objects.get(pk=task.id)
    changed, kept = command_queue.changed_parameters(task, stored.params, changes)
    if changes:
        stored.params = changed
        stored.save(update_fields=["params"])
    said = " ".join(kept[:MOST_KEPT]).rstrip(".")
    return (
        f"; it keeps what it was submitted with, though a new task would be refused with that: {said}" if kept else ""
    )


def _fresh(task: Task, *, keep: bool) -> dict[str, Any]:
    """Columns of a task that starts again."""
    columns: dict[str, Any] = {
        "attempt": (task.attempt or 0) + 1,
        "start_time": None,
        "end_time": None,
        "frozen_time": None,
        "error_dialog": None,
        "old_status": None,
        "progress": None,
    }
    return columns if keep else {**columns, "current_priority": task.task_priority}


def _open_outputs(task: Task) -> None:
    """Outputs take files again. Raises CommandRefusedError when another task has taken over their names."""
    task_id = task.id
    try:
        serials.go_on_after_others(task)
    except serials.NamesTakenError as exc:
        raise command_queue.CommandRefusedError(f"task {task_id} cannot run again now: {exc}") from exc
    outputs = Dataset.objects.filter(task_id=task_id, type__in=MADE_TYPES)
    dataset_moves.move(outputs, DatasetStatus.READY, state="open")
    try:
        # Those that were deleted when the task ended are in no container any more.
        register_outputs(task, outputs.order_by("name", "id"))
    except ForeignDatasetError as exc:
        raise command_queue.CommandRefusedError(f"task {task_id} cannot run again: {exc}") from exc


def _tell_children(task_id: int, order: Order) -> str:
    """Children run again after their parent, each by a command of its own. Aborted, broken and failed ones are left alone,
    and so are all with the qualifier `sole`."""
    if order.given("sole"):
        return ""
    children = Task.objects.filter(parent_id=task_id).exclude(pk=task_id).exclude(status__in=_HOPELESS).order_by("id")
    rows = [
        Command(
            task_id=child,
            name=TaskCommand.INCEXEC,
            owner=order.by,
            comment=f"its parent task {task_id} runs again",
            parameters={FOLLOWS: task_id},
        )
        for child in children.values_list("id", flat=True)
    ]
    Command.objects.bulk_create(rows)
    kick("commando")
    return f"; {plural(len(rows), 'child task follows', 'child tasks follow')}" if rows else ""


def _reads(task: Task, parent_id: int) -> QuerySet[Dataset]:
    """The inputs of a task that are outputs of another."""
    outputs = Dataset.objects.filter(task_id=parent_id, type__in=OUTPUT_TYPES).values_list("name", flat=True)
    return Dataset.objects.filter(task=task, type__in=INPUT_TYPES, name__in=list(outputs)).exclude(status__in=NOT_FED)


def _starts_again(task: Task, parent_id: int) -> bool:
    """Whether a child has come to rest and reads what its parent makes."""
    rests = task.status in (TaskStatus.DONE, TaskStatus.FINISHED, TaskStatus.EXHAUSTED, TaskStatus.TOINCEXEC)
    return rests and _reads(task, parent_id).exists()


def _grow(task: Task, parent_id: int) -> str:
    """A child that is at work goes on taking what its parent makes; one that has no input of it is left alone."""
    if task.status in TASK_FINAL or task.status in LEFT_ALONE:
        return f"left alone: it is {task.status}"
    count = _grow_inputs(task, parent_id)
    if not count:
        return "it follows its parent anyway"
    return f"{plural(count, 'input grows', 'inputs grow')} with the outputs of task {parent_id}"


def _grow_inputs(task: Task, parent_id: int) -> int:
    """Inputs that were fed and are outputs of the parent may get files again. Returns how many those are."""
    ids = list(_reads(task, parent_id).order_by("id").select_for_update().values_list("id", flat=True))
    Dataset.objects.filter(pk__in=ids).update(state="mutable", state_check_time=LONG_AGO)
    kick("feeder")
    return len(ids)
