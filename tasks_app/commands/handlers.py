"""Commands on a task at work: kill, finish, pause, resume, skip scouts, more attempts, release, reassign.

Each action takes the locked task and its command, in one transaction, and returns a sentence on what it did. Actions of
commands that take time may be called again on a task that is in the midst of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from jedisite.vocabulary.words import plural
from tasks_app.domain.accepting import rests_in
from tasks_app.domain.killcodes import Kill
from tasks_app.domain.states import JobStatus, TaskStatus
from tasks_app.domain.task_commands import TaskCommand
from tasks_app.generation import nuclei
from tasks_app.inputs import nothing_new
from tasks_app.lifecycle import attempts, file_moves, file_removal, nucleus_waits, task_moves
from tasks_app.lifecycle.job_moves import move_jobs_of_task
from tasks_app.models import Dataset, Task, TaskParams
from tasks_app.models.dataset import LONG_AGO
from tasks_app.models.task import SCOUTS_SKIPPED
from tasks_app.outcomes.books import with_no_result
from tasks_app.outcomes.endings import end_jobs
from tasks_app.params.command_parameters import HARD, NO_KILL, TARGETS, named_files, subjobs_in
from tasks_app.params.splitrule import SplitRule
from tasks_app.submission import command_queue

NO_RESULT: Final = "no input has been processed yet: the task will end failed unless one of its jobs still finishes"


@dataclass(frozen=True, slots=True)
class Order:
    """A command to be carried out: its name, who gave it and why, and its parameters."""

    name: str
    by: str
    comment: str
    parameters: dict[str, Any] = field(default_factory=dict)
    now: datetime | None = None

    @property
    def why(self) -> str:
        return self.log_sentence(DONE.get(self.name, self.name))

    def log_sentence(self, done: str) -> str:
        """The sentence on what was done, by whom and why."""
        return f"{done} by {self.by}" + (f": {self.comment}" if self.comment else "")

    def given(self, name: str) -> bool:
        return bool(self.parameters.get(name))


Handler = Callable[[Task, Order], str]
HANDLERS: Final[dict[TaskCommand, Handler]] = {}
DONE: Final[dict[str, str]] = {}
"""What a task is after a command, before who gave it: "killed by ada"."""


def carries_out(command: TaskCommand, done: str = "") -> Callable[[Handler], Handler]:
    """Declare the function that carries out a command, and what the task is afterwards, for its log."""

    def declare(handler: Handler) -> Handler:
        HANDLERS[command] = handler
        DONE[command] = done or command
        return handler

    return declare


@carries_out(TaskCommand.KILL, "killed")
def kill(task: Task, order: Order) -> str:
    if task.status != TaskStatus.ABORTING:
        _enter(task, TaskStatus.ABORTING, order)
    return end_jobs(task.id, by=order.by, reason=order.log_sentence("the task was killed"), code=Kill.JEDI)


@carries_out(TaskCommand.FINISH, "finished early")
def finish(task: Task, order: Order) -> str:
    if task.status != TaskStatus.FINISHING:
        # Else the forced end would make a task that misses its goal fail.
        rule = str(SplitRule.parse(task.split_rule).without("FG")) if task.split_rule else task.split_rule
        _enter(task, TaskStatus.FINISHING, order, split_rule=rule)
    ended = end_jobs(
        task.id,
        by=order.by,
        reason=order.log_sentence("the task was finished early"),
        running_too=not order.given("soft"),
        code=Kill.JEDI_FORCE,
        keep_unmerged=True,
    )
    return ended + (f"; {NO_RESULT}" if with_no_result([task]) else "")


def _enter(task: Task, status: str, order: Order, **columns: Any) -> None:
    task_moves.move_task(
        task.id, status, by=order.by, reason=order.why, remember=True, error_dialog=order.why, **columns
    )


@carries_out(TaskCommand.PAUSE)
def pause(task: Task, order: Order) -> str:
    # What a pending or throttled task returns to is kept.
    rests = rests_in(task.status, task.old_status)
    task_moves.move_task(task.id, TaskStatus.PAUSED, by=order.by, reason=order.log_sentence("paused"), old_status=rests)
    held = move_jobs_of_task(
        task.id, JobStatus.ACTIVATED, JobStatus.THROTTLED, by=order.by, reason=order.log_sentence("the task was paused")
    )
    return f"{plural(held, 'queued job is', 'queued jobs are')} held back"


@carries_out(TaskCommand.RESUME, "resumed")
def resume(task: Task, order: Order) -> str:
    if task.status == TaskStatus.STAGING:
        task_moves.move_task(task.id, TaskStatus.STAGED, by=order.by, reason=order.why, old_status=None)
        return "goes on"
    back = task.old_status or TaskStatus.READY
    task_moves.move_task(task.id, back, by=order.by, reason=order.why, old_status=None)
    queued = move_jobs_of_task(
        task.id,
        JobStatus.THROTTLED,
        JobStatus.ACTIVATED,
        by=order.by,
        reason=order.log_sentence("the task was resumed"),
    )
    return f"{plural(queued, 'job is', 'jobs are')} queued again"


@carries_out(TaskCommand.AVALANCHE, "scouts skipped")
def avalanche(task: Task, order: Order) -> str:
    """Mark the task: the post-processor passes it on as if its scouts had done well."""
    Task.objects.filter(pk=task.id).update(walltime_unit=SCOUTS_SKIPPED)
    task_moves.note_on_task(task.id, by=order.by, reason=order.why)
    task_moves.wake_task(task.id, "post_processor")
    return "the task no longer waits for its scouts"


@carries_out(TaskCommand.INCREASE_ATTEMPTS, "files got more attempts")
def increase_attempts(task: Task, order: Order) -> str:
    more = int(order.parameters.get("attempts") or attempts.added_to(task.id))
    subjobs = subjobs_in(order.parameters)
    opened = file_moves.give_attempts(task.id, more, subjobs)
    if not opened:
        raise command_queue.CommandRefusedError(attempts.none_used_up(task.id, subjobs))
    each = " each" if opened > 1 else ""
    sentence = f"{plural(opened, 'file is', 'files are')} tried again, with {plural(more, 'more attempt')}{each}"
    sentence += nothing_new.lost_at_work(task.id)
    task_moves.note_on_task(task.id, by=order.by, reason=f"{order.why}; {sentence}")
    task_moves.wake_task(task.id, "job_generator")
    return sentence


@carries_out(TaskCommand.REMOVE_FILES, "files removed")
def remove_files(task: Task, order: Order) -> str:
    done = file_removal.remove(task.id, named_files(order.parameters))
    sentence = f"{plural(done.files, 'file is', 'files are')} removed from its input"
    sentence += f"; {done.why_some_stay}" if done.stay else ""
    task_moves.note_on_task(task.id, by=order.by, reason=f"{order.why}; {sentence}")
    task_moves.wake_task(task.id, "job_generator", "post_processor")
    return sentence


@carries_out(TaskCommand.RELEASE, "released")
def release(task: Task, order: Order) -> str:
    count, held = file_moves.release_staging(task.id), SplitRule.parse(task.split_rule).flag("WH")
    done = [plural(count, "file is used as it is", "files are used as they are")] if count else []
    if held:
        _end_holdup(task)
        done.append("its workflow holds it no longer")
    task_moves.note_on_task(task.id, by=order.by, reason=f"{order.why}; {' and '.join(done)}")
    task_moves.wake_task(task.id, "feeder")
    return " and ".join(done)


def _end_holdup(task: Task) -> None:
    """The input counts as complete when the feeder looks next, which is at once; and so when the task is refined again."""
    Task.objects.filter(pk=task.id).update(split_rule=str(SplitRule.parse(task.split_rule).without("WH")))
    stored = TaskParams.objects.get(pk=task.id)
    stored.params = {key: value for key, value in stored.params.items() if key != "workflowHoldup"}
    stored.save(update_fields=["params"])
    Dataset.objects.filter(task_id=task.id, state="mutable").update(state_check_time=LONG_AGO)


@carries_out(TaskCommand.REASSIGN, "reassigned")
def reassign(task: Task, order: Order) -> str:
    """End the jobs by the mode. When they have ended, `complete_reassign` gives the task its new place."""
    if task.status not in (TaskStatus.TOREASSIGN, TaskStatus.REASSIGNING):
        rests = rests_in(task.status, task.old_status)
        task_moves.move_task(
            task.id, TaskStatus.TOREASSIGN, by=order.by, reason=order.why, old_status=rests, error_dialog=order.why
        )
    mode = order.parameters.get("mode") or HARD
    if mode == NO_KILL:
        return "its jobs continue where they are"
    return end_jobs(
        task.id,
        by=order.by,
        reason=order.log_sentence("the task was reassigned"),
        running_too=mode == HARD,
        code=Kill.REASSIGN,
    )


def complete_reassign(task: Task, order: Order, fence: int) -> str:
    """Give a task whose jobs were ended its new site, nucleus or cloud, and let it go on."""
    columns: dict[str, Any] = {name: order.parameters[name] for name in TARGETS if order.parameters.get(name)}
    place = ", ".join(f"{name} {value}" for name, value in columns.items()) or "anywhere"
    if "cloud" in columns:
        columns["nucleus"] = None  # chosen anew in the cloud
    if "nucleus" in columns:
        nuclei.forget_places(task.id)
    old = task.old_status or TaskStatus.READY
    more: dict[str, Any] = {"old_status": None, "error_dialog": None}
    if not order.given("back") and task.status != TaskStatus.REASSIGNING:
        task = task_moves.move_task(
            task.id, TaskStatus.REASSIGNING, by=order.by, reason=f"reassigned to {place}", fence=fence
        )
        fence = task.fence
    for name, value in columns.items():
        setattr(task, name, value)
    to, reason = _next_of(old), "goes on"
    if order.given("back"):
        to, reason = old, f"back, reassigned to {place}"
    if to in _AFTER_ASSIGNING and nucleus_waits.needs_nucleus(task):
        to, more["old_status"] = TaskStatus.ASSIGNING, to
    task_moves.move_task(task.id, to, by=order.by, reason=reason, fence=fence, **(columns | more))
    return place


_AFTER_ASSIGNING = (TaskStatus.ASSIGNING, TaskStatus.READY, *nuclei.AT_WORK)


def _next_of(old: str) -> str:
    """What a reassigned task does next: what had no jobs yet, or works, goes on from where it was."""
    return old if old in (TaskStatus.DEFINED, *nuclei.AT_WORK) else TaskStatus.READY
