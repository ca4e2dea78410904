"""What one pass of the job generator knows of the grid. The jobs that it makes are counted."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from brokerage_app.brokers.choosing import ANALYSIS, GENERIC, broker_of, decide
from brokerage_app.cases.analysis_settings import AnalysisFacts
from brokerage_app.cases.case import grid_of
from brokerage_app.formulas.queue_room import ALONE, Crowd
from brokerage_app.policy.configuration import DEFAULTS, Configuration
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.snapshot import Grid
from brokerage_app.vocabulary.verdict import Verdict
from tasks_app.generation.analysis_facts import AnalysisCrowd
from tasks_app.generation.queue_places import Places
from tasks_app.models import Task

Known = AnalysisFacts | Crowd
"""What a broker is told besides needs, grid and configuration: that of analysis, and the generic one."""


@dataclass(slots=True)
class World:
    """The grid as the pass has filled it so far, and the configuration that holds during it.

    `places`: who wants places in queues; None leaves all of them to everybody.
    """

    grid: Grid
    configuration: Configuration = field(default=DEFAULTS)
    places: Places | None = None
    _users: AnalysisCrowd | None = None

    @classmethod
    def of(cls, sites: Mapping[str, SiteView] | Iterable[SiteView]) -> World:
        """A world of queues alone, with the defaults of the configuration."""
        return cls(grid_of(sites))

    def site(self, name: str) -> SiteView:
        return self.grid.sites[name]

    def broker_of(self, needs: TaskNeeds) -> str:
        return broker_of(needs.vo, needs.label, self.configuration)

    def decide(self, needs: TaskNeeds, task: Task, now: datetime, *, floor: int) -> Verdict:
        """What the broker of the task says, who is told of users and classes if it is that of analysis."""
        if self.broker_of(needs) != ANALYSIS:
            crowd = self.crowd(needs, task)
            return decide(needs, self.grid, self.configuration, floor=floor, crowd=crowd)
        if self._users is None:
            self._users = AnalysisCrowd(self.configuration, now)
        facts = self._users.facts(task)
        return decide(needs, self.grid, self.configuration, floor=floor, facts=facts, draw=random.random)

    def crowd(self, needs: TaskNeeds, task: Task) -> Crowd:
        """The users who want places, where the broker of the task divides them."""
        return self.places.crowd(task) if self.places is not None and self.broker_of(needs) == GENERIC else ALONE

    def known_of(self, task: Task, needs: TaskNeeds) -> Known | None:
        """What the broker is told now of the task and its users, besides needs; None is nothing, or that it was not asked."""
        if self.broker_of(needs) == ANALYSIS:
            return self._users.facts(task) if self._users is not None else None
        crowd = self.crowd(needs, task)
        # Jobs that are made later are counted in the same place.
        return replace(crowd, queued=dict(crowd.queued)) if crowd.users > 1 else None

    def made(self, name: str, jobs: int, task: Task, *, cores: int) -> None:
        """Count jobs that were made for a queue, each of so many cores."""
        self.grid = self.grid.with_jobs(
            name, jobs, share=task.gshare or "", resource_type=task.resource_type or "", user=task.user or ""
        )
        if self.places is not None:
            self.places.made(task, self.site(name).queue, jobs)
        if self._users is not None:
            self._users.made(task, jobs, jobs * cores)
