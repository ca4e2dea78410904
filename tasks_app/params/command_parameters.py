"""Parameters of commands: which command takes which, and their check. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from tasks_app.domain.task_commands import TaskCommand
from tasks_app.params.faults import Faults, ParamErrors, shown
from tasks_app.params.job_groups import MOST_GROUPS
from tasks_app.params.kinds import Key, check_value, split_names
from tasks_app.params.resubmission import check_changes

MOST_ATTEMPTS_ADDED: Final = 100

HARD, SOFT, NO_KILL = "hard", "soft", "nokill"

_AGAIN = (
    Key(
        "sole",
        "flag",
        "leave child tasks alone",
        title="Leave child tasks alone",
        hint="Tasks that read what this one makes do not run again after it.",
    ),
    Key(
        "staged",
        "flag",
        "use files that are still being staged",
        title="Use files that are still being staged",
        hint="Jobs read the files from their current storage.",
    ),
    Key(
        "keep",
        "flag",
        "keep share and priority",
        title="Keep share and priority",
        hint="They are not determined again.",
    ),
)
_TRANSCEND = Key(
    "transcend",
    "flag",
    "ignore the site's limits on retries (operators)",
    title="Ignore the limits on retries",
    hint="The site's limits on retries do not apply.",
)
_DISCARD = Key(
    "discard",
    "flag",
    "process events again that were processed before (event service)",
    title="Discard processed events",
    hint="Of inputs that are tried again, all events are processed anew. Only for tasks of event service.",
)
_SUBJOBS = Key(
    "subjobs",
    "text",
    "numbers of the subjobs (groups of files) that are tried again, such as 1,4-7; if absent, all",
    longest=30_000,
    title="Only these subjobs",
    hint="Of a task whose files are in groups: numbers from 0, such as 1,4-7. Empty: all that was not processed.",
)
TARGETS: Final = ("site", "nucleus", "cloud")

PARAMETERS: Final[Mapping[TaskCommand, tuple[Key, ...]]] = MappingProxyType(
    {
        TaskCommand.FINISH: (
            Key(
                "soft",
                "flag",
                "let running jobs end first",
                title="Let running jobs end first",
                hint="Only queued jobs are ended at once.",
            ),
        ),
        TaskCommand.RETRY: (*_AGAIN, _TRANSCEND, _DISCARD, _SUBJOBS),
        TaskCommand.INCEXEC: (
            *_AGAIN,
            Key(
                "changes",
                "object",
                "task parameters to change; null removes one",
                title="Parameters to change",
                hint="As JSON; null removes a parameter.",
            ),
        ),
        TaskCommand.INCREASE_ATTEMPTS: (
            Key(
                "attempts",
                "integer",
                "attempts for each file; if absent, as many as a retry gives",
                low=1,
                high=MOST_ATTEMPTS_ADDED,
                title="More attempts for each file",
                hint="Empty: as many as a retry gives.",
            ),
            _SUBJOBS,
        ),
        TaskCommand.REMOVE_FILES: (
            Key(
                "files",
                "text",
                "names of the files, separated by commas",
                required=True,
                longest=20_000,
                title="Files",
                hint="Names separated by commas, as on the tab Files.",
            ),
        ),
        TaskCommand.REASSIGN: (
            Key(
                "site",
                "text",
                "site for the jobs",
                longest=60,
                title="Site",
                hint="Queue for the jobs, as named on the page Sites. Fill in one of site, nucleus and cloud.",
            ),
            Key(
                "nucleus",
                "text",
                "nucleus for the outputs",
                longest=52,
                title="Nucleus",
                hint="Site for the outputs.",
            ),
            Key(
                "cloud",
                "text",
                "cloud for the task",
                longest=10,
                title="Cloud",
                hint="Region for the task.",
            ),
            Key(
                "back",
                "flag",
                "the task returns to its earlier state",
                title="Go back to the state before",
                hint="The task continues in its present state.",
            ),
            Key(
                "mode",
                "text",
                "which jobs are ended: hard (all), soft (queued ones) or nokill (none)",
                choices=(HARD, SOFT, NO_KILL),
                title="Jobs to end",
            ),
        ),
    }
)
"""What each command takes. Forms, the API and its schema, the help and the audit trail are made from it."""
NAMES: Final = tuple(dict.fromkeys(key.name for keys in PARAMETERS.values() for key in keys))


def named_files(given: Mapping[str, Any]) -> list[str]:
    """The names of files in the parameters of a command, without their scopes."""
    return [name.rpartition(":")[2] for name in split_names(str(given.get("files") or ""))]


def numbered_subjobs(text: str) -> list[int]:
    """The numbers of subjobs in a text such as 1,4-7, ascending, each once. Raises ValueError, which says what is wrong."""
    found: set[int] = set()
    for piece in split_names(text):
        first, dash, last = piece.partition("-")
        ends = [first, last if dash else first]
        if not all(0 < len(end) <= 6 and end.isascii() and end.isdecimal() for end in ends):
            raise ValueError(f"{shown(piece)} is neither a number of a subjob nor a range such as 4-7.")
        begin, end = map(int, ends)
        if end >= MOST_GROUPS or begin > end:
            raise ValueError(f"{shown(piece)}: subjobs are numbered from 0 to {MOST_GROUPS - 1}, a range ascends.")
        found.update(range(begin, end + 1))
    return sorted(found)


def written_numbers(numbers: Iterable[int]) -> str:
    """Numbers that ascend as `numbered_subjobs` reads them, those in a row as a range."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def subjobs_in(given: Mapping[str, Any]) -> list[int] | None:
    """The subjobs that the parameters of a command name; None when they name none, which means all."""
    return numbered_subjobs(str(given["subjobs"])) if given.get("subjobs") else None


def check_keys(keys: Iterable[Key], given: Mapping[str, Any], faults: Faults) -> dict[str, Any]:
    """What is given for these keys, with a fault for each value that does not fit and each that is needed and absent."""
    checked: dict[str, Any] = {}
    for key in keys:
        value = given.get(key.name)
        if key.required and value in (None, "", {}):
            faults.add(key.name, "required", "This field is required.")
        elif value is not None:
            check_value(key, value, key.name, faults)
            checked[key.name] = bool(value) if key.kind == "flag" else value
    return checked


def check(command: TaskCommand, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """The parameters of a command as they are stored; None when there are none.

    Nulls count as absent. Raises ParamErrors for a parameter that the command does not take, a value that does not
    fit, and changes that cannot be made to a task that exists.
    """
    keys, faults = PARAMETERS.get(command, ()), Faults()
    for name in given.keys() - {key.name for key in keys}:
        if given[name] is not None:
            takers = [c.value for c, known in PARAMETERS.items() if name in {key.name for key in known}]
            hint = f"only {' and '.join(takers)} can" if takers else "no command does"
            faults.add(name, "known parameter", f"{command.value} does not accept {shown(name)}; {hint}.")
    checked = check_keys(keys, given, faults)
    if command is TaskCommand.REASSIGN and not faults:
        _check_target(checked, faults)
    if "subjobs" in checked:
        try:
            numbered_subjobs(checked["subjobs"])
        except ValueError as error:
            faults.add("subjobs", "numbers", str(error))
    faults.raise_if_any()
    if "changes" in checked:
        checked["changes"] = _check_changes(checked["changes"])
    return {name: value for name, value in checked.items() if value is not False and value != {}} or None


def _check_target(given: Mapping[str, Any], faults: Faults) -> None:
    named = [name for name in TARGETS if name in given]
    for name in named:
        if not given[name].strip():
            faults.add(name, "not empty", "This text must not be empty.")
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
