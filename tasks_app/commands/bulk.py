"""One act on one task or many: the selection, the preview, and the execution in batches, each act with an audit row.

What is done goes through the same doors as for a single task. Who may not, and tasks whose state does not accept it, are
told apart and named; the others get it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Model, QuerySet, Sum
from django_filters import FilterSet

from jedisite import audit
from jedisite.database.sql import numbers
from jedisite.identity.callers import Caller
from jedisite.vocabulary.words import plural, sentence, thousands
from tasks_app.commands import removal_preview
from tasks_app.domain.states import JOB_AT_PILOT, JOB_QUEUED, TASK_FINAL
from tasks_app.domain.task_commands import TaskCommand
from tasks_app.lifecycle import attempts, rights
from tasks_app.lists.filtersets import TaskFilter
from tasks_app.models import Command, Dataset, Task
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.outcomes.books import with_no_result
from tasks_app.params.acts import Act, Change
from tasks_app.submission import command_queue, parameter_changes

Row = TypeVar("Row", bound=Model)
AT_ONCE: Final = 100
"""Tasks that one transaction locks."""
JOBS_COUNTED: Final = 10_000
_FIELDS = (
    "id",
    "name",
    "status",
    "old_status",
    "user",
    "working_group",
    "prod_source_label",
    "split_rule",
    "parent_id",
    "vo",
)


class SelectionError(ValueError):
    """No such selection can be acted on; the sentence says why, `field` is the parameter at fault."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


@dataclass(frozen=True, slots=True)
class Selection:
    """Tasks in the order of their ids, and ids of tasks that are not there."""

    tasks: tuple[Task, ...]
    missing: tuple[int, ...] = ()


def by_ids(ids: Iterable[int]) -> Selection:
    """Raises SelectionError when there are none or too many."""
    wanted = checked_ids(ids, "task")
    found = tuple(Task.objects.filter(pk__in=wanted).only(*_FIELDS).order_by("pk"))
    return Selection(found, tuple(sorted(set(wanted) - {task.id for task in found})))


def checked_ids(ids: Iterable[int], what: str) -> list[int]:
    """Each id once, in order. Raises SelectionError when there are none or too many."""
    wanted = sorted(set(ids))
    if not wanted:
        raise SelectionError("ids", f"No {what} is chosen.")
    if len(wanted) > settings.JEDI_BULK_LIMIT:
        raise SelectionError("ids", _too_many(f"{thousands(len(wanted))} {what}s are"))
    return wanted


def by_filter(given: Mapping[str, Any]) -> Selection:
    """The tasks that a filter of the list of tasks finds. Raises SelectionError as `filtered` does."""
    tasks = filtered(TaskFilter, Task.objects.only(*_FIELDS), given, "task")
    return Selection(tuple(sorted(tasks, key=lambda task: task.id)))


def filtered(kind: type[FilterSet], rows: QuerySet[Row], given: Mapping[str, Any], what: str) -> list[Row]:
    """What a filter finds, newest first.

    Raises SelectionError for a name that is no filter, a value that does not fit, no filter at all, and too many rows.
    """
    unknown = sorted(set(given) - set(kind.base_filters))
    if unknown:
        raise SelectionError(unknown[0][:100], f"There is no filter {unknown[0][:100]!r} of {what}s.")
    chosen = kind({name: value for name, value in given.items() if value != ""}, queryset=rows)
    if not chosen.data:
        raise SelectionError(
            "filter", f"A command on all {what}s at once is not allowed: give a filter, or choose some."
        )
    if not chosen.is_valid():
        name, faults = next(iter(chosen.form.errors.items()))
        raise SelectionError(name, f"{name}: {faults[0]}")
    limit: int = settings.JEDI_BULK_LIMIT
    found: list[Row] = list(chosen.qs.order_by("-pk")[: limit + 1])
    if len(found) > limit:
        raise SelectionError("filter", _too_many(f"More than {thousands(limit)} {what}s match: they are"))
    return found


def _too_many(begin: str) -> str:
    return (
        f"{begin} too many for one command; {thousands(settings.JEDI_BULK_LIMIT)} is the limit. Narrow the selection."
    )


class WhyNot(NamedTuple):
    """Why an act is refused: for its `state` or for want of a `right`, in words that fit many tasks, and in a sentence."""

    kind: str
    words: str
    sentence: str


def why_not(
    act: Act, task: Task, caller: Caller, parameters: Mapping[str, Any] | None = None, *, waiting: Sequence[str]
) -> WhyNot | None:
    """Why this caller cannot do this to this task now; None when it can be done. `waiting`: commands it is yet to obey."""
    return _why_not(act, [task], caller, parameters, {task.id: waiting} if waiting else {}).get(task.id)


def _why_not(
    act: Act,
    tasks: Sequence[Task],
    caller: Caller,
    parameters: Mapping[str, Any] | None,
    waiting: Mapping[int, Sequence[str]],
) -> dict[int, WhyNot]:
    """The same for several tasks: of those to which it cannot be done."""
    found = {}
    for task in tasks:
        if refused := rights.refusal(caller, act.name, task, parameters):
            found[task.id] = _in_words("right", task.id, refused)
    allowed = [task for task in tasks if task.id not in found]
    return found | {
        number: _in_words("state", number, said)
        for number, said in _refusals(act, allowed, waiting, parameters).items()
    }


def _in_words(kind: str, task_id: int, refused: str) -> WhyNot:
    words = refused[:1].lower() + refused[1:].rstrip(".")
    return WhyNot(kind, words.removeprefix(f"task {task_id} "), f"{refused[:1].upper()}{refused[1:].rstrip('.')}.")


def _refusals(
    act: Act, tasks: Sequence[Task], waiting: Mapping[int, Sequence[str]], parameters: Mapping[str, Any] | None
) -> dict[int, str]:
    if act.is_command:
        return command_queue.refusals(tasks, act.name, waiting, parameters)
    return {
        task.id: f"task {task.id} is {task.status}: it makes no more jobs"
        for task in tasks
        if task.status in TASK_FINAL
    }


@dataclass(frozen=True, slots=True)
class Refused:
    """Tasks that are refused for the same reason."""

    kind: str
    words: str
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """Jobs that an act affects, by site and state. They are counted up to `JOBS_COUNTED`; `more` says that there are more."""

    by_status: Mapping[str, int] = field(default_factory=dict)
    sites: int = 0
    more: bool = False

    @property
    def jobs(self) -> int:
        return sum(self.by_status.values())

    @property
    def queued(self) -> int:
        return sum(self.by_status.get(status, 0) for status in JOB_QUEUED)

    @property
    def at_pilots(self) -> int:
        return sum(self.by_status.get(status, 0) for status in JOB_AT_PILOT)


@dataclass(frozen=True, slots=True)
class Preview:
    """What an act would do: the tasks that get it, those that do not and why, and the jobs and files that it touches."""

    act: Act
    tasks: tuple[Task, ...]
    refused: tuple[Refused, ...]
    hit: Hit
    failed_files: int = 0
    more_attempts: str = ""
    end_failed: int = 0
    """Tasks that the act ends, and that have processed nothing yet."""
    removal: str = ""
    """Which files may be removed now, of an act that removes some."""

    @property
    def ids(self) -> list[int]:
        return [task.id for task in self.tasks]

    @property
    def owners(self) -> dict[str, int]:
        """Tasks of each owner, most first."""
        return dict(Counter(task.user for task in self.tasks).most_common())

    @property
    def refused_tasks(self) -> int:
        return sum(len(group.ids) for group in self.refused)


def preview(act: Act, chosen: Selection, caller: Caller, parameters: Mapping[str, Any] | None = None) -> Preview:
    """At most twelve queries, whatever the number of tasks."""
    good, refused = _sorted_out(act, chosen.tasks, caller, parameters)
    ids = [task.id for task in good]
    failed = _failed_files(act, ids)
    more = attempts.more(attempts.added(ids).values()) if failed else ""
    empty = with_no_result(good) if act.name == TaskCommand.FINISH else ()
    groups = tuple(_grouped(refused, chosen.missing))
    removal = removal_preview.sentence_of(ids) if ids and act.name == TaskCommand.REMOVE_FILES else ""
    return Preview(act, tuple(good), groups, _hit(act, ids), failed, more, len(empty), removal)


def _sorted_out(
    act: Act, tasks: Sequence[Task], caller: Caller, parameters: Mapping[str, Any] | None
) -> tuple[list[Task], dict[int, WhyNot]]:
    waiting = Command.objects.waiting_of(task.id for task in tasks)
    refused = _why_not(act, tasks, caller, parameters, waiting)
    return [task for task in tasks if task.id not in refused], refused


def _grouped(refused: Mapping[int, WhyNot], missing: Iterable[int] = ()) -> list[Refused]:
    groups: dict[tuple[str, str], list[int]] = {}
    for task_id, why in sorted(refused.items()):
        groups.setdefault((why.kind, why.words), []).append(task_id)
    gone = tuple(missing)
    if gone:
        groups["missing", "is not there"] = list(gone)
    return [Refused(kind, words, tuple(ids)) for (kind, words), ids in sorted(groups.items())]


def _hit(act: Act, ids: Sequence[int]) -> Hit:
    if not act.jobs or not ids:
        return Hit()
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT jobstatus, coalesce(computingsite, ''), count(*)
                 FROM (SELECT jobstatus, computingsite FROM jobs
                        WHERE jeditaskid = ANY(%s::bigint[]) AND jobstatus = ANY(%s) LIMIT %s) j GROUP BY 1, 2""",
            [numbers(ids), sorted(act.jobs), JOBS_COUNTED + 1],
        )
        rows = cursor.fetchall()
    by_status: Counter[str] = Counter()
    for status, _, count in rows:
        by_status[status] += count
    return Hit(dict(by_status), len({site for _, site, _ in rows}), by_status.total() > JOBS_COUNTED)


def _failed_files(act: Act, ids: Sequence[int]) -> int:
    if not act.files or not ids:
        return 0
    masters = Dataset.objects.filter(task_id__in=ids, type__in=INPUT_TYPES, master_id=None)
    return int(masters.aggregate(n=Sum("files_failed"))["n"] or 0)


@dataclass(frozen=True, slots=True)
class Done:
    """What became of an act: tasks that got it, and those that did not and why. `number` is the row of what was asked in the
    audit trail, where a second one tells of what was refused."""

    ids: tuple[int, ...]
    refused: tuple[Refused, ...]
    number: int


def give(
    act: Act,
    ids: Sequence[int],
    *,
    caller: Caller,
    reason: str,
    parameters: Mapping[str, Any] | None = None,
    query: str = "",
) -> Done:
    """Do it to those of the tasks that accept it now from this caller; `query` is the filter by which they were found.

    Tasks are locked and looked at again, `AT_ONCE` in one transaction: when one fails for an unexpected cause, those of
    the transactions before it are done. Raises ParamErrors for parameters that its door refuses.
    """
    wanted = sorted(set(ids))
    number = audit.record(
        caller.name,
        f"bulk {act.name}",
        "tasks",
        f"asked of {plural(len(wanted), 'task')}",
        reason=reason,
        details={**(parameters or {}), "query": query[:2000], "ids": wanted},
    ).pk
    done: list[int] = []
    refused: dict[int, WhyNot] = {}
    seen: set[int] = set()
    for start in range(0, len(wanted), AT_ONCE):
        some = wanted[start : start + AT_ONCE]
        with transaction.atomic():
            tasks = list(Task.objects.select_for_update().filter(pk__in=some).order_by("pk"))
            seen |= {task.id for task in tasks}
            good, bad = _sorted_out(act, tasks, caller, parameters or {})
            refused |= bad
            refused |= _pass_on(act, good, caller.name[:128], reason, parameters, {"bulk": number})
        done += [task.id for task in good if task.id not in refused]
    groups = _grouped(refused, sorted(set(wanted) - seen))
    if groups:
        by_whom = f"refused by {plural(sum(len(one.ids) for one in groups), 'task')}"
        details = {"bulk": number, **{one.words: one.ids for one in groups}}
        audit.record(caller.name, f"bulk {act.name}", "tasks", by_whom, reason=reason, details=details)
    return Done(tuple(done), tuple(groups), number)


def _pass_on(
    act: Act,
    tasks: Sequence[Task],
    by: str,
    reason: str,
    parameters: Mapping[str, Any] | None,
    note: Mapping[str, Any],
) -> dict[int, WhyNot]:
    """Through the door of the act; returns those of the tasks that it refuses, and why."""
    if not tasks:
        return {}
    try:
        with transaction.atomic():
            through_door(act, tasks, by=by, reason=reason, parameters=parameters, note=note)
    except (parameter_changes.CannotChangeError, command_queue.CommandRefusedError) as exc:
        if len(tasks) == 1:
            words = str(exc).removeprefix(f"task {tasks[0].id} ")
            return {tasks[0].id: WhyNot("state", words, sentence(exc))}
        # One of them spoils it for all: halves find out which.
        middle = len(tasks) // 2
        return _pass_on(act, tasks[:middle], by, reason, parameters, note) | _pass_on(
            act, tasks[middle:], by, reason, parameters, note
        )
    return {}


def through_door(
    act: Act,
    tasks: Sequence[Task],
    *,
    by: str,
    reason: str,
    parameters: Mapping[str, Any] | None = None,
    note: Mapping[str, Any] | None = None,
) -> None:
    """Do it to tasks that the caller's transaction has locked: to all or, when an error is raised, to none.

    Raises CommandRefusedError, CannotChangeError, and ParamErrors.
    """
    given = dict(parameters or {})
    ids = [task.id for task in tasks]
    if act.is_command:
        command_queue.queue_commands(tasks, act.name, by=by, reason=reason, parameters=given or None, act=note)
    elif act.name == Change.PRIORITY:
        parameter_changes.change_priorities(ids, given["priority"], by=by, reason=reason, act=note)
    elif act.name == Change.SHARE:
        parameter_changes.change_shares(ids, given["share"], by=by, reason=reason, act=note)
    elif act.name == Change.AVOID_SITE:
        parameter_changes.avoid_site(ids, given["site"], by=by, reason=reason, act=note)
    else:
        (task_id,) = ids
        if act.name == Change.NEEDS:
            parameter_changes.change_attributes(task_id, given, by=by, reason=reason)
        else:
            parameter_changes.change_split_rule(task_id, given["changes"], by=by, reason=reason)
