"""Libraries: when a build has ended, the jobs that waited for it start, or end with it."""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from jedisite.agents import Pass, renew_lease
from tasks_app.accounting.libraries import ended_libraries, settle

log = structlog.get_logger(__name__)
ME = "libraries"
LIMIT = 50


def run(limit: int = LIMIT) -> Pass:
    """See to the libraries whose build has ended since the last pass."""
    found = ended_libraries(limit)
    jobs = settle_all(found, by=ME)
    return Pass(len(found), f"{jobs} jobs waited for them" if found else "", more=len(found) == limit)


def settle_all(found: Iterable[tuple[int, int]], *, by: str) -> int:
    """Settle each (task, dataset); what fails unexpectedly is left for the next pass. Returns how many jobs moved."""
    jobs = 0
    for task_id, dataset_id in found:
        renew_lease()
        try:
            jobs += settle(task_id, dataset_id, by=by)
        except Exception:
            log.exception("libraries.failed", task=task_id, dataset=dataset_id)
    return jobs
