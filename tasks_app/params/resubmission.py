"""A task name that exists already, and changes to a task that exists: what may be changed, and what becomes of it.

A second submission under a name that is to be unique runs the old task again with the changes (incremental execution),
changes it while it runs, or is refused. The codes are those that PanDA's clients read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from jedisite.vocabulary.words import plural
from tasks_app.params.amounts import check_amounts
from tasks_app.params.clientwords import is_from_client
from tasks_app.params.differences import Differences, differences
from tasks_app.params.faults import Faults, shown
from tasks_app.params.keys import DS_FOR_KEY, KEYS, stream_of_ds_for
from tasks_app.params.kinds import Key, check_value
from tasks_app.params.schema import TaskParams
from tasks_app.params.split_codes import CHANGEABLE, CODES, number_of
from tasks_app.params.splitrule import SplitRule

RULE_KEYS: Mapping[str, str] = MappingProxyType(
    {key.name: key.code for key in KEYS.values() if key.code is not None and key.code in CHANGEABLE}
)
"""Keys that change the split rule of a task that exists, with their codes."""

CHANGEABLE_KEYS = frozenset(
    [
        "site",
        "cloud",
        "includedSite",
        "excludedSite",
        "cliParams",
        "nFiles",
        "nEvents",
        "fixedSandbox",
        "currentPriority",
    ]
) | {"ramCount", *RULE_KEYS}
ATTRIBUTES: Mapping[str, str] = MappingProxyType(
    {
        "ramCount": "ram_count",
        "ramUnit": "ram_unit",
        "baseRamCount": "base_ram_count",
        "walltime": "walltime",
        "walltimeUnit": "walltime_unit",
        "baseWalltime": "base_walltime",
        "cpuTime": "cpu_time",
        "cpuTimeUnit": "cpu_time_unit",
        "cpuEfficiency": "cpu_efficiency",
        "coreCount": "core_count",
        "outDiskCount": "out_disk_count",
        "outDiskUnit": "out_disk_unit",
        "workDiskCount": "work_disk_count",
        "workDiskUnit": "work_disk_unit",
        "ioIntensity": "io_intensity",
        "ioIntensityUnit": "io_intensity_unit",
        "goal": "goal",
    }
)
"""Attributes of a task that can be changed until it has ended, with their columns."""
RENAMED = MappingProxyType({"priority": "currentPriority", "loopingCheck": "noLoopingCheck"})
"""Names that clients use for changes. `loopingCheck` has the opposite truth."""

AGAIN_FROM = frozenset({"finished", "failed", "aborted", "done", "exhausted"})
PATCHED_IN = frozenset({"running", "scouting", "pending"})
ACTIVE = frozenset({"registered", "defined", "ready", "scouting", "running", "paused", "throttled"})
"""Tasks in these states count against the most that a user may have."""

Changes = Mapping[str, Any]


class Code(IntEnum):
    """What a client is told."""

    NEW = 0
    QUEUED = 1
    IS_ACTIVE = 2
    AGAIN = 3
    FAILED = 4
    PATCHED = 5
    TOO_MANY = 10
    NO_PARENT = 11

    @property
    def is_accepted(self) -> bool:
        return self in (Code.NEW, Code.AGAIN, Code.PATCHED)


@dataclass(frozen=True, slots=True)
class Existing:
    """The newest task of the same name. `status` None: it was submitted, and no more is known of it.

    `kind` is given when that task is not the same under another submission: it only has the name. `params`: what is stored
    of its parameters.
    """

    task_id: int
    status: str | None
    label: str = "user"
    kind: str | None = None
    params: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a submission. `task_id` is that of the old task, `changes` what is changed on it (null deletes)."""

    code: Code
    sentence: str
    task_id: int | None = None
    changes: Changes = field(default_factory=lambda: MappingProxyType({}))

    @property
    def memory(self) -> int | None:
        """A new ramCount. It counts at once: for the task, and for files that have a larger one."""
        value = self.changes.get("ramCount")
        return value if isinstance(value, int) else None


class NameKey(NamedTuple):
    """Tasks with the same key are the same task. Official tasks have no user of their own."""

    vo: str | None
    label: str
    user: str | None
    name: str


def name_key(params: TaskParams, user: str, vo: str | None = None) -> NameKey:
    """The key of a submission by this user; `vo` is used when the dictionary names none."""
    owner = None if params.flag("official") else user
    return NameKey(params.vo or vo, params.prod_source_label, owner, params.task_name)


def looks_for_duplicates(params: TaskParams, *, allow_active: bool = False) -> bool:
    """Whether the name of the task matters: for analyses that ask for it."""
    return params.task_type == "anal" and (params.flag("uniqueTaskName") or allow_active)


def must_be_new(params: TaskParams) -> bool:
    """Whether no other task of the user may have the name, of whatever VO, label and type."""
    return params.flag("uniqueTaskName")


def decide(params: TaskParams, existing: Existing | None, *, allow_active: bool = False) -> Decision:
    """What becomes of a submission, given the newest task of the same name, if there is any.

    With `allow_active` a user's task that runs is changed in place.
    """
    if existing is None:
        return Decision(Code.NEW, "A new task.")
    name, old = shown(params.task_name), existing.task_id
    if existing.kind is not None and must_be_new(params):
        sentence = f"The task {old} ({existing.kind}) has the name {name}, which must be unique. jediTaskID={old}"
        return Decision(Code.IS_ACTIVE, sentence, old)
    if existing.kind is not None or not looks_for_duplicates(params, allow_active=allow_active):
        return Decision(Code.NEW, "A new task.")
    if existing.status in (None, "registered"):
        sentence = f"The task {old} of the name {name} was submitted already and waits. jediTaskID={old}"
        return Decision(Code.QUEUED, sentence, old)
    again = existing.status in AGAIN_FROM
    if again or (allow_active and existing.status in PATCHED_IN and existing.label == "user"):
        differs = (
            differences(params, existing.params, CHANGEABLE_KEYS | RENAMED.keys()) if existing.params else Differences()
        )
        if differs.work:
            return Decision(Code.IS_ACTIVE, _is_another(params, old, existing.status, differs), old)
        if again:
            sentence = f"Task {old}, {name}, was {existing.status} and is being run again."
        else:
            sentence = f"The parameters of the task {old}, which is {existing.status}, are changed."
        sentence = " ".join((sentence, *_kept(params, differs), f"jediTaskID={old}"))
        return Decision(Code.AGAIN if again else Code.PATCHED, sentence, old, changes_of(params.raw))
    wait = "" if existing.status == "broken" else ", or wait until that task has ended"
    sentence = (
        f"The task {old} of the name {name} is {existing.status}: give {_another_name(params)}{wait}. jediTaskID={old}"
    )
    return Decision(Code.IS_ACTIVE, sentence, old)


def _another_name(params: TaskParams) -> str:
    return "another name (--outDS)" if is_from_client(params.raw) else "another taskName"


def _is_another(params: TaskParams, old: int, status: str | None, differs: Differences) -> str:
    name = shown(params.task_name)
    has = " and ".join((", ".join(differs.work[:-1]), differs.work[-1])) if len(differs.work) > 1 else differs.work[0]
    return (
        f"The task {old} of the name {name}, which is {status}, was submitted with {has}, and would keep them: give "
        f"the new task {_another_name(params)}, or submit the task unchanged. jediTaskID={old}"
    )


def _kept(params: TaskParams, differs: Differences) -> list[str]:
    """Sentences on what was submitted and is not taken over."""
    said = []
    if differs.keys:
        said.append(f"It keeps its own {', '.join(differs.keys)}.")
    if differs.code:
        key = "--useNewCode" if is_from_client(params.raw) else "fixedSandbox"
        said.append(f"It keeps its own sandbox; use {key} to change it.")
    return said


def too_many(active: int, most: int | None) -> Decision | None:
    """A refusal when a user has more than `most` active tasks; None when there is no limit or it is kept."""
    if most is None or active <= most:
        return None
    return Decision(
        Code.TOO_MANY, f"You have {plural(active, 'active task')}, and at most {plural(most, 'is', 'are')} allowed."
    )


def changes_of(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a dictionary that may change a task that exists, under the names of task parameters."""
    changes: dict[str, Any] = {}
    for name, value in raw.items():
        own = RENAMED.get(name, name)
        if own in CHANGEABLE_KEYS or stream_of_ds_for(name) is not None:
            changes[own] = not value if name == "loopingCheck" and value is not None else value
    if "fixedSandbox" in changes and "sourceURL" in raw:
        changes["sourceURL"] = raw["sourceURL"]
    return changes


_NEEDS_DOOR = (
    "Change it while the task is open, by Change needs on its page or as one of the attributes of POST "
    "/api/v2/tasks/<id>/changes/; or submit the task again, under another name."
)


def check_changes(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Changes that come with a command. Raises ParamErrors for keys that cannot be changed and values that do not fit.

    Null stands for "as if it had never been given".
    """
    faults = Faults()
    check_amounts(raw, faults)
    faults.raise_if_any()
    for name, value in raw.items():
        key = _key(name)
        if key is None:
            said = f"{shown(name)} cannot be changed when a task runs again"
            if name in ATTRIBUTES:
                faults.add(name, "changeable", f"{said}. {_NEEDS_DOOR}")
            elif name in KEYS:
                faults.add(
                    name,
                    "changeable",
                    f"{said}; the parameters that can be changed are {', '.join(sorted(CHANGEABLE_KEYS))}.",
                )
            else:
                faults.add_unknown(name, said, name, CHANGEABLE_KEYS, "changeable")
        elif value is not None:
            check_value(key, value, name, faults)
    if "sourceURL" in raw and "fixedSandbox" not in raw:
        faults.add("sourceURL", "changeable", "sourceURL can only be changed together with fixedSandbox.")
    faults.raise_if_any()
    return changes_of(raw)


def _key(name: str) -> Key | None:
    own = RENAMED.get(name, name)
    if stream_of_ds_for(name) is not None:
        return DS_FOR_KEY
    return KEYS[own] if own in CHANGEABLE_KEYS or own == "sourceURL" else None


def apply_changes(raw: Mapping[str, Any], changes: Changes) -> dict[str, Any]:
    """The dictionary with the changes: null deletes a key, everything else is set."""
    kept = {name: value for name, value in raw.items() if name not in changes}
    return {**kept, **{name: value for name, value in changes.items() if value is not None}}


def changed_rule(rule: SplitRule, changes: Changes) -> SplitRule:
    """The split rule of a task with the changes. Raises SplitRuleError for a value that a code cannot hold."""
    for name, value in changes.items():
        code = RULE_KEYS.get(name)
        if code is None or (name == "useLocalIO" and changes.get("forceStaged") is not None):
            continue
        if code == "LI":
            rule = rule.without(code) if value is None else rule.having(code, bool(value))
        elif value is None or (CODES[code].kind == "flag" and not value):
            rule = rule.without(code)
        elif CODES[code].kind == "enum":
            rule = rule.having(code, number_of(code, str(value)))
        else:
            rule = rule.having(code, 1 if CODES[code].kind == "flag" else int(value))
    return rule
