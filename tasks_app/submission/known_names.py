"""What names stand for here: the door at which a name that no table of this site has is refused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q

from brokerage_app.grid import installed_policy
from brokerage_app.models import Queue, Site, StorageEndpoint, WorkQueue
from brokerage_app.policy.placement import NoPlaceError, check_leaf
from jedisite.identity import user_names
from jedisite.vocabulary.words import plural, sentence
from tasks_app.configured.site_limits import most_records
from tasks_app.ddm import data_management
from tasks_app.ddm.local_storage import nearest_data
from tasks_app.ddm.rules.database_releases import LATEST, latest_of
from tasks_app.domain.scopes import without_scope
from tasks_app.domain.source_labels import ANALYSIS_LABELS, TESTED_LABELS
from tasks_app.inputs import data_rights, event_inputs, makers, used_files
from tasks_app.inputs.rules.selection import why_none
from tasks_app.inputs.slices import SEQUENCE
from tasks_app.models import Dataset, File, PlannedOutput, Task
from tasks_app.models import TaskParams as StoredParams
from tasks_app.models.dataset import INPUT_TYPES, MADE_TYPES
from tasks_app.params import clientwords, kept_names, not_available
from tasks_app.params.command_parameters import named_files
from tasks_app.params.faults import Faults, ParamErrors, join_path, shown
from tasks_app.params.items import PREPROCESSED
from tasks_app.params.job_groups import read_groups
from tasks_app.params.keys import stream_of_ds_for
from tasks_app.params.kinds import WILDCARD, WILDCARDS, names_of, split_names
from tasks_app.params.made import read_by, renamed
from tasks_app.params.resubmission import apply_changes
from tasks_app.params.rules import amount
from tasks_app.params.schema import TaskParams, parse
from tasks_app.refining.layout import datasets_of
from tasks_app.refining.values import Defaults

TRANSFORMS = Path(__file__).resolve().parents[1] / "transforms"
DEFAULTS = Defaults()
BARE = "bareNucleus"
WAITS_OR_DOES_WITHOUT = ("waitInput", "ignoreMissingInDS", "allowEmptyInput")
_WAITS = " To let the task wait for its input, set waitInput."
MOST_MATCHED, MOST_MATCHING = 3, 5
"""Patterns for which datasets are looked up, and datasets that are told of each."""
MOST_TESTS, LEAST_TESTS = 30_000, 1500
"""So often a name is held against a pattern, in all items of a task; each that is looked at counts as some at least."""
LABELS = ANALYSIS_LABELS | TESTED_LABELS | {"ptest", "rc_test", "rc_test2", "rc_alrb"}


class Tables:
    """See `names.Known`. At most one statement for each kind of thing that is named."""

    @cached_property
    def _rows(self) -> list[tuple[str, str, str]]:
        return list(Queue.objects.values_list("name", "site_name", "cloud"))

    @cached_property
    def queues(self) -> Collection[str]:
        return frozenset(name for name, _, _ in self._rows)

    @cached_property
    def sites(self) -> Mapping[str, Collection[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for name, site, _ in self._rows:
            found[site].append(name)
        return found

    @cached_property
    def clouds(self) -> Collection[str]:
        return frozenset(cloud for _, _, cloud in self._rows if cloud)

    @cached_property
    def nuclei(self) -> Collection[str]:
        """Nuclei, and the satellites that keep whole chains of tasks."""
        bare = Queue.objects.filter(Q(catchall__contains=BARE) | Q(params__has_key=BARE)).values("site_name")
        return frozenset(Site.objects.filter(Q(role="nucleus") | Q(name__in=bare)).values_list("name", flat=True))

    @cached_property
    def endpoints(self) -> Mapping[str, str]:
        return dict(StorageEndpoint.objects.values_list("name", "site_name"))

    @cached_property
    def transforms(self) -> Collection[str]:
        return frozenset(path.name for path in TRANSFORMS.iterdir() if path.is_file())

    @cached_property
    def labels(self) -> Collection[str]:
        return LABELS | set(WorkQueue.objects.values_list("type", flat=True))

    @cached_property
    def transform_urls(self) -> Sequence[str]:
        return (f"{settings.JEDI_SERVER_URL}/trf/user/", f"{settings.JEDI_TRANSFORM_URL.rstrip('/')}/")

    def work_queues(self, vo: str | None, label: str) -> Collection[str]:
        return frozenset(row.name for row in installed_policy.work_queues().in_order(vo or DEFAULTS.vo, label))

    def share_fault(self, share: str) -> str | None:
        try:
            check_leaf(share, installed_policy.share_tree())
        except NoPlaceError as exc:
            return sentence(exc)
        return None

    def unknown_tasks(self, ids: Collection[int]) -> Collection[int]:
        return set(ids) - set(Task.objects.filter(pk__in=list(ids)).values_list("id", flat=True))


def check_params(params: TaskParams) -> list[str]:
    """Check the names in a submission. Returns sentences on what is allowed and worth saying. Raises ParamErrors."""
    faults, tables = Faults(), Tables()
    kept_names.check_params(params, tables, faults)
    faults.raise_if_any()
    return [*kept_names.foreign_transforms(params, tables), *kept_names.no_place_left(params, tables)]


def check_owner(user: str) -> None:
    """Raises ParamErrors when this site has no such user."""
    if User.objects.filter(username=user).exists():
        return
    faults = Faults()
    faults.add("userName", "known", f"There is no user {shown(user)}.{user_names.meant(user)}")
    faults.raise_if_any()


def check_inputs(params: TaskParams, user: str, parent_id: int | None, *, parent_is_known: bool = True) -> None:
    """Raises ParamErrors for each input that data management does not have and nobody is about to make, and for each file
    that the task names, and each pattern that takes no file, where the datasets get no more files.

    A task that is to wait for its input, or can go on without it, may name datasets before. When the parent that was meant is
    not known, it cannot be said which datasets it will make.
    """
    found = Faults()
    if not _does_without(params):
        if parent_is_known:
            found.take(lambda: _check_there(_fields_of(params), user, {parent_id} if parent_id else ()))
        found.take(lambda: _check_patterns(params))
    found.take(lambda: _check_files(params))
    found.take(lambda: event_inputs.check_numbers(params))
    found.take(lambda: used_files.check_left(params))
    found.raise_if_any()


def with_plain_inputs(params: TaskParams) -> TaskParams:
    """The same with the names of inputs that are written with their scopes (`user.ada:user.ada.x`) as data management has
    them, and with the newest release of the database for `DBR_LATEST`. A name that is known with its colon, or is about to be
    made so, stays. Raises ParamErrors."""
    changed = _plain_names(name for _, name in read_by(params)) | _latest_release(params)
    return parse(renamed(params.raw, changed)) if changed else params


def _latest_release(params: TaskParams) -> dict[str, str]:
    """What `DBR_LATEST` stands for, where it is read. Raises ParamErrors when this site has no release of the database."""
    where = next((field for field, name in read_by(params) if name == LATEST), None)
    if where is None:
        return {}
    found = latest_of(data_management().database_releases())
    if found is None:
        faults = Faults()
        said = f"{LATEST} stands for the newest release of the conditions database, and this site has none: name the dataset."
        faults.add(where, "exists", said)
        faults.raise_if_any()
    return {LATEST: str(found)}


def with_plain_names(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Checked changes of a task with the names of inputs in the same way."""
    given = (name for key, value in changes.items() if stream_of_ds_for(key) is not None for name in names_of(value))
    plain = _plain_names(given)
    return renamed(changes, plain) if plain else dict(changes)


def _plain_names(given: Iterable[str]) -> dict[str, str]:
    """The names of data management for those of these that are written with their scopes and are not known so."""
    plain = {name: bare for name in given if ":" in name and (bare := without_scope(name))}
    if not plain:
        return {}
    planned = PlannedOutput.objects.filter(
        dataset__in=[name.rstrip("/") for name in plain], task__in=Task.objects.open()
    )
    coming = set(planned.values_list("dataset", flat=True))
    unknown = data_management().unknown(list(plain), user="")
    return {name: plain[name] for name in unknown if name.rstrip("/") not in coming}


def check_added(changes: Mapping[str, Any], tasks: Iterable[Task], where: str = "") -> None:
    """Check the inputs that changes add to tasks that exist as those of a submission are checked. Raises ParamErrors.

    `where` leads to the changes. One statement, and some for each owner whose tasks get inputs.
    """
    if not any(value and stream_of_ds_for(name) is not None for name, value in changes.items()):
        return
    asked, changes = list(tasks), with_plain_names(changes)
    stored = dict(StoredParams.objects.filter(pk__in=[task.id for task in asked]).values_list("pk", "params"))
    added: dict[str, dict[str, str]] = defaultdict(dict)
    needed: dict[str, dict[str, str]] = defaultdict(dict)
    parents: dict[str, set[int]] = defaultdict(set)
    for task in asked:
        raw = stored.get(task.id) or {}
        try:
            before, after = parse(raw), parse(apply_changes(raw, changes))
        except ParamErrors:
            continue  # whoever obeys the command says what does not go together
        had = _fields_of(before).keys()
        fields = {name: join_path(where, field) for name, field in _fields_of(after).items() if name not in had}
        added[task.user or ""] |= fields
        if not _does_without(after):
            needed[task.user or ""] |= fields
            parents[task.user or ""] |= {task.parent_id} if task.parent_id and task.parent_id != task.id else set()
    for user, fields in added.items():
        _check_there(needed[user], user, parents[user])
        data_rights.check_logs(fields, user)


def _fields_of(params: TaskParams) -> dict[str, str]:
    """The field of each input that data management is to have, by its name."""
    fields: dict[str, str] = {}
    for field, name in read_by(params):
        if name != SEQUENCE and PREPROCESSED.search(name) is None:
            fields.setdefault(name, field)
    return fields


def _does_without(params: TaskParams) -> bool:
    return any(params.flag(key) for key in WAITS_OR_DOES_WITHOUT)


def _check_there(fields: Mapping[str, str], user: str, parents: Collection[int]) -> None:
    if not fields:
        return
    faults, unknown = Faults(), data_management().unknown(list(fields), user=user)
    hollow = data_management().hollow(fields.keys() - unknown.keys())
    ended = makers.how_they_ended(hollow) if hollow else {}
    for name in (name for name in fields if name in ended):
        faults.add(fields[name], "some file", f"{shown(name)} has no files, and {ended[name]}.{_WAITS}")
    if unknown:
        _add_unknown(unknown, fields, parents, faults)
    faults.raise_if_any()


def _add_unknown(
    unknown: Mapping[str, str], fields: Mapping[str, str], parents: Collection[int], faults: Faults
) -> None:
    """Add a fault for each name that nobody is about to make."""
    coming = makers.still_at_it(unknown).keys()
    made = _made_by(parents) if coming != unknown.keys() else set()
    ended = makers.how_they_ended(unknown.keys() - coming) if coming != unknown.keys() and not parents else {}
    for name, near in unknown.items():
        if name in coming or name.rstrip("/") in made:
            continue
        meant = (nearest_data(name.rstrip("/"), made) if faults.hints else "") or near
        whose = f", and task {min(parents)}, the parent, makes no dataset of this name" if len(parents) == 1 else ""
        whose = f", and {ended[name]}" if name in ended else whose
        hint = f" Did you mean {meant}?" if meant else ""
        faults.add(fields[name], "known", f"There is no dataset {shown(name)}{whose}.{hint}{_WAITS}")


def _made_by(tasks: Collection[int]) -> set[str]:
    """Datasets and containers that these tasks make, or will make once they are refined, without the mark of containers."""
    found: set[str] = set()
    # Read before what is made: refining turns one into the other.
    for task_id, name in PlannedOutput.objects.filter(task_id__in=tasks).values_list("task_id", "dataset"):
        found |= {name, f"{name}.{task_id}"}  # the dataset of the task in a container of this name
    rows = Dataset.objects.filter(task_id__in=tasks, type__in=MADE_TYPES).values_list("name", "container_name")
    found |= {name for row in rows for name in row if name}
    return {name.rstrip("/") for name in found}


def _check_files(params: TaskParams) -> None:
    """Raises ParamErrors for files that an item names and that none of its datasets has, where no more files can come."""
    faults, xml = Faults(), params.text("loadXML")
    # What a file is called that was made again is seen when the dataset is read.
    for item in () if params.flag("useInFilesWithNewAttemptNr") else params.items:
        fields = item.named_files
        for name in item.datasets if xml and item.param_type == "input" else ():
            of_groups = read_groups(xml or "").of_dataset(name)
            fields = fields or {lfn: f"loadXML.job[{numbers[0]}].inds" for lfn, numbers in of_groups.items()}
        if item.param_type != "input" or not item.datasets or not fields:
            continue
        lacking = data_management().lacking(item.datasets, fields, complete=True, hints=faults.hints)
        for lfn, near in lacking.items():
            meant = f" Did you mean {near}?" if near else ""
            faults.add(fields[lfn], "known", f"{shown(lfn)} is not in {_one_of(item.datasets)}.{meant}")
    faults.raise_if_any()


def _check_patterns(params: TaskParams) -> None:
    """Raises ParamErrors for patterns and offsets that leave no file of their item, where its datasets get no more.

    What takes too long to look at is left to the feeder: a submission keeps others waiting.
    """
    faults, left = Faults(), MOST_TESTS
    for item in params.items:
        include, exclude, offset = item.text("include"), item.text("exclude"), item.whole("offset") or 0
        named = list(item.named_files)
        if item.param_type != "input" or not item.datasets or not (include or exclude or offset):
            continue
        if item.raw.get("files") and (not named or params.flag("useInFilesWithNewAttemptNr")):
            continue  # which files they are is seen when the dataset is read
        if left <= 0:
            break
        datasets = datasets_of(item, params)
        tests = 1 + sum(text.count(",") + 1 for text in (include, exclude) if text)
        parts = [named] if named else data_management().names_in(datasets, left // tests) or []
        left -= max(LEAST_TESTS, tests * sum(map(len, parts)))
        if len(parts) > len(datasets) and not item.flag("expand"):
            parts = [list(chain.from_iterable(parts))]  # a container may be read as one dataset
        where = (
            "its list" if named else datasets[0] if len(datasets) == 1 else f"the {len(datasets)} datasets of the item"
        )
        for key, why in why_none(parts, include, exclude, where, offset, clientwords.quoting(params.raw)):
            faults.add(join_path(item.where, key), "some file", sentence(f"{why}.{'' if named else _WAITS}"))
    faults.raise_if_any()


def _one_of(datasets: Sequence[str]) -> str:
    return datasets[0] if len(datasets) == 1 else f"any of the {len(datasets)} datasets of the item"


def with_matching(exc: ParamErrors, raw: object) -> ParamErrors:
    """The same faults; those of wildcards in names of inputs name datasets that match. Asks only when there is one."""
    if not isinstance(raw, Mapping) or not any(error.rule == WILDCARD for error in exc.errors):
        return exc
    items = raw.get("jobParameters")
    given = [item.get("dataset") for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []
    given += [value for key, value in raw.items() if isinstance(key, str) and stream_of_ds_for(key) is not None]
    texts = [text for one in given for text in (one if isinstance(one, list) else [one]) if isinstance(text, str)]
    wild = [name for text in texts for name in split_names(text) if not WILDCARDS.isdisjoint(name)]
    hints = {}
    for name in list(dict.fromkeys(wild))[:MOST_MATCHED]:
        if found := data_management().matching(name, MOST_MATCHING):
            hints[shown(name)] = f" It matches {', '.join(found)}."
    errors = []
    for error in exc.errors:
        hint = next((hint for start, hint in hints.items() if error.message.startswith(f"{start} ")), "")
        errors.append(replace(error, message=error.message + hint) if error.rule == WILDCARD else error)
    return ParamErrors(tuple(errors))


def check_parameters(given: Mapping[str, Any] | None, asked: Iterable[Task] = ()) -> None:
    """Check the names in the parameters of a command for these tasks, with the changes that it may bring. Raises ParamErrors."""
    faults, tables = Faults(), Tables()
    kept_names.check_places(given or {}, tables, faults, auto=False)
    kept_names.check_places((given or {}).get("changes") or {}, tables, faults, "changes")
    tasks = list(asked)
    if tasks and (names := named_files(given or {})):
        _check_read(names, tasks, faults)
    faults.raise_if_any()
    check_changes(given, tasks)


def _check_read(lfns: Sequence[str], tasks: Sequence[Task], faults: Faults) -> None:
    """Add a fault for files that none of these tasks reads. One statement."""
    rows = File.objects.filter(task_id__in=[task.id for task in tasks], type__in=INPUT_TYPES, lfn__in=lfns)
    unknown = sorted(set(lfns) - set(rows.order_by().values_list("lfn", flat=True)))
    if unknown:
        who = f"Task {tasks[0].id} reads no file" if len(tasks) == 1 else "None of these tasks reads"
        named, more = ", ".join(map(shown, unknown[:3])), len(unknown) - 3
        named += f" and {plural(more, 'other file')}" if more > 0 else ""
        faults.add("files", "known", f"{who} {named}.")


def check_changes(given: Mapping[str, Any] | None, asked: Iterable[Task]) -> None:
    """Check what the changes of a command add to these tasks: their inputs, and how much work. Raises ParamErrors.

    `asked`: with owner, VO and parent at hand. Two statements, and some for each owner whose tasks get inputs.
    """
    changes, tasks = (given or {}).get("changes") or {}, list(asked)
    faults = Faults()
    not_available.check_given(changes, faults, "changes")
    faults.raise_if_any()
    check_added(changes, tasks, "changes")
    _check_amount(changes, tasks)


def _check_amount(changes: Mapping[str, Any], tasks: Sequence[Task]) -> None:
    """Raises ParamErrors when a task would get more work by changes than it may have. One statement."""
    if not changes.get("nEvents") and not changes.get("nFiles"):
        return
    faults, vos = Faults(), {task.id: task.vo for task in tasks}
    for task_id, raw in StoredParams.objects.filter(pk__in=vos.keys()).values_list("pk", "params"):
        try:
            amount(parse(apply_changes(raw, changes)), most_records(vos[task_id]), faults)
        except ParamErrors:
            continue  # whoever obeys the command says what does not go together
    found = Faults()
    for fault in faults:
        found.add(join_path("changes", fault.field), fault.rule, fault.message)
    found.raise_if_any()
