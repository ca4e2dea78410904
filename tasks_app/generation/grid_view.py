"""What one pass of the job generator knows of the grid. The jobs that it makes are counted."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.conf import settings

from brokerage_app.brokers.choosing import ANALYSIS, GENERIC, broker_of, decide
from brokerage_app.cases.analysis_settings import AnalysisFacts
from brokerage_app.formulas.queue_room import ALONE, QueueUsers, room_of
from brokerage_app.policy.configuration import DEFAULTS, Configuration
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.snapshot import Grid
from brokerage_app.vocabulary.verdict import Choice, Verdict
from tasks_app.generation.analysis_facts import AnalysisUsers
from tasks_app.generation.queue_places import QueuePlaces
from tasks_app.models import Task

BrokerFacts = AnalysisFacts | QueueUsers
"""What a broker is given besides needs, grid and configuration: that of analysis, and the generic one."""


@dataclass(frozen=True, slots=True)
class Brokered:
    """What a broker has decided on jobs with some needs. `facts`: what it was given besides; None where that is nothing."""

    needs: TaskNeeds
    verdict: Verdict
    broker: str
    facts: BrokerFacts | None = None


@dataclass(slots=True)
class GridView:
    """The grid as the pass has filled it so far, and the configuration that holds during it.

    `places`: who wants places in queues; None leaves all of them to everybody. `floor`: jobs that may be queued at a site
    however few it runs.
    """

    grid: Grid
    configuration: Configuration = field(default=DEFAULTS)
    places: QueuePlaces | None = None
    floor: int = field(default_factory=lambda: int(settings.JEDI_QUEUE_FLOOR))
    _users: AnalysisUsers | None = None

    def site(self, name: str) -> SiteView:
        return self.grid.sites[name]

    def decide(self, needs: TaskNeeds, task: Task, now: datetime) -> Brokered:
        """What the broker of the task says, who is given users and classes if it is that of analysis."""
        broker = broker_of(needs.vo, needs.label, self.configuration)
        if broker == ANALYSIS:
            if self._users is None:
                self._users = AnalysisUsers(self.configuration, now)
            facts = self._users.facts(task)
            verdict = decide(needs, self.grid, self.configuration, floor=self.floor, facts=facts, draw=random.random)
            return Brokered(needs, verdict, broker, facts)
        # Users who want places count where the broker divides them.
        queue_users = self.places.queue_users(task) if self.places is not None and broker == GENERIC else ALONE
        verdict = decide(needs, self.grid, self.configuration, floor=self.floor, queue_users=queue_users)
        # Jobs that are made later are counted in the same place.
        given = replace(queue_users, queued=dict(queue_users.queued)) if queue_users.users > 1 else None
        return Brokered(needs, verdict, broker, given)

    def room(self, choice: Choice, decided: Brokered) -> int:
        """How many more jobs a site takes that the broker chose, by what it was given."""
        queue_users = decided.facts if isinstance(decided.facts, QueueUsers) else ALONE
        return room_of(choice, self.site(choice.site), self.floor, queue_users)

    def made(self, name: str, jobs: int, task: Task, *, cores: int) -> None:
        """Count jobs that were made for a queue, each of so many cores."""
        self.grid = self.grid.with_jobs(
            name, jobs, share=task.gshare or "", resource_type=task.resource_type or "", user=task.user or ""
        )
        if self.places is not None:
            self.places.made(task, self.site(name).queue, jobs)
        if self._users is not None:
            self._users.made(task, jobs, jobs * cores)
