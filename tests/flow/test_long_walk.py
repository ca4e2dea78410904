"""One long random walk: thousands of events over dozens of tasks of every kind."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tasks_app.agents import commando
from tasks_app.agents.watchdogs import exhausted, job_timeouts, pending
from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.domain.task_commands import COMMANDS, TaskCommand
from tasks_app.models import File, Job, Task
from tasks_app.outcomes import recovery, recovery_plans
from tasks_app.submission import command_queue
from tests.flow.balance import assert_books_balance
from tests.flow.driving import add_dataset, parameters, reads, submit, template
from tests.flow.test_random_walk import SCOUTS, Walk, clock, storages
from tests.flow.walk_clock import WalkClock
from tests.tasks_app.transfers.storage_scene import Storages
from tests.thorough import cases

pytestmark = [pytest.mark.usefixtures("books"), pytest.mark.timeout(cases(900, full=3600))]
__all__ = ["clock", "storages"]
STEPS = cases(1500, full=4000)
AUDIT_EVERY = 500
FAMILIES = 6


class LongWalk(Walk):
    """More tasks of more kinds, every command, time-outs whose time has come, and lost outputs."""

    def __init__(self, seed: int, storages: Storages, clock: WalkClock) -> None:
        super().__init__(seed, storages, clock)
        self.tasks[-1:-1] = self.moving.submit(1)
        self.steps += [
            (2, self.time_passes),
            (1, self.lose_outputs),
            (3, self.any_command),
            (20, self.fetch),
            (25, self.end),
        ]

    def _tasks(self) -> list[int]:
        first = super()._tasks()
        big = first.pop()
        for number in range(FAMILIES):
            first += self._family(f"lab.{number}")
        return [*first, big]

    def _family(self, name: str) -> list[int]:
        add_dataset(f"{name}.in", 15, events=30)
        scouted = submit(parameters(f"{name}.scouted", reads(f"{name}.in"), nFilesPerJob=1, maxAttempt=4, **SCOUTS))
        ranges = submit(
            parameters(
                f"{name}.ranges",
                reads(f"{name}.in"),
                template("number", "--skip ${SKIPEVENTS} --max ${MAXEVENTS}"),
                nEventsPerJob=20,
                nEventsPerInputFile=30,
                maxAttempt=4,
            )
        )
        numbered = submit(
            parameters(
                f"{name}.numbered", reads(f"{name}.in"), reads("seq_number", "SEQNUMBER"), nFilesPerJob=2, maxAttempt=3
            )
        )
        second = submit(parameters(f"{name}.second", reads(f"{name}.scouted.out"), nFilesPerJob=2), parent=scouted)
        third = submit(parameters(f"{name}.third", reads(f"{name}.second.out"), nFilesPerJob=3), parent=second)
        return [scouted, ranges, numbered, second, third]

    def time_passes(self) -> None:
        """A watchdog looks with a clock that is ahead."""
        now = timezone.now() + self.chance.choice((timedelta(minutes=6), timedelta(hours=3), timedelta(days=11)))
        self.chance.choice((commando.run, pending.run, exhausted.run, job_timeouts.run))(now=now)

    def lose_outputs(self) -> None:
        found = File.objects.filter(type="output", status="finished").order_by("task_id", "lfn")
        if outputs := list(found.values_list("task_id", "lfn")):
            task_id, lfn = self.chance.choice(outputs)
            with suppress(recovery_plans.CannotRecoverError):
                recovery.recover(task_id, [lfn], by="ada")

    def any_command(self) -> None:
        name = self.chance.choice(sorted(COMMANDS))
        with suppress(command_queue.CommandRefusedError):
            command_queue.give_command(
                self.chance.choice(self.tasks), TaskCommand(name), by="ada", parameters=self._options(name)
            )

    def _options(self, name: str) -> dict[str, Any] | None:
        if name == "reassign":
            return {
                "site": self.chance.choice(("SITE_A", "SITE_B")),
                "mode": self.chance.choice(("hard", "soft", "nokill")),
            }
        if name == "remove_files":
            return {"files": ",".join(self.some_files())}
        return {"soft": True} if name == "finish" and self.chance.random() < 0.5 else None


def test_thousands_of_events_over_dozens_of_tasks_leave_books_that_balance(
    storages: Storages, clock: WalkClock
) -> None:
    walk = LongWalk(20_261_120, storages, clock)
    assert len(walk.tasks) >= 36
    for number in range(1, STEPS + 1):
        walk.step()
        if number % AUDIT_EVERY == 0:
            assert_books_balance(f"step {number}")
    walk.drain()
    for task in Task.objects.order_by("id"):
        if task.id == walk.tasks[-1] and task.status not in TASK_FINAL:
            # The watchdogs' clock was ahead: they may have given up while the only site was offline.
            reason = "no progress was possible since" if task.status == TaskStatus.EXHAUSTED else "low memory"
            assert reason in (task.error_dialog or ""), "no site can take it, and it says so"
        else:
            assert task.status in TASK_FINAL, f"task {task.id} {task.name} is {task.status}: {task.error_dialog}"
    assert not Job.objects.open().exists()
    walk.moving.check_that_it_moved()
