"""Submission: who may submit what, under which name and priority. The door that every protocol goes through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from jedisite import audit
from jedisite.identity import Caller, Right
from tasks_app import moves
from tasks_app.models import Task
from tasks_app.params.faults import Faults, shown
from tasks_app.params.schema import TaskParams, parse
from tasks_app.refining.values import Defaults

LABELS_FOR_ALL = ("user", "test")
HIGHEST_PRIORITY = 1000
"""The highest priority of a task whose submitter has no production right."""
DEFAULTS = Defaults()
PRODUCTION = Right.COMMAND_ANY
LONGEST_USER = 128


class OpenTaskExistsError(ValueError):
    """The user has an open task of a name that is to be unique; the sentence names both."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A checked submission. `stored` is the submitted dictionary with what the site decides: owner and highest priority."""

    params: TaskParams
    user: str
    stored: Mapping[str, Any]

    @property
    def priority(self) -> int:
        usual = DEFAULTS.analysis_priority if self.params.task_type == "anal" else DEFAULTS.production_priority
        given = self.stored.get("taskPriority")
        return usual if given is None else int(given)


def check(raw: object, caller: Caller) -> Submission:
    """Check a dictionary that a caller submits. Asks no database. Raises ParamErrors with every fault."""
    params = parse(raw)
    faults = Faults()
    trusted = caller.may(PRODUCTION)
    user = (params.user_name if trusted else None) or caller.name
    if len(user) > LONGEST_USER:
        faults.add("userName", "length", f"At most {LONGEST_USER} characters are allowed, and this has {len(user)}.")
    if not trusted:
        _check_rights(params, faults)
    faults.raise_if_any()
    stored = dict(params.raw)
    if stored.get("userName") is not None:
        stored["userName"] = user
    if not trusted:
        for name in ("taskPriority", "currentPriority"):
            given = params.whole(name)
            if given is not None:
                stored[name] = min(given, HIGHEST_PRIORITY)
    return Submission(params, user, stored)


def _check_rights(params: TaskParams, faults: Faults) -> None:
    label = params.prod_source_label
    if label not in LABELS_FOR_ALL:
        faults.add(
            "prodSourceLabel",
            "right",
            f"{shown(label)} needs the production right; without it, tasks are {' or '.join(LABELS_FOR_ALL)}.",
        )
    if params.task_type.lower() == "prod":
        faults.add("taskType", "right", "Tasks of type prod need the production right.")


@transaction.atomic
def submit(submission: Submission, *, by: str) -> int:
    """Register the task and return its id.

    Raises ParamErrors when its parent is unknown, OpenTaskExistsError when its name is to be unique and is not; both
    write nothing.
    """
    params, user = submission.params, submission.user
    parent_id = _parent_of(params, user)
    if params.flag("uniqueTaskName"):
        _refuse_second(user, params.task_name)
    task_id = moves.submit(
        dict(submission.stored),
        name=params.task_name,
        user=user,
        vo=params.vo or DEFAULTS.vo,
        label=params.prod_source_label,
        task_type=params.task_type,
        priority=submission.priority,
        parent_id=parent_id,
    )
    if by != user:
        audit.record(by, "submit for", "task", task_id, details={"user": user})
    return task_id


def _parent_of(params: TaskParams, user: str) -> int | None:
    """The id of the task whose outputs this one reads. Raises ParamErrors when there is no such task."""
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
    return by_id or by_name


def _refuse_second(user: str, name: str) -> None:
    """Raise OpenTaskExistsError when the user has an open task of this name. Holds until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"task name {user}\n{name}"])
    found = Task.objects.open().filter(user=user, name=name).order_by("-id").values_list("id", "status").first()
    if found:
        raise OpenTaskExistsError(
            f"{user} has an open task of the name {shown(name)} already: {found[0]}, which is {found[1]}"
        )


__all__ = ["HIGHEST_PRIORITY", "LABELS_FOR_ALL", "OpenTaskExistsError", "Submission", "check", "submit"]
