"""Whose data a task makes: whether its names are its submitter's to give, and whether somebody else has them already."""

from __future__ import annotations

from collections import defaultdict

from django.contrib.auth.models import User

from jedisite.roles import Caller, Right
from tasks_app.models import CatalogueDataset
from tasks_app.params.faults import Faults, shown
from tasks_app.params.made import made_by
from tasks_app.params.schema import TaskParams
from tasks_app.scopes import Writer, accounts_named, refusal


def check_names(params: TaskParams, user: str, caller: Caller, faults: Faults) -> None:
    """Add a fault for each output, log or container in a scope that is not the submitter's, or whose name is not known
    yet. `user` is to own the task. Asks no database."""
    writer = Writer(user, caller.manages, caller.may(Right.COMMAND_ANY))
    for made in made_by(params):
        if not made.is_known:
            faults.add(made.field, "known name", f"{made.name}: what a task makes has a name when it is submitted.")
        elif no := refusal(made.name, writer):
            faults.add(made.field, "right", no)


def check_group(params: TaskParams, caller: Caller, faults: Faults) -> None:
    """Add a fault for a working group, or an official task, that is not the submitter's to name."""
    group = params.text("workingGroup")
    if caller.may_submit_for(group):
        return
    mine = f"You manage {', '.join(sorted(caller.manages))}." if caller.manages else "You manage none."
    if group is not None:
        faults.add("workingGroup", "right", f"Only managers of {shown(group)} submit tasks for it. {mine}")
    if params.flag("official"):
        faults.add("official", "right", f"Official tasks are those of a working group, by its managers. {mine}")


def check_free(params: TaskParams, user: str) -> None:
    """Raises ParamErrors for each output, log or container that exists and belongs to somebody else."""
    fields: dict[str, str] = {}
    accounts = defaultdict(list)
    for made in made_by(params):
        fields |= dict.fromkeys(made.rows, made.field)
        for account in accounts_named(made.name, user):
            accounts[account].append(made)
    faults = Faults()
    taken = CatalogueDataset.objects.filter(name__in=list(fields)).exclude(owner=user).order_by("name")
    for name, owner, task_id in taken.values_list("name", "owner", "made_by_task"):
        whose = f"{owner} (task {task_id})" if task_id else owner or "this site"
        faults.add(fields[name], "taken", f"The dataset {name} exists and belongs to {whose}; give another name.")
    for account in User.objects.filter(username__in=list(accounts)).values_list("username", flat=True):
        for made in accounts[account]:
            faults.add(made.field, "right", f"{made.name} is in the scope of the user {account}.")
    faults.raise_if_any()


__all__ = ["check_free", "check_group", "check_names"]
