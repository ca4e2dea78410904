"""Submission: who may submit what, under which name and priority. The door that every protocol goes through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db import connection, transaction

from brokerage_app.grid.configured import configuration
from jedisite import audit
from jedisite.identity.callers import Caller, Right
from jedisite.vocabulary.words import sentence
from tasks_app.domain.lines import URGENT
from tasks_app.domain.source_labels import LABELS_FOR_ALL
from tasks_app.domain.task_commands import TaskCommand
from tasks_app.inputs import data_rights, event_inputs, nothing_new
from tasks_app.lifecycle import rights, serials, standing, task_moves
from tasks_app.lifecycle.rights import HIGHEST_PRIORITY
from tasks_app.models import Command, Task
from tasks_app.models import TaskParams as StoredParams
from tasks_app.params import combinations
from tasks_app.params.clientwords import is_from_client, option_of
from tasks_app.params.faults import Faults, ParamErrors, shown
from tasks_app.params.resubmission import (
    ACTIVE,
    Code,
    Decision,
    Existing,
    NameKey,
    apply_changes,
    changes_of,
    decide,
    looks_for_duplicates,
    must_be_new,
    name_key,
    too_many,
)
from tasks_app.params.rules import output_items
from tasks_app.params.schema import TaskParams, parse, sound
from tasks_app.refining.values import Defaults, ParentView
from tasks_app.submission import known_names, parameter_changes, sandbox_data, sandboxes
from tasks_app.submission.rehearsal import check_offered, rehearse

DEFAULTS = Defaults()
PRODUCTION = Right.COMMAND_ANY
LONGEST_USER = 128


class SubmissionRefusedError(ValueError):
    """The user has a task of a name that is to be unique, or too many; the sentence says which. `decision` has the code."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        super().__init__(decision.sentence)


@dataclass(frozen=True, slots=True)
class Submitted:
    """What became of a submission: the task that it made, or the older one that runs again or was changed."""

    task_id: int
    decision: Decision
    warnings: tuple[str, ...] = ()
    """Sentences on what was taken and may not be what was meant."""

    @property
    def is_new(self) -> bool:
        return self.decision.code is Code.NEW


@dataclass(frozen=True, slots=True)
class Submission:
    """A checked submission. `stored` is the submitted dictionary with what the site decides: owner and highest priority."""

    params: TaskParams
    user: str
    stored: Mapping[str, Any]
    caller: Caller
    warnings: tuple[str, ...] = ()
    """Sentences on what the site decides in place of what was given."""

    @property
    def priority(self) -> int:
        usual = DEFAULTS.analysis_priority if self.params.task_type == "anal" else DEFAULTS.production_priority
        given = self.stored.get("taskPriority")
        return usual if given is None else int(given)


def check(raw: object, caller: Caller) -> Submission:
    """Check a dictionary that a caller submits. Raises ParamErrors with every fault.

    Asks the database only for inputs that are written with their scopes, and for what a refusal says: then also for the
    faults that `submit` would find next.
    """
    faults = Faults()
    params = faults.take(lambda: _parsed(raw)) or sound(raw, faults)
    if params is None:
        faults.raise_if_any()
    assert params is not None
    trusted = caller.may(PRODUCTION)
    user = params.user_name or caller.name
    if user != caller.name and not trusted:
        faults.add(
            "userName", "right", f"You are {caller.name}; you need the production right to submit for {shown(user)}."
        )
    if len(user) > LONGEST_USER:
        faults.add("userName", "length", f"At most {LONGEST_USER} characters are allowed, not {len(user)}.")
    if user != caller.name and params.flag("useSecrets"):
        faults.add(
            "useSecrets", "right", f"Jobs get the secrets of {shown(user)} only when {shown(user)} submits the task."
        )
    if not trusted:
        _check_rights(params, faults)
    data_rights.check_group(params, caller, faults)
    made = Faults()
    data_rights.check_names(params, user, caller, made)
    owner = user if trusted else caller.name
    if made and owner != caller.name:
        faults.take(lambda: known_names.check_owner(owner))
    if not faults.touches("userName"):  # else it cannot be said whose names they are to be
        faults.take(made.raise_if_any)
    if faults:
        faults.take(lambda: check_offered(params, params.vo or DEFAULTS.vo))
        parent_id, _ = _look_up(params, owner, caller, faults)
        _check_data(params, owner, caller, parent_id, faults)
    faults.raise_if_any()
    stored = dict(params.raw)
    if stored.get("userName") is not None:
        stored["userName"] = user
    warnings = combinations.remarks(params)
    for name in () if trusted else ("taskPriority", "currentPriority"):
        given = params.whole(name)
        if given is not None and given > HIGHEST_PRIORITY:  # PanDA's clients may send some more, so that is no fault
            stored[name] = HIGHEST_PRIORITY
            option = option_of(name, params.raw) if is_from_client(params.raw) else name
            most = f"{HIGHEST_PRIORITY} is the maximum without the production right, and the task gets that"
            warnings.append(f"{option} {given} is too high: {most}.")
    # What a task of the same name that exists is changed to follows from `params`.
    return Submission(replace(params, raw=stored), user, stored, caller, tuple(warnings))


def _parsed(raw: object) -> TaskParams:
    try:
        params = parse(raw)
    except ParamErrors as exc:
        raise known_names.with_matching(exc, raw) from None
    return known_names.with_plain_inputs(params)


def _look_up(params: TaskParams, user: str, caller: Caller, faults: Faults) -> tuple[int | None, list[str]]:
    """The id of the parent task, and sentences on what is worth saying. Adds a fault for each name that is not known here."""
    if user != caller.name:
        faults.take(lambda: known_names.check_owner(user))
    parent_id = faults.take(lambda: _parent_of(params, user))
    return parent_id, faults.take(lambda: known_names.check_params(params)) or []


def _check_data(params: TaskParams, user: str, caller: Caller, parent_id: int | None, faults: Faults) -> None:
    """Add a fault for each dataset and file that the task cannot make or read."""
    faults.take(lambda: data_rights.check_free(params, user))
    is_known = not faults.touches("parent_tid", "parentTaskName")
    faults.take(lambda: known_names.check_inputs(params, user, parent_id, parent_is_known=is_known))
    faults.take(lambda: sandbox_data.check_there(params, user))
    faults.take(lambda: data_rights.check_read(params, user, caller))


def _check_rights(params: TaskParams, faults: Faults) -> None:
    label = params.prod_source_label
    if label not in LABELS_FOR_ALL:
        faults.add(
            "prodSourceLabel",
            "right",
            f"{shown(label)} needs the production right; without it, tasks are {' or '.join(LABELS_FOR_ALL)}.",
        )
    if params.text("processingType") == URGENT:
        says = f"Jobs of {URGENT} tasks are sent before all others, for which you need the production right."
        faults.add("processingType", "right", says)
    if params.task_type.lower() == "prod":
        faults.add("taskType", "right", "Tasks of type prod need the production right.")


@transaction.atomic
def submit(
    submission: Submission,
    *,
    by: str,
    allow_active: bool = False,
    most_active: int | None = None,
    task_id: int | None = None,
) -> Submitted:
    """Register the task, or let an older one of the same name run again with what may be changed.

    A new task gets the number `task_id`, if one is given.
    With `allow_active` a task of the name that runs is changed in place. A user may have `most_active` active tasks; when it
    is not given, as many as the configuration says (MAX_ACTIVE_TASKS_PER_USER_<label>).
    Raises ParamErrors when its parent or something else that it names is unknown, a dataset that it would make is somebody
    else's, another task makes its files, or the caller may not command the older task;
    SubmissionRefusedError when its name is to be unique and is not, or the user has too many tasks. Both write nothing.
    """
    params, user, caller, faults = submission.params, submission.user, submission.caller, Faults()
    parent_id, remarks = _look_up(params, user, caller, faults)
    warnings = [*submission.warnings, *remarks]
    task = Task(
        user=user, vo=params.vo or DEFAULTS.vo, prod_source_label=params.prod_source_label, task_type=params.task_type
    )
    if faults:
        faults.take(lambda: rehearse(params, task))
        _check_data(params, user, caller, parent_id, faults)
    faults.raise_if_any()
    existing = _existing(submission, allow_active)
    decision = decide(params, existing, allow_active=allow_active)
    label = params.prod_source_label
    if most_active is None:
        most_active = configuration().get("dbproxy", "MAX_ACTIVE_TASKS_PER_USER", label, vo=params.vo or DEFAULTS.vo)
    if decision.code is Code.NEW and most_active is not None:
        active = Task.objects.filter(user=user, prod_source_label=label, status__in=sorted(ACTIVE)).count()
        decision = too_many(active, most_active) or decision
    if not decision.code.is_accepted:
        raise SubmissionRefusedError(decision)
    if decision.task_id is not None:
        if existing is not None and existing.params and decision.changes:
            rehearse(parse(apply_changes(existing.params, decision.changes)), task)
        known_names.check_added(decision.changes, Task.objects.filter(pk=decision.task_id))
        older = Task.objects.get(pk=decision.task_id)
        if decision.code is Code.AGAIN and (nothing := nothing_new.why_nothing_new(older, decision.changes)):
            said = (
                f"The task {older.id} of the name {shown(params.task_name)} is done, {nothing}. jediTaskID={older.id}"
            )
            return Submitted(older.id, replace(decision, sentence=said))
        if decision.code is Code.AGAIN:
            parameter_changes.run_again(decision.task_id, decision.changes, by=by)
        else:
            parameter_changes.change_in_place(decision.task_id, decision.changes, by=by)
        return Submitted(decision.task_id, decision)
    warnings += faults.take(lambda: rehearse(params, task, place=True)) or []
    _check_data(params, user, caller, parent_id, faults)
    warnings += faults.take(lambda: event_inputs.doubts(params)) or []
    sandboxes.claim(user, params.raw)
    if no := sandboxes.refusal(user, params.raw):
        faults.add("jobParameters", "sandbox", sentence(no))
    faults.take(lambda: _check_file_names(params, user))
    faults.raise_if_any()
    new_id = task_moves.submit(
        dict(submission.stored),
        name=params.task_name,
        user=user,
        vo=params.vo or DEFAULTS.vo,
        label=params.prod_source_label,
        task_type=params.task_type,
        priority=submission.priority,
        parent_id=parent_id,
        task_id=task_id,
    )
    serials.plan(new_id, params)
    sandboxes.note_task(new_id, submission.stored)
    if by != user:
        audit.record(by, "submit for", "task", new_id, details={"user": user})
    if warnings:
        task_moves.note_warnings(new_id, warnings, by=by)
    return Submitted(new_id, decision, tuple(warnings))


def _check_file_names(params: TaskParams, user: str) -> None:
    """Raises ParamErrors when a task that has not ended makes files of the same names: the refiner would break this one.

    Or when a file has the name that this task's is to have: each try of its job would fail.
    """
    items = {item.file_name: item for item in output_items(params) if item.datasets}
    wanted = {name: item.datasets[0] for name, item in items.items()}
    taken = serials.open_tasks_with(wanted, user)
    faults = Faults()
    for name, other in taken.items():
        said = f"{serials.taken_by(other, name)}; put $JEDITASKID into the name."
        faults.add(f"{items[name].where}.value", "unique", sentence(said))
    for name in sorted(serials.files_there(wanted, user)):
        said = (
            f"A file {shown(name)} already exists, and names must be unique; put $JEDITASKID or ${{SN}} into the name."
        )
        faults.add(f"{items[name].where}.value", "unique", said)
    faults.raise_if_any()


def _parent_of(params: TaskParams, user: str) -> int | None:
    """The id of the task whose outputs this one reads. Raises ParamErrors when there is no such task, or no more outputs."""
    faults = Faults()
    by_id, name = params.whole("parent_tid") or None, params.text("parentTaskName")
    by_name: int | None = None
    if by_id and not Task.objects.filter(pk=by_id).exists():
        faults.add("parent_tid", "known task", f"There is no task {by_id}.")
    if name:
        by_name = Task.objects.filter(user=user, name=name).order_by("-id").values_list("id", flat=True).first()
        if by_name is None:
            faults.add("parentTaskName", "known task", f"{user} has no task of the name {shown(name)}.")
    faults.raise_if_any()
    parent = by_id or by_name
    status = standing.foreseen_states([parent]).get(parent) if parent else None
    if parent and status and ParentView(parent, status).progress == "corrupted":
        said = f"Task {parent} is {status}, but it must be done or finished before its child starts. Retry the parent first."
        faults.add("parent_tid" if by_id else "parentTaskName", "parent that ended", said)
        faults.raise_if_any()
    return parent


def _check_older(submission: Submission, older: Task) -> None:
    """Raises ParamErrors unless the caller may run that task again: an official one may be anybody's."""
    no = rights.refusal(submission.caller, TaskCommand.INCEXEC, older, {"changes": changes_of(submission.params.raw)})
    if no:
        faults = Faults()
        faults.add("taskName", "right", no)
        faults.raise_if_any()


def _existing(submission: Submission, allow_active: bool) -> Existing | None:
    """The newest task of the same name, if names matter. Nobody else submits under the name until the transaction ends."""
    params = submission.params
    same = looks_for_duplicates(params, allow_active=allow_active)
    if not same and not must_be_new(params):
        return None
    key = name_key(params, submission.user, DEFAULTS.vo)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"task name {key.name}"])
    return (_same_task(submission, key) if same else None) or _namesake(submission)


def _same_task(submission: Submission, key: NameKey) -> Existing | None:
    same = Task.objects.filter(name=key.name, vo=key.vo, prod_source_label=key.label)
    if key.user is not None:
        same = same.filter(user=key.user)
    # Its row is held, so that its state stays what the decision is made on.
    found = same.having_names().order_by("-id").select_for_update().first()
    if found is None:
        return None
    _check_older(submission, found)
    # One that was submitted again, and has not begun to run again, waits as a new one does.
    waits = Command.objects.open().filter(task=found, name=TaskCommand.INCEXEC).exists()
    stored = StoredParams.objects.filter(pk=found.id).values_list("params", flat=True).first()
    return Existing(found.id, None if waits else found.status, found.prod_source_label or "", params=stored)


def _namesake(submission: Submission) -> Existing | None:
    """A task of the user that has the name and is another one: of another VO, label or type."""
    same = Task.objects.filter(user=submission.user, name=submission.params.task_name)
    found = same.having_names().order_by("-id").first()
    if found is None:
        return None
    kind = f"{found.task_type or 'anal'} of VO {found.vo}, label {found.prod_source_label}, {found.status}"
    return Existing(found.id, found.status, found.prod_source_label or "", kind)


__all__ = [
    "HIGHEST_PRIORITY",
    "Submission",
    "SubmissionRefusedError",
    "Submitted",
    "check",
    "submit",
]
