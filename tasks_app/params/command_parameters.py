"""Parameters of commands: which command takes which, and their check. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from tasks_app.domain.states import TaskCommand
from tasks_app.params.faults import Faults, ParamErrors, shown
from tasks_app.params.kinds import Key, check_value
from tasks_app.params.resubmission import check_changes

MOST_ATTEMPTS_ADDED: Final = 100

HARD, SOFT, NO_KILL = "hard", "soft", "nokill"

_AGAIN = (
    Key("sole", "flag", "child tasks are left alone"),
    Key("discard", "flag", "ranges of events that finished are processed again"),
    Key("staged", "flag", "files that are still being staged are used"),
    Key("keep", "flag", "share and priority stay as they are"),
    Key("transcend", "flag", "the site's limits on retries do not count (operators)"),
)
TARGETS: Final = ("site", "nucleus", "cloud")

PARAMETERS: Final[Mapping[TaskCommand, tuple[Key, ...]]] = MappingProxyType(
    {
        TaskCommand.FINISH: (Key("soft", "flag", "running jobs may end first"),),
        TaskCommand.RETRY: _AGAIN,
        TaskCommand.INCEXEC: (
            *_AGAIN,
            Key("changes", "object", "task parameters to change; null takes one away"),
        ),
        TaskCommand.INCREASE_ATTEMPTS: (
            Key(
                "attempts",
                "integer",
                "attempts that each file gets; without a number, as many as a retry gives",
                low=1,
                high=MOST_ATTEMPTS_ADDED,
            ),
        ),
        TaskCommand.REASSIGN: (
            Key("site", "text", "the site that is to take the jobs", required=True, longest=60),
            Key("nucleus", "text", "the nucleus that is to get the outputs", required=True, longest=52),
            Key("cloud", "text", "the cloud that is to take the task", required=True, longest=10),
            Key("back", "flag", "the task goes back to the state in which it was"),
            Key("mode", "text", "which jobs are ended: all, queued ones or none", choices=(HARD, SOFT, NO_KILL)),
        ),
    }
)
NAMES: Final = tuple(dict.fromkeys(key.name for keys in PARAMETERS.values() for key in keys))


def check(command: TaskCommand, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """The parameters of a command as they are stored; None when there are none.

    Nulls count as absent. Raises ParamErrors for a parameter that the command does not take, a value that does not
    fit, and changes that cannot be made to a task that exists.
    """
    keys = {key.name: key for key in PARAMETERS.get(command, ())}
    faults = Faults()
    checked: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        if name not in keys:
            takers = [c.value for c, known in PARAMETERS.items() if name in {key.name for key in known}]
            hint = f"only {' and '.join(takers)} can" if takers else "no command does"
            faults.add(name, "known parameter", f"{command.value} does not take {shown(name)}; {hint}.")
            continue
        check_value(keys[name], value, name, faults)
        checked[name] = bool(value) if keys[name].kind == "flag" else value
    if command is TaskCommand.REASSIGN and not faults:
        _check_target(checked, faults)
    faults.raise_if_any()
    if "changes" in checked:
        checked["changes"] = _check_changes(checked["changes"])
    return {name: value for name, value in checked.items() if value is not False and value != {}} or None


def _check_target(given: Mapping[str, Any], faults: Faults) -> None:
    named = [name for name in TARGETS if name in given]
    if len(named) != 1:
        faults.add(named[1] if named else "site", "one of", f"Name exactly one of {', '.join(TARGETS)}.")


def _check_changes(raw: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return check_changes(raw)
    except ParamErrors as exc:
        faults = Faults()
        for error in exc.errors:
            faults.add(f"changes.{error.field}" if error.field else "changes", error.rule, error.message)
        faults.raise_if_any()
        raise
