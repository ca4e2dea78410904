"""One pass of the task broker over tasks that wait for a nucleus: each is decided on the same snapshot of the grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction

from brokerage_app.brokers import production_task
from brokerage_app.brokers.production_task import Decision
from brokerage_app.cases.gathering import RemainingWork
from brokerage_app.grid.configured import configuration
from brokerage_app.verdicts import records
from brokerage_app.vocabulary.snapshot import Grid
from tasks_app.generation import nuclei
from tasks_app.generation.nuclei import Asked
from tasks_app.lifecycle import claims, nucleus_waits
from tasks_app.models import Task

ME = "task_broker"
Draw = Callable[[], float]
"""A number from 0 up to 1, by chance."""


@dataclass(slots=True)
class Round:
    """One pass: a snapshot of the grid, and by VO and label the work that nuclei have, with what the pass itself assigns.

    `read_at`: before grid and configuration were read, by the database's clock.
    """

    grid: Grid
    now: datetime
    draw: Draw
    read_at: datetime
    assigned: int = 0
    work: dict[tuple[str, str], RemainingWork] = field(default_factory=dict)
    snapshots: records.Snapshots = field(init=False)

    def __post_init__(self) -> None:
        self.snapshots = records.Snapshots(self.grid)

    def turn(self, task_id: int, fence: int) -> bool:
        """Decide for one claimed task. Returns whether it got a nucleus."""
        nucleus_waits.begin_look(task_id, fence, self.read_at)
        asked = nuclei.asked_of(Task.objects.select_related("work_queue").get(pk=task_id), self.now)
        work, draw = self._work(asked), self.draw()
        decision = production_task.decide(
            asked.needs, self.grid, configuration(), asked.gathering, draw=draw, work=work
        )
        if decision.drawn is None:
            self._keep(asked, decision, draw)
            claims.release_task(task_id, fence, wait=None, note=decision.sentence())
            return False
        with transaction.atomic():
            nuclei.assign(asked, fence, decision, by=ME)
            self._keep(asked, decision, draw)
        self._add(asked, decision.drawn.nucleus)
        self.assigned += 1
        return True

    def _kind(self, asked: Asked) -> tuple[str, str]:
        return asked.task.vo or "", asked.task.prod_source_label or ""

    def _work(self, asked: Asked) -> RemainingWork:
        kind = self._kind(asked)
        if kind not in self.work:
            self.work[kind] = nuclei.remaining_work(*kind)
        return self.work[kind]

    def _add(self, asked: Asked, nucleus: str) -> None:
        """The tasks that follow in this pass see what this one brings to its nucleus."""
        kind, needs = self._kind(asked), asked.needs
        self.work[kind] = self.work[kind].plus(nucleus, asked.gathering.group, needs.priority, asked.hs06s)

    def _keep(self, asked: Asked, decision: Decision, draw: float) -> None:
        records.keep(
            records.Decided(
                asked.task.id,
                decision.verdict,
                asked.needs,
                kind="task",
                broker="production_task",
                facts=nuclei.facts_of(asked, decision, self._work(asked), draw),
                snapshots=self.snapshots,
                sentence=decision.sentence(),
            )
        )
