"""Objects inside the dictionary: further steps of a task (build, merge, preprocessing), and its schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tasks_app.params.faults import Faults, join_path, shown
from tasks_app.params.kinds import Key, check_value
from tasks_app.params.schedule import LONGEST_S, SHORTEST_S

_LABEL = Key("prodSourceLabel", "text", "Source label of the step's jobs", nullable=True, longest=20)
_ARCHIVE = Key("archiveName", "text", "Sandbox with the sources", nullable=True, longest=256)
_JOB_PARAMETERS = Key("jobParameters", "text", "Command line of the step", required=True, longest=200_000, lines=True)
_TRANS_PATH = Key("transPath", "text", "Transformation of the step", nullable=True, longest=128)
_LOCAL_IO = Key("useLocalIO", "flag", "Copy inputs to local disk", nullable=True)
_VIA_DDM = Key("tarBallViaDDM", "text", "Sandbox as dataset:file", nullable=True, longest=512)

_PERIODIC = (
    Key("every_s", "integer", "Seconds from one time to the next", nullable=True, low=SHORTEST_S, high=LONGEST_S),
    Key("cron", "text", "Times as a cron line of five fields, in UTC; instead of every_s", nullable=True, longest=100),
    Key("jobs", "integer", "Number of jobs made each time; default: 1", nullable=True, low=1, high=10_000),
    Key("until", "text", "Time after which no more jobs are made (ISO 8601, UTC)", nullable=True, longest=40),
    Key(
        "most_open",
        "integer",
        "No jobs are made while more inputs than this are unprocessed",
        nullable=True,
        low=1,
        high=1_000_000,
    ),
)

SPEC_KEYS: dict[str, Sequence[Key]] = {
    "buildSpec": (_LABEL, _ARCHIVE, _JOB_PARAMETERS, _TRANS_PATH, _VIA_DDM),
    "mergeSpec": (_JOB_PARAMETERS, _TRANS_PATH, _LOCAL_IO),
    "preproSpec": (_LABEL, _JOB_PARAMETERS, _TRANS_PATH),
    "esmergeSpec": (_JOB_PARAMETERS, _TRANS_PATH),
    "periodic": _PERIODIC,
}


def check_spec(name: str, value: Mapping[str, Any], faults: Faults) -> None:
    """Add a fault for each unknown, missing or wrong key of the object."""
    keys = {key.name: key for key in SPEC_KEYS[name]}
    for inner, one in value.items():
        where = join_path(name, inner)
        if inner in keys:
            check_value(keys[inner], one, where, faults)
        else:
            faults.add_unknown(where, f"{shown(inner)} is not a key of {name}", inner, keys)
    for key in keys.values():
        if key.required and key.name not in value:
            faults.add(join_path(name, key.name), "required", f"{name} needs {key.name}.")
