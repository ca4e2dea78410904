"""Numbers that an installation may set, by their names in the JEDI documents: JEDI_LIMITS="name=number, ...".

A name of the table of time-outs sets that limit, in seconds; the others switch on or move what is listed in KEYS, each
for all labels or for one (`MIN_JOBS_TO_PAUSE_managed`). What is not set has the documents' default.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from django.conf import settings

KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "MAX_JOB_FAILURE_RATE_TO_PAUSE": "part of a task's jobs that fail from which it is paused, 0 to 1; unset is never",
        "MAX_HEP_SCORE_FAILURE_RATE_TO_PAUSE": "the same by the CPU work that is lost",
        "MIN_JOBS_TO_PAUSE": "jobs that a task must have to be paused (1000)",
        "MIN_REMAINING_JOBS_TO_PAUSE": "jobs that must remain (100)",
        "CAP_RUNNING_USER_JOBS": "running jobs of one user; unset is any number",
        "CAP_RUNNING_USER_CORES": "cores in use by one user",
        "CAP_RUNNING_GROUP_JOBS": "running jobs of one working group",
        "CAP_RUNNING_GROUP_CORES": "cores in use by one working group",
        "USER_PRESTAGE_LIMIT": "GB that are staged from tape for one user; unset is any volume",
        "USER_TRANSFER_LIMIT": "GB that are transferred for jobs of one user",
        "BOOST_DONE_PERCENT": "per cent of files done from which a task is hurried (95)",
        "BOOST_JOBS_BELOW": "jobs to do below which a task is hurried (100)",
    }
)


def given() -> Mapping[str, float]:
    """What this installation sets."""
    found: Mapping[str, float] = settings.JEDI_LIMITS
    return found


def number(name: str, label: str = "") -> float | None:
    """The number set for a name, that of the label before that of all; None when it is not set."""
    values = given()
    return values.get(f"{name}_{label}", values.get(name)) if label else values.get(name)


def unknown(names: Mapping[str, float], timeouts: Mapping[str, object]) -> list[str]:
    """Names that mean nothing."""

    def known(name: str) -> bool:
        return name in timeouts or any(name == key or name.startswith(f"{key}_") for key in KEYS)

    return sorted(name for name in names if not known(name))
