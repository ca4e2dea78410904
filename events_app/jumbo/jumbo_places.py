"""Which queues take jumbo jobs of a task: its broker is asked, with needs of such jobs."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from brokerage_app.vocabulary.needs import TaskNeeds
from tasks_app.generation.grid_view import Brokered, GridView
from tasks_app.generation.wants import needs_of
from tasks_app.inputs.preprocessed import params_of
from tasks_app.models import Task

ANY_NUMBER: Final = 2**62


def jumbo_needs(needs: TaskNeeds, ready_events: int) -> TaskNeeds:
    """What jumbo jobs want of a queue: as other jobs, but they run as long as the queue lets them."""
    return replace(
        needs,
        jumbo=True,
        ready_events=ready_events,
        walltime_s=0,
        walltime_s_per_mb=0.0,
        cpu_hs06s=0.0,
        least_cpu_hs06s=0.0,
    )


def jumbo_brokered(task: Task, view: GridView, now: datetime, ready_events: int = ANY_NUMBER) -> Brokered:
    """What the broker says on jumbo jobs of a task of which so many events wait."""
    return view.decide(jumbo_needs(needs_of(task, params_of(task.id)), ready_events), task, now)


def jumbo_queues(task: Task, view: GridView, now: datetime, ready_events: int = ANY_NUMBER) -> list[str]:
    """The names of the queues that take jumbo jobs of a task now, the best first; none of a task that names its site."""
    if task.site:
        return []
    return [choice.site for choice in jumbo_brokered(task, view, now, ready_events).verdict.chosen]
