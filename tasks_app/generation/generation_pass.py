"""What one pass of the job generator knows; read once for all tasks of the pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils import timezone

from brokerage_app.grid import configured
from brokerage_app.grid.configured import configuration
from brokerage_app.verdicts.records import Snapshots
from brokerage_app.vocabulary.snapshot import Grid
from jedisite.database.sql import the_time
from tasks_app.configured import site_limits
from tasks_app.counts import statistics
from tasks_app.generation.grid_view import GridView
from tasks_app.generation.groups import Throttle
from tasks_app.generation.queue_places import QueuePlaces
from tasks_app.generation.rules.explanation import FULL_WAIT
from tasks_app.generation.user_jobs import UserJobs
from tasks_app.models import Task

JUST_COUNTED_S = 1.0
"""Counts of jobs that the throttle has just taken are used again."""


@dataclass(frozen=True, slots=True)
class GenerationPass:
    """The grid with room in its queues, the copies of it that verdicts keep, what may be made, and the jobs of users.

    The jobs that the pass makes are counted in its parts. `read_at`: before the grid was read, by the database's clock.
    """

    view: GridView
    snapshots: Snapshots
    read_at: datetime
    throttle: Throttle = field(default_factory=Throttle)
    user_jobs: UserJobs | None = None
    """Without them all jobs have the priority of their task."""

    @classmethod
    def of(cls, grid: Grid, read_at: datetime) -> GenerationPass:
        """A pass over a grid, with the defaults of the configuration and nothing throttled."""
        return cls(GridView(grid), Snapshots(grid), read_at)

    def count(self, task: Task, jobs: int) -> None:
        """So many jobs of a task were made."""
        self.throttle.made(task, jobs)
        if self.user_jobs is not None:
            self.user_jobs.made(task.user, task.working_group, jobs)


def read_pass(throttle: Throttle, condition: str, values: Mapping[str, Any]) -> GenerationPass:
    """Read what a pass has to know. `condition`, with its values: SQL on the row `t` of tasks that may get jobs."""
    # Taken before anything is read: whatever changes from here on is a reason to look again.
    read_at = the_time()
    configured.forget()
    grid = statistics.current_grid(timezone.now(), JUST_COUNTED_S if throttle.queues.names else 0.0)
    view = GridView(grid, site_limits.as_here(configuration()), QueuePlaces(condition, values, FULL_WAIT))
    return GenerationPass(view, Snapshots(grid), read_at, throttle, UserJobs())
