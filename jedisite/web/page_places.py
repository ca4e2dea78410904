"""Places of pages where the apps above add their own: sections of the navigation, tabs of a task, parts of a job's page.

An app adds them in `AppConfig.ready()`; the pages read them here, and name nobody who adds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the navigation: `name` as pages say it, `key` behind g, the name of its `address`, and which it follows."""

    name: str
    title: str
    key: str
    address: str
    follows: str


@dataclass(frozen=True, slots=True)
class TaskTab:
    """A tab of the tasks for which `is_for` holds. `address` takes the number of the task; `follows` names an address, too."""

    address: str
    title: str
    follows: str
    is_for: Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class JobPart:
    """A part of a job's page: its template, and what that shows as `part`; None where a job has no such part."""

    template: str
    facts: Callable[[Any], Mapping[str, Any] | None]


SECTIONS: Final[dict[str, Section]] = {}
TASK_TABS: Final[dict[str, TaskTab]] = {}
JOB_PARTS: Final[dict[str, JobPart]] = {}


def add(place: Section | TaskTab | JobPart) -> None:
    """Add something to its place; the same once more changes nothing."""
    if isinstance(place, Section):
        SECTIONS[place.name] = place
    elif isinstance(place, TaskTab):
        TASK_TABS[place.address] = place
    else:
        JOB_PARTS[place.template] = place


def parts_of_job(job: Any) -> list[tuple[str, Mapping[str, Any]]]:
    """The added parts of the page of a job, each with its template."""
    found = ((part.template, part.facts(job)) for part in JOB_PARTS.values())
    return [(template, facts) for template, facts in found if facts is not None]
