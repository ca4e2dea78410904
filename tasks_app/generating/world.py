"""What one pass of the job generator knows of the grid. The jobs that it makes are counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from brokerage_app.brokers.choosing import broker_of, decide
from brokerage_app.case import grid_of
from brokerage_app.configuration import DEFAULTS, Configuration
from brokerage_app.needs import TaskNeeds
from brokerage_app.rules import Filter
from brokerage_app.snapshot import Grid, SiteView
from brokerage_app.verdict import Verdict


@dataclass(slots=True)
class World:
    """The grid as the pass has filled it so far, and the configuration that holds during it."""

    grid: Grid
    configuration: Configuration = field(default=DEFAULTS)

    @classmethod
    def of(cls, sites: Mapping[str, SiteView] | Iterable[SiteView]) -> World:
        """A world of queues alone, with the defaults of the configuration."""
        return cls(grid_of(sites))

    def site(self, name: str) -> SiteView:
        return self.grid.sites[name]

    def broker_of(self, needs: TaskNeeds) -> str:
        return broker_of(needs.vo, needs.label, self.configuration)

    def decide(self, needs: TaskNeeds, *, first: Sequence[Filter] = (), floor: int) -> Verdict:
        return decide(needs, self.grid, self.configuration, first=first, floor=floor)

    def made(self, name: str, jobs: int, *, share: str, resource_type: str) -> None:
        """Count jobs that were made for a queue."""
        self.grid = self.grid.with_jobs(name, jobs, share=share, resource_type=resource_type)
