"""Whose data a task makes and reads: whether its names are its submitter's to give, whether somebody else has them already,
and whether its inputs are the logs of others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from django.contrib.auth.models import User

from jedisite.identity.callers import caller_of_user
from jedisite.vocabulary.roles import Caller, Right, Role
from tasks_app.domain.scopes import Writer, longer_accounts, refusal
from tasks_app.models import CatalogueDataset, Dataset
from tasks_app.models.dataset import LOG_TYPES
from tasks_app.params.faults import Faults, shown
from tasks_app.params.made import made_by, read_by
from tasks_app.params.schema import TaskParams


def check_names(params: TaskParams, user: str, caller: Caller, faults: Faults) -> None:
    """Add a fault for each output, log or container in a scope that is not the submitter's, or whose name is not known
    yet. `user` is to own the task. Asks no database."""
    writer = Writer(user, caller.manages, caller.may(Right.COMMAND_ANY))
    for made in made_by(params):
        if not made.is_known:
            faults.add(made.field, "known name", f"{made.name}: name the outputs when you submit the task.")
        elif no := refusal(made.name, writer):
            faults.add(made.field, "right", no)


def check_group(params: TaskParams, caller: Caller, faults: Faults) -> None:
    """Add a fault for a working group, or an official task, that is not the submitter's to name."""
    group = params.text("workingGroup")
    if caller.may_submit_for(group):
        return
    mine = f"You manage {', '.join(sorted(caller.manages))}." if caller.manages else "You manage no working group."
    if group is not None:
        faults.add("workingGroup", "right", f"Only managers of {shown(group)} can submit tasks for it. {mine}")
    if params.flag("official"):
        faults.add(
            "official", "right", f"Official tasks belong to a working group and are submitted by its managers. {mine}"
        )


def check_free(params: TaskParams, user: str) -> None:
    """Raises ParamErrors for each output, log or container that exists and belongs to somebody else."""
    fields: dict[str, str] = {}
    accounts = defaultdict(list)
    for made in made_by(params):
        fields |= dict.fromkeys(made.rows, made.field)
        for account in longer_accounts(made.name, user):
            accounts[account].append(made)
    faults = Faults()
    taken = CatalogueDataset.objects.filter(name__in=list(fields)).exclude(owner=user).order_by("name")
    for name, owner, task_id in taken.values_list("name", "owner", "made_by_task"):
        whose = f"{owner} (task {task_id})" if task_id else owner or "this site"
        faults.add(fields[name], "taken", f"The dataset {name} exists and belongs to {whose}; choose another name.")
    for account in User.objects.filter(username__in=list(accounts)).values_list("username", flat=True):
        for made in accounts[account]:
            faults.add(made.field, "right", f"{made.name} is in the scope of the user {account}.")
    faults.raise_if_any()


def check_read(params: TaskParams, user: str, caller: Caller) -> None:
    """Raises ParamErrors for each input that holds logs which the user, who is to own the task, may not fetch."""
    check_logs({name: field for field, name in read_by(params)}, user, caller)


def check_logs(fields: Mapping[str, str], user: str, caller: Caller | None = None) -> None:
    """The same for the fields of inputs, by their names."""
    faults = Faults()
    for name, no in logs_of_others(list(fields), user, caller).items():
        faults.add(fields[name], "right", no)
    faults.raise_if_any()


def logs_of_others(names: Sequence[str], user: str, caller: Caller | None = None) -> dict[str, str]:
    """Why tasks of the user may not read those of these datasets and containers that hold logs of others' tasks.

    Outputs of others may be read by tasks; a whole log archive goes to those only who may fetch it. `caller`: the user's
    rights, where they are known already.
    """
    bare = {name.rstrip("/"): name for name in names}
    boxes = [f"{name}/" for name in bare]
    inside = CatalogueDataset.objects.filter(containers__name__in=boxes).values_list("name", "containers__name")
    holders = defaultdict(set, {name: {given} for name, given in bare.items()})
    for member, box in inside:
        if box.rstrip("/") in bare:
            holders[member].add(bare[box.rstrip("/")])
    logs = Dataset.objects.filter(name__in=list(holders), type__in=LOG_TYPES).exclude(task__user=user).order_by("id")
    rows = logs.values_list("name", "task_id", "task__user", "task__working_group")
    if not rows:
        return {}
    if caller is None or caller.name != user:
        account = User.objects.filter(username=user).first()
        caller = caller_of_user(account) if account else Caller(user, frozenset({Role.USER}))
    found: dict[str, str] = {}
    for log, task_id, owner, group in rows:
        if not caller.may_fetch(owner, group):
            for name in holders[log]:
                found.setdefault(name, _not_read(log, task_id, owner))
    return found


def _not_read(log: str, task_id: int, owner: str) -> str:
    whose = f"the logs of task {task_id}, which belongs to {owner}"
    return f"{log} holds {whose}: only {owner}, managers and members of the working group, shifters and production can read them."


__all__ = ["check_free", "check_group", "check_logs", "check_names", "check_read", "logs_of_others"]
