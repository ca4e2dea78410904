"""Libraries: when a build has ended, the jobs that waited for it start, or end with it."""

from __future__ import annotations

from jedisite.agents import Pass, renew_lease
from tasks_app.accounting.libraries import ended_libraries, settle

ME = "libraries"
LIMIT = 50


def run(limit: int = LIMIT) -> Pass:
    """See to the libraries whose build has ended since the last pass."""
    found = ended_libraries(limit)
    jobs = 0
    for task_id, dataset_id in found:
        renew_lease()
        jobs += settle(task_id, dataset_id, by=ME)
    return Pass(len(found), f"{jobs} jobs waited for them" if found else "", more=len(found) == limit)
