"""Doors through which a task that exists is changed: its parameters, priority, share, resources and split rule.

Each is one transaction, with a line in the task's status log and one in the audit trail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from django.db import transaction
from django.db.models import Q

from brokerage_app.formulas.walltime import is_ineffective
from jedisite import audit
from jedisite.vocabulary.words import plural, sentence
from tasks_app.domain.jumbo_use import use_of
from tasks_app.domain.states import TASK_FINAL
from tasks_app.domain.task_commands import TaskCommand
from tasks_app.lifecycle import file_moves as files
from tasks_app.lifecycle import task_moves
from tasks_app.lifecycle.queued_jobs import set_priority, set_share
from tasks_app.models import Dataset, File, Task, TaskParams
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.params import event_service
from tasks_app.params.faults import Faults, ParamErrors, shown
from tasks_app.params.kept_names import named_sites
from tasks_app.params.keys import KEYS
from tasks_app.params.kinds import check_value, names_of
from tasks_app.params.resubmission import ATTRIBUTES, RULE_KEYS, Changes, apply_changes, changed_rule, check_changes
from tasks_app.params.splitrule import SplitRule, SplitRuleError
from tasks_app.refining.offered import check_offered
from tasks_app.submission import command_queue, sandboxes
from tasks_app.submission.assignment import check_share
from tasks_app.submission.rehearsal import check_changed
from tasks_app.submission.resource_typing import with_type


class CannotChangeError(ValueError):
    """The task is in no state to be changed; the sentence says which."""


def run_again(task_id: int, changes: Changes, *, by: str, reason: str = "submitted again") -> None:
    """Queue the command that runs an ended task again with these changes."""
    parameters = {"changes": dict(changes)} if changes else None
    command_queue.give_command(task_id, TaskCommand.INCEXEC, by=by, reason=reason, parameters=parameters)


@transaction.atomic
def change_in_place(task_id: int, changes: Changes, *, by: str, reason: str = "submitted again while it runs") -> None:
    """Change the parameters of a task at work. Files that had used up their attempts get more.

    Raises ParamErrors when the changes do not go with its other parameters.
    """
    task = Task.objects.select_for_update().get(pk=task_id)
    stored = TaskParams.objects.get(pk=task_id)
    changed = apply_changes(stored.params, changes)
    check_changed(stored.params, changed, task)
    if no := sandboxes.refusal_again(task_id, task.user, stored.params, changes):
        faults = Faults()
        faults.add("fixedSandbox", "sandbox", sentence(no))
        faults.raise_if_any()
    stored.params = changed
    stored.save(update_fields=["params"])
    rule = _rule(task, changes)
    columns: dict[str, Any] = {"split_rule": str(rule), "use_jumbo": use_of(rule.get_int("NJ"), task.use_jumbo)}
    for name, column in (("site", "site"), ("cloud", "cloud"), ("currentPriority", "current_priority")):
        if name in changes:
            columns[column] = named_sites(changes[name]) if name == "site" else changes[name]
    if changes.get("ramCount") is not None:
        columns["ram_count"] = changes["ramCount"]
    Task.objects.filter(pk=task_id).update(**with_type(task, columns))
    if changes.get("ramCount") is not None:
        files.lower_memory(task_id, changes["ramCount"])
    files.give_attempts(task_id)
    _noted([task_id], by, "change", reason, dict(changes))


def _rule(task: Task, changes: Changes) -> SplitRule:
    faults = Faults()
    event_service.check_change(changes, now=task.event_service == 1, faults=faults)
    faults.raise_if_any()
    try:
        return changed_rule(SplitRule.parse(task.split_rule), changes)
    except SplitRuleError as exc:
        faults = Faults()
        faults.add("", "split rule", str(exc))
        faults.raise_if_any()
        raise


def change_priority(task_id: int, priority: int, *, by: str, reason: str) -> str:
    """Give a task, and its queued jobs, another priority. Returns what was done. Raises CannotChangeError."""
    return change_priorities([task_id], priority, by=by, reason=reason)


@transaction.atomic
def change_priorities(
    task_ids: Sequence[int], priority: int, *, by: str, reason: str, act: Mapping[str, Any] | None = None
) -> str:
    """The same for several tasks: all of them or, when one has ended, none. `act` is noted in the audit trail."""
    _open_tasks(task_ids)
    Task.objects.filter(pk__in=task_ids).update(current_priority=priority)
    jobs = set_priority(task_ids, priority)
    _noted(task_ids, by, "change priority", reason, {"priority": priority}, act)
    return f"the priority is {priority}, also of {plural(jobs, 'queued job')}"


def change_share(task_id: int, share: str, *, by: str, reason: str) -> str:
    """Put a task, and its queued jobs, into another global share. Returns what was done.

    Raises ParamErrors for a share that tasks cannot have, CannotChangeError.
    """
    return change_shares([task_id], share, by=by, reason=reason)


@transaction.atomic
def change_shares(
    task_ids: Sequence[int], share: str, *, by: str, reason: str, act: Mapping[str, Any] | None = None
) -> str:
    """The same for several tasks: all of them or, when one has ended, none. `act` is noted in the audit trail."""
    check_share(share)
    _open_tasks(task_ids)
    Task.objects.filter(pk__in=task_ids).update(gshare=share)
    jobs = set_share(task_ids, share)
    _noted(task_ids, by, "change share", reason, {"gshare": share}, act)
    return f"the share is {share}, also of {plural(jobs, 'queued job')}"


LIMITED_SITES: Final = "LS"
"""In the split rule: 1 when sites are named to which a task keeps, plus 2 when sites are named that it avoids."""


@transaction.atomic
def avoid_site(
    task_ids: Sequence[int], site: str, *, by: str, reason: str, act: Mapping[str, Any] | None = None
) -> str:
    """Tasks make no more jobs at a site; jobs that are there go on. Returns what was done.

    Raises CannotChangeError, and then changes nothing, when one has ended or has nowhere else to go: it is bound to the
    site.
    """
    tasks = {task.id: task for task in _open_tasks(task_ids)}
    changed = list(TaskParams.objects.filter(pk__in=task_ids))
    for stored in changed:
        task = tasks[stored.pk]
        excluded, included = (names_of(stored.params.get(key)) for key in ("excludedSite", "includedSite"))
        bound_to = set(included) or set(names_of(task.site or None))
        if bound_to and bound_to <= {site, *excluded}:
            raise CannotChangeError(f"task {task.id} is bound to {site}")
        if site not in excluded:
            stored.params = stored.params | {"excludedSite": [*excluded, site]}
        if site in included:
            stored.params["includedSite"] = [name for name in included if name != site]
        rule = SplitRule.parse(task.split_rule).having(LIMITED_SITES, (1 if included else 0) + 2)
        task.split_rule = str(rule)
    TaskParams.objects.bulk_update(changed, ["params"])
    Task.objects.bulk_update(tasks.values(), ["split_rule"])
    _noted(task_ids, by, "avoid site", reason, {"site": site}, act)
    return f"no more jobs are made at {site}"


def check_attributes(values: Mapping[str, Any]) -> None:
    """Raises ParamErrors with every name that is no attribute of a task and every value that does not fit."""
    faults = Faults()
    for name, value in values.items():
        if name not in ATTRIBUTES:
            said = f"{shown(name)} is not an attribute that can be changed on an existing task"
            faults.add_unknown(name, said, name, ATTRIBUTES, "changeable")
        elif value is None:
            faults.add(name, "not null", "Give the new value.")
        else:
            check_value(KEYS[name], value, name, faults)
    faults.raise_if_any()


@transaction.atomic
def change_attributes(task_id: int, values: Mapping[str, Any], *, by: str, reason: str) -> str:
    """Change what jobs of a task need, under the names of task parameters; jobs that exist keep what they have.

    Returns what was done. Raises ParamErrors for a name or value that does not fit, CannotChangeError.
    """
    check_attributes(values)
    (task,) = _open_tasks([task_id])
    columns = {ATTRIBUTES[name]: _as_stored(name, value) for name, value in values.items()}
    _check_walltime(task, columns)
    Task.objects.filter(pk=task_id).update(**with_type(task, columns))
    before = {name: getattr(task, ATTRIBUTES[name]) for name in values}
    _noted([task_id], by, "change attributes", reason, dict(values), before=before)
    return "; ".join(f"{name} is {value}" for name, value in values.items())


def _check_walltime(task: Task, columns: Mapping[str, Any]) -> None:
    """A walltime is refused where it would change nothing, as the events of all inputs are known. Raises ParamErrors."""
    new = {
        name: columns.get(name, getattr(task, name))
        for name in ("walltime", "walltime_unit", "cpu_time", "cpu_time_unit")
    }
    if "walltime" in columns and is_ineffective(**new) and _has_known_events(task):
        faults = Faults()
        said = f"It has no effect: the walltime of jobs is calculated from cpuTime ({new['cpu_time']}). Change cpuTime instead."
        faults.add("walltime", "effective", said)
        faults.raise_if_any()


def _has_known_events(task: Task) -> bool:
    """Whether some file of the input is there and each says how many events it has."""
    masters = Dataset.objects.filter(task_id=task.id, type__in=INPUT_TYPES, master_id=None)
    files = File.objects.filter(task_id=task.id, dataset_id__in=masters.values("id"))
    return files.exists() and not files.filter(Q(events=None) | Q(events=0)).exists()


def _as_stored(name: str, value: Any) -> Any:
    if name == "goal":
        return int(value * 10)
    return round(value) if isinstance(value, float) else value


def check_rules(values: Mapping[str, Any]) -> Changes:
    """Rules as they are changed. Raises ParamErrors with every key that is none and every value that does not fit."""
    faults = Faults()
    for name in values:
        if name not in RULE_KEYS:
            faults.add_unknown(name, f"{shown(name)} is not a rule that can be changed", name, RULE_KEYS, "changeable")
    check_offered(values, faults)
    changes = faults.take(lambda: check_changes({name: value for name, value in values.items() if name in RULE_KEYS}))
    faults.raise_if_any()
    return changes or {}


@transaction.atomic
def change_split_rule(task_id: int, values: Mapping[str, Any], *, by: str, reason: str) -> str:
    """Change how the input that is left is split, by keys of task parameters; null takes a rule away.

    Returns what was done. Raises ParamErrors for a key that is no changeable rule or a value that does not fit,
    CannotChangeError.
    """
    changes = check_rules(values)
    (task,) = _open_tasks([task_id])
    rule = _rule(task, changes)
    Task.objects.filter(pk=task_id).update(split_rule=str(rule), use_jumbo=use_of(rule.get_int("NJ"), task.use_jumbo))
    stored = TaskParams.objects.filter(pk=task_id).first()
    if stored is not None:
        stored.params = apply_changes(stored.params, changes)
        stored.save(update_fields=["params"])
    _noted([task_id], by, "change split rule", reason, dict(values))
    return f"the split rule is {rule}"


def _open_tasks(task_ids: Sequence[int]) -> list[Task]:
    """Lock tasks. Raises CannotChangeError when one has ended, Task.DoesNotExist."""
    tasks = list(Task.objects.select_for_update().filter(pk__in=task_ids).order_by("pk"))
    if len(tasks) != len(set(task_ids)):
        raise Task.DoesNotExist(f"not all of {plural(len(task_ids), 'task')} exist")
    for task in tasks:
        if task.status in TASK_FINAL:
            raise CannotChangeError(f"task {task.id} is {task.status}: it makes no more jobs")
    return tasks


def _noted(
    task_ids: Sequence[int],
    by: str,
    action: str,
    reason: str,
    details: dict[str, Any],
    act: Mapping[str, Any] | None = None,
    before: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """`before`: what is replaced, where the log is to say how it can be given again."""
    audit.record_many(by, action, "task", task_ids, reason=reason, details={**details, **(act or {})})
    given = ", ".join(
        f"{name} {'removed' if value is None else value}"
        + (f" (before: {old})" if (old := before.get(name)) is not None else "")
        for name, value in details.items()
    )
    task_moves.note_on_tasks(task_ids, by=by, reason=f"{action}: {given}" + (f" ({reason})" if reason else ""))
    task_moves.wake_tasks(task_ids, "job_generator")


__all__ = [
    "ATTRIBUTES",
    "CannotChangeError",
    "ParamErrors",
    "avoid_site",
    "change_attributes",
    "change_in_place",
    "change_priorities",
    "change_priority",
    "change_share",
    "change_shares",
    "change_split_rule",
    "check_attributes",
    "check_rules",
    "run_again",
]
