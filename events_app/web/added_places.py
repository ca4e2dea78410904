"""Where the apps below show ranges of events, ask for them, and apply rules on them. What that takes is imported when used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from events_app.rules import stalls
from events_app.rules.range_refusals import GATE
from jedisite.web import page_places
from tasks_app.attention import added_rules
from tasks_app.attention.rules.findings import Found
from tasks_app.explaining import added_gates
from tasks_app.models import Task
from tasks_app.models.job import JobColumns

if TYPE_CHECKING:
    from tasks_app.explaining.rules.answers import Gate


def _job(job: JobColumns) -> Mapping[str, Any] | None:
    from events_app.web import job_ranges

    return job_ranges.of_job(job)


def _gate(task: Task, now: datetime) -> Gate | None:
    from events_app.reading import range_stalls

    return range_stalls.gate(task, now)


def _rule(now: datetime) -> Iterable[Found]:
    from events_app.reading import range_stalls

    return range_stalls.without_progress(now)


def register() -> None:
    """Add all of it; called once the apps are ready."""
    page_places.add(page_places.Section("events", "Events", "v", "events:events", "jobs"))
    page_places.add(page_places.TaskTab("events:task", "Events", "task-inputs", lambda task: bool(task.event_service)))
    page_places.add(page_places.JobPart("events_app/job_ranges.html", _job))
    added_gates.add(GATE, _gate)
    added_rules.add(stalls.KIND, stalls.ATTENTION, _rule)
