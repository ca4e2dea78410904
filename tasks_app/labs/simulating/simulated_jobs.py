"""What a simulation keeps of tasks, jobs and sites while it runs, and what it leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from brokerage_app.vocabulary.site_view import SiteView
from tasks_app.domain.transfer_states import TransferKind
from tasks_app.labs.simulating.simulated_data import LinkFigures, TaskData
from tasks_app.labs.simulating.world import SimSite


@dataclass(slots=True)
class SimTask:
    id: int
    share: str
    label: str
    priority: int
    jobs_left: int
    arrived: float
    data: TaskData | None = None


class SimJob(NamedTuple):
    """A job that waits: when it was made, and when it could be started for the first time."""

    task: SimTask
    made: float
    ready: float


@dataclass(slots=True)
class SiteState:
    """A site while it runs: free slots, and waiting jobs by share as heaps of (-priority, number).

    assigned, transferring   jobs of a share that wait for their input, and whose outputs are on their way
    """

    given: SimSite
    view: SiteView
    free: int
    waiting: dict[str, list[tuple[int, int]]]
    running: dict[str, int]
    assigned: dict[str, int]
    transferring: dict[str, int]
    urgency: dict[str, dict[int, int]] = field(default_factory=dict)
    """How many jobs of each priority wait, by share."""

    def waits(self, share: str, priority: int, jobs: int) -> None:
        by_priority = self.urgency.setdefault(share, {})
        by_priority[priority] = by_priority.get(priority, 0) + jobs


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample: power that executes and that could be used, by share, in HS; busy slots, all slots, jobs that wait."""

    at: float
    executing: dict[str, float]
    wanted: dict[str, float]
    busy: int
    slots: int
    waiting: int


@dataclass(slots=True)
class Outcome:
    """What a run leaves. Waits are from a job's making to its start, by share and priority, in seconds.

    links            what went over each link, those with most first; None where no data moves
    transfer_waits   seconds from asking for a file to its arrival
    """

    samples: list[Sample] = field(default_factory=list)
    dispatched: int = 0
    by_chance: int = 0
    inversions: int = 0
    made: int = 0
    failed: int = 0
    without_input: int = 0
    verdicts: int = 0
    links: list[LinkFigures] | None = None
    transfer_waits: dict[TransferKind, list[float]] = field(default_factory=dict)
    task_waits: dict[tuple[str, int], list[float]] = field(default_factory=dict)
