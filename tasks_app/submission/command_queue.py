"""Commands that wait for task commando: which a task refuses and why, and how they are queued."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db import transaction

from jedisite import audit
from jedisite.agents.passes import kick
from tasks_app.domain import accepting
from tasks_app.domain.task_commands import MORE_ATTEMPTS_IN, TaskCommand
from tasks_app.inputs import nothing_new
from tasks_app.lifecycle import attempts, file_moves, file_removal
from tasks_app.lifecycle.standing import standing_of
from tasks_app.models import Command, Task, TaskParams
from tasks_app.params import event_service
from tasks_app.params.command_parameters import named_files, subjobs_in
from tasks_app.params.faults import Faults, ParamErrors
from tasks_app.params.resubmission import apply_changes
from tasks_app.params.splitrule import SplitRule
from tasks_app.submission import known_names, limited_retries, sandboxes
from tasks_app.submission.rehearsal import check_changed

NEW_CODE: Final = "fixedSandbox"


class CommandRefusedError(ValueError):
    """The task's state does not accept the command; the sentence names both."""


class NothingNewError(CommandRefusedError):
    """A task that is done would find no file that it has not had."""


@transaction.atomic
def give_command(
    task_id: int, command: str, *, by: str, reason: str = "", parameters: dict[str, Any] | None = None
) -> Command:
    """Queue a command for a task.

    Raises CommandRefusedError when it does not accept it, it would do nothing, or its jobs cannot get their code.
    """
    task = Task.objects.select_for_update().get(pk=task_id)
    waiting = Command.objects.waiting_of([task_id])
    _raise_first(_refusals([task], command, waiting, parameters or {}))
    changes = (parameters or {}).get("changes") or {}
    if command == TaskCommand.INCEXEC and not waiting:
        _check_changes([task], changes)
    if command == TaskCommand.INCEXEC and (nothing := nothing_new.why_nothing_new(task, changes)):
        raise NothingNewError(f"task {task_id} is done, {nothing}")
    if command in (TaskCommand.RETRY, TaskCommand.INCEXEC):
        _check_code(task, changes)
    (row,) = _queue([task], command, by, reason, parameters)
    return row


def queue_commands(
    tasks: Sequence[Task],
    command: str,
    *,
    by: str,
    reason: str,
    parameters: dict[str, Any] | None = None,
    act: Mapping[str, Any] | None = None,
) -> list[Command]:
    """Queue a command for each of several tasks, whose rows the caller's transaction has locked.

    `act` is noted in the audit trail beside the parameters. Raises CommandRefusedError, and writes nothing, when one
    does not accept it or has nothing to retry, its jobs cannot get their code, or no file lacks the attempts it is to give.
    """
    waiting = Command.objects.waiting_of([task.id for task in tasks])
    _raise_first(refusals(tasks, command, waiting, parameters or {}))
    changes = (parameters or {}).get("changes") or {}
    if changes:
        _check_changes([task for task in tasks if task.id not in waiting], changes)
    for task in tasks if NEW_CODE in changes else ():
        _check_code(task, changes)
    return _queue(tasks, command, by, reason, parameters, act)


def _raise_first(refused: Mapping[int, str]) -> None:
    if refused:
        raise CommandRefusedError(refused[min(refused)])


def refusals(
    tasks: Sequence[Task],
    command: str,
    waiting: Mapping[int, Sequence[str]],
    parameters: Mapping[str, Any] | None = None,
) -> dict[int, str]:
    """Why each of those of the tasks refuses the command that does, or would have nothing to do for it. Up to twelve queries.

    Commands of a task are obeyed in their order: what counts is its state after those that wait. Without `parameters` it
    is not known yet whether a task that is to run again gets other code.
    """
    refused = _refusals(tasks, command, waiting, parameters)
    if command == TaskCommand.INCEXEC and parameters is None:
        return refused
    takes = [task for task in tasks if task.id not in refused and task.id not in waiting]
    return refused | _without_code(takes, command, (parameters or {}).get("changes") or {})


def _without_code(tasks: Sequence[Task], command: str, changes: Mapping[str, Any]) -> dict[int, str]:
    if command not in (TaskCommand.RETRY, TaskCommand.INCEXEC) or NEW_CODE in changes:
        return {}
    gone = sandboxes.gone(task.id for task in tasks)
    return {task_id: f"task {task_id} cannot run again: {no}" for task_id, no in gone.items()}


def _check_code(task: Task, changes: Mapping[str, Any]) -> None:
    """Raise CommandRefusedError unless its jobs can get their code; a new sandbox is noted."""
    stored = TaskParams.objects.filter(pk=task.id).values_list("params", flat=True).first()
    if no := sandboxes.refusal_again(task.id, task.user, stored or {}, changes):
        raise CommandRefusedError(f"task {task.id} cannot run again: {no}")


def _refusals(
    tasks: Sequence[Task], command: str, waiting: Mapping[int, Sequence[str]], parameters: Mapping[str, Any] | None
) -> dict[int, str]:
    refused: dict[int, str] = {}
    for task in tasks:
        if says := accepting.refusal(standing_of(task, waiting.get(task.id, ())), command):
            refused[task.id] = says
    takes = [task for task in tasks if task.id not in refused]
    if command == TaskCommand.RETRY:
        refused |= nothing_new.not_retried([task for task in takes if task.id not in waiting])
    giving = [task.id for task in takes if gives_attempts(task, command, waiting.get(task.id, ()))]
    if giving:
        subjobs = subjobs_in(parameters or {})
        used_up = attempts.used_up_in(giving, subjobs)
        refused |= {task_id: attempts.none_used_up(task_id, subjobs) for task_id in giving if task_id not in used_up}
    takes = [task for task in takes if task.id not in refused and task.id not in waiting]
    if command == TaskCommand.RETRY and parameters is not None and not parameters.get("transcend"):
        beyond = limited_retries.reached(task for task in takes if nothing_new.opens_files(task))
        refused |= {task_id: limited_retries.refused(task_id, limit) for task_id, limit in beyond.items()}
    return refused | _in_vain([task for task in takes if task.id not in refused], command, parameters)


def _in_vain(tasks: Sequence[Task], command: str, parameters: Mapping[str, Any] | None) -> dict[int, str]:
    """Why the command would find nothing to do for those of the tasks for which that is so: asked at the door, and once more
    before it is carried out. Without `parameters` only what does not depend on them."""
    if command == TaskCommand.RELEASE:
        staging = file_moves.staging_in([task.id for task in tasks]) if tasks else set()
        held = {task.id for task in tasks if SplitRule.parse(task.split_rule).flag("WH")}
        says = "no file of task {} is being staged, and no workflow holds it"
        return {task.id: says.format(task.id) for task in tasks if task.id not in staging | held}
    if parameters is None:
        return {}
    if command == TaskCommand.REMOVE_FILES:
        found = {task.id: file_removal.why_none(task.id, named_files(parameters)) for task in tasks}
        return {task_id: says for task_id, says in found.items() if says}
    if command == TaskCommand.RETRY:
        return _retried_in_vain(tasks, parameters)
    return {}


def _retried_in_vain(tasks: Sequence[Task], parameters: Mapping[str, Any]) -> dict[int, str]:
    refused: dict[int, str] = {}
    if parameters.get("discard"):
        says = "task {} has no event service: no events can be discarded"
        refused = {task.id: says.format(task.id) for task in tasks if not task.event_service}
    subjobs = subjobs_in(parameters)
    resting = [task.id for task in tasks if nothing_new.opens_files(task)]
    if subjobs is not None and resting:
        left = attempts.left_in(resting, subjobs)
        refused |= {task_id: attempts.none_of_these(task_id) for task_id in resting if task_id not in left}
    return refused


def changed_parameters(
    task: Task, stored: Mapping[str, Any], given: Mapping[str, Any]
) -> tuple[dict[str, Any], Sequence[str]]:
    """The parameters of a task with these changes, and what of those that stay would be refused by now.

    Raises CommandRefusedError when the changes do not go with the others, or it cannot run again as it is.
    """
    changes = known_names.with_plain_names(given)
    changed, faults = apply_changes(stored, changes), Faults()
    try:
        event_service.check_change(changes, now=task.event_service == 1, faults=faults)
        faults.raise_if_any()
        return changed, check_changed(stored, changed, task)
    except ParamErrors as exc:
        why = f"the changes do not fit task {task.id}" if changes else f"task {task.id} cannot run again as it is"
        raise CommandRefusedError(f"{why}: {exc}") from exc


def _check_changes(tasks: Sequence[Task], changes: Mapping[str, Any]) -> None:
    """Raise CommandRefusedError unless these changes go with what each of the tasks was submitted with."""
    stored = dict(TaskParams.objects.filter(pk__in=[task.id for task in tasks]).values_list("pk", "params"))
    for task in tasks:
        if task.id in stored:
            changed_parameters(task, stored[task.id], changes)


def _queue(
    tasks: Sequence[Task],
    command: str,
    by: str,
    reason: str,
    parameters: dict[str, Any] | None,
    act: Mapping[str, Any] | None = None,
) -> list[Command]:
    rows = Command.objects.bulk_create(
        Command(task=task, name=command, owner=by, comment=reason, parameters=parameters) for task in tasks
    )
    details = {**(parameters or {}), **(act or {})} or None
    audit.record_many(by, command, "task", [task.id for task in tasks], reason=reason, details=details)
    kick("commando")
    return rows


def gives_attempts(task: Task, command: str, waiting: Sequence[str] = ()) -> bool:
    """Whether the command does nothing but give files more attempts, after those that wait."""
    return command == TaskCommand.INCREASE_ATTEMPTS or (
        command == TaskCommand.RETRY and standing_of(task, waiting).foreseen in MORE_ATTEMPTS_IN
    )


def check_command(task: Task, command: str, parameters: Mapping[str, Any]) -> None:
    """Before it is carried out: raise CommandRefusedError unless the task accepts it still, and it has something to do."""
    if refused := accepting.refusal(standing_of(task, ()), command):
        raise CommandRefusedError(refused)
    _raise_first(_in_vain([task], command, parameters))


def command_of_ours(
    task_id: int, command: str, *, by: str, reason: str, parameters: dict[str, Any] | None = None
) -> bool:
    """A watchdog gives a command, as a user would; it is obeyed by task commando. False when it is not accepted now."""
    try:
        give_command(task_id, command, by=by, reason=reason, parameters=parameters)
    except CommandRefusedError:
        return False
    return True
