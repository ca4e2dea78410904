"""Numbers that an installation sets, by their names in the JEDI documents.

They are rows of the shared configuration (gdp_config), which may differ by VO and by label. The environment of one machine
may set them too, and wins there: JEDI_LIMITS="name=number, ...". A name of the table of time-outs sets that limit, in
seconds; the others are those of COMPONENTS, each for all labels or for one (`MIN_JOBS_TO_PAUSE_managed`). What is set in
neither place has the documents' default.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from django.conf import settings

from brokerage_app.grid.configured import configuration
from brokerage_app.policy.configuration import Configuration, Row
from brokerage_app.policy.parameters import known

COMPONENTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "MAX_JOB_FAILURE_RATE_TO_PAUSE": "watchdog",
        "MAX_HEP_SCORE_FAILURE_RATE_TO_PAUSE": "watchdog",
        "MIN_JOBS_TO_PAUSE": "watchdog",
        "MIN_REMAINING_JOBS_TO_PAUSE": "watchdog",
        "BOOST_DONE_PERCENT": "watchdog",
        "BOOST_JOBS_BELOW": "watchdog",
        "CAP_RUNNING_USER_JOBS": "prio_mgr",
        "CAP_RUNNING_USER_CORES": "prio_mgr",
        "CAP_RUNNING_GROUP_JOBS": "prio_mgr",
        "CAP_RUNNING_GROUP_CORES": "prio_mgr",
        "USER_PRESTAGE_LIMIT": "anal_watchdog",
        "USER_TRANSFER_LIMIT": "anal_watchdog",
    }
)
"""Components of the parameters that JEDI_LIMITS may set; what they mean stands in brokerage_app/policy/parameters.py."""


def given() -> Mapping[str, float]:
    """What the environment of this machine sets."""
    found: Mapping[str, float] = settings.JEDI_LIMITS
    return found


def number(name: str, *suffixes: str, vo: str = "") -> float | None:
    """The number that holds for a name: JEDI_LIMITS first, then the configuration; None without any and without default.

    In each the longest name counts that is set: that of label and queue, of the label, of all. Raises KeyError for a name
    that is not in COMPONENTS.
    """
    component, values = COMPONENTS[name], given()
    for length in range(len(suffixes), -1, -1):
        found = values.get("_".join((name, *suffixes[:length])))
        if found is not None:
            return found
    set_here: float | None = configuration().get(component, name, *suffixes, vo=vo)
    return set_here


def as_here(found: Configuration) -> Configuration:
    """The configuration with what the environment of this machine sets in place of its rows, for who reads from it alone."""
    own = [
        (known(component, key), name, value)
        for name, value in given().items()
        for key, component in COMPONENTS.items()
        if name == key or name.startswith(f"{key}_")
    ]
    names = {name for _, name, _ in own}
    rows = [row for row in found.rows if row.key not in names]
    rows += [Row(about.app, about.component, name, f"{value:.15g}", "float") for about, name, value in own]
    return Configuration(tuple(rows)) if own else found


def unknown(names: Mapping[str, float], timeouts: Mapping[str, object]) -> list[str]:
    """Names that mean nothing."""

    def means_something(name: str) -> bool:
        return name in timeouts or any(name == key or name.startswith(f"{key}_") for key in COMPONENTS)

    return sorted(name for name in names if not means_something(name))


def most_records(vo: str | None) -> int:
    """Files, or ranges of events, that one input of a task may have in the books."""
    return int(configuration().get("taskrefiner", "MAX_FILE_RECORDS", vo=vo or ""))
