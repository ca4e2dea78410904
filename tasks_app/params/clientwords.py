"""Parameters in the words of PanDA's client: prun's options, for the sentences that its users read. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from tasks_app.params.faults import ParamErrors, shown

CLIENT: Final = "panda-client"
"""Begins the processing type of what the client submits."""
OPTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "taskName": "--outDS",
        "log": "--outDS",
        "log_merge": "--outDS",
        "parent_tid": "--parentTaskID",
        "currentPriority": "--priority",
        "nMaxFilesPerJob": "--maxNFilesPerJob",
        "cpuTime": "--cpuTimePerEvent",
        "ramCount": "--memory",
        "coreCount": "--nCore",
        "maxCoreCount": "--maxCore",
        "addNthFieldToLFN": "--addNthFieldOfInFileToLFN",
        "container_name": "--containerImage",
        "multiStepExec": "--containerImage",
        "dsForIN": "--inDS",
        "buildSpec": "--bexec",
        "fixedSandbox": "--useNewCode",
        "noLoopingCheck": "--noLoopingCheck",
        "debugMode": "--debugMode",
        "skipScout": "--expertOnly_skipScout",
    }
    | {
        name: f"--{name}"
        for name in (
            "site",
            "excludedSite",
            "includedSite",
            "nGBPerJob",
            "workingGroup",
            "maxWalltime",
            "outDiskCount",
            "skipFilesUsedBy",
            "maxAttempt",
            "useSecrets",
            "nFiles",
            "nFilesPerJob",
            "nEvents",
            "nEventsPerJob",
            "nEventsPerFile",
            "pfnList",
            "vo",
            "transferType",
            "avoidVP",
            "architecture",
            "transPath",
            "prodSourceLabel",
            "official",
            "nGBPerMergeJob",
            "mergeOutput",
            "loadXML",
            "noWaitParent",
            "framework",
        )
    }
)
"""The option that gives a parameter of the task."""
_ITEM = re.compile(r"jobParameters\[([0-9]+)\]\.?(.*)")
_OF_INPUT: Final = MappingProxyType(
    {
        "dataset": "--inDS",
        "offset": "--nSkipFiles",
        "include": "--match",
        "exclude": "--antiMatch",
        "files": "--inputFileList",
    }
)
_OF_OUTPUT: Final = MappingProxyType(
    {"dataset": "--outDS", "container": "--outDS", "destination": "--destSE", "value": "--outputs"}
)


ADDED: Final = r"\.log\.tgz(\.\d+)*$"
"""The client's own pattern of files to leave out."""


def is_from_client(raw: object) -> bool:
    return isinstance(raw, Mapping) and str(raw.get("processingType") or "").startswith(CLIENT)


def option_of(field: str, raw: Mapping[str, Any]) -> str:
    """The option that gave this field of a submission; the field itself when no option does."""
    found = _ITEM.match(field)
    if found is None:
        return OPTIONS.get(re.split(r"[.\[]", field, maxsplit=1)[0], field)
    try:
        item = raw["jobParameters"][int(found[1])]
        kind, value = item.get("param_type"), str(item.get("value") or "")
    except (LookupError, TypeError, AttributeError):
        return field
    return _option_of_item(kind, value, re.split(r"[.\[]", found[2], maxsplit=1)[0]) or field


def _option_of_item(kind: str | None, value: str, key: str) -> str | None:
    if kind == "output":
        return _OF_OUTPUT.get(key)
    if kind == "input":
        first = "${IN/T}" in value or "${DBR}" in value
        own = "--dbRelease" if "${DBR}" in value else "--inDS"
        return (_OF_INPUT | {"dataset": own}).get(key) if first else "--secondaryDSs"
    return None


def option_of_input(item: Mapping[str, Any], key: str, raw: Mapping[str, Any]) -> str:
    """The option that gave this key of an input item of a task; the key itself when the client did not submit the task."""
    if not is_from_client(raw):
        return key
    return _option_of_item("input", str(item.get("value") or ""), key) or OPTIONS.get(key, key)


def quoting(raw: object) -> Callable[[str], str]:
    """How the patterns of a task are quoted: as its user wrote them.

    The client makes regular expressions of what it is given, and leaves out logs by a pattern of its own.
    """
    return _as_typed if is_from_client(raw) else shown


def _as_typed(text: str) -> str:
    given = [piece for piece in text.split(",") if piece != ADDED]
    typed = shown(",".join(given).replace(".*", "*").replace(r"\.", "."))
    added = f"{shown(ADDED)}, which the client adds,"
    if len(given) == len(text.split(",")):
        return typed
    return f"{typed} with {added}" if given else added


def in_options(exc: ParamErrors, raw: object) -> ParamErrors:
    """The same faults, each with the option that a user of the client gave, when the client submitted this."""
    if not is_from_client(raw) or not isinstance(raw, Mapping):
        return exc
    errors = [replace(error, field=option_of(error.field, raw)) for error in exc.errors]
    return ParamErrors(tuple(dict.fromkeys(errors)))  # one option may give several fields
