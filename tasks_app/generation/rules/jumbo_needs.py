"""What jumbo jobs want of a queue. Pure."""

from __future__ import annotations

from dataclasses import replace

from brokerage_app.vocabulary.needs import TaskNeeds


def jumbo_needs(needs: TaskNeeds, ready_events: int) -> TaskNeeds:
    """The needs of jumbo jobs of a task of which so many events wait: they run as long as their queue lets them."""
    return replace(
        needs,
        jumbo=True,
        ready_events=ready_events,
        walltime_s=0,
        walltime_s_per_mb=0.0,
        cpu_hs06s=0.0,
        least_cpu_hs06s=0.0,
        events_a_job=0,
    )
