"""A random walk over everything that can happen to tasks. Whatever the order, the books balance and nothing is forgotten."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from brokerage_app.grid import configured
from brokerage_app.models import Queue
from tasks_app.agents import data_carousel, job_generator, merger, messages, mover, notification
from tasks_app.agents.watchdogs import lost_jobs, stale_locks
from tasks_app.configured import timeout_limits
from tasks_app.dispatch.reports import update_job
from tasks_app.domain.states import TASK_FINAL
from tasks_app.domain.task_commands import TaskCommand
from tasks_app.lifecycle import claims
from tasks_app.models import File, Job, Task
from tasks_app.submission import command_queue
from tests.flow.balance import assert_books_balance
from tests.flow.driving import (
    AGENTS,
    SITE,
    add_dataset,
    add_files,
    add_queue,
    age,
    look_again,
    parameters,
    reads,
    submit,
    template,
    wake,
)
from tests.flow.moving_data import MovingData
from tests.flow.pilot import Pilot, final_report, report
from tests.flow.walk_clock import WalkClock, standing_clock
from tests.tasks_app.transfers.storage_scene import Storages
from tests.thorough import cases

pytestmark = pytest.mark.usefixtures("books")
STEPS = 300
AUDIT_EVERY = 60
WHERE_ALL_MOVES = 2
"""The seed with which transfers of each kind come to an end; chance decides."""
COMMANDS = ("kill", "finish", "pause", "resume", "retry", "incexec", "increase_attempts", "reassign", "remove_files")
SCOUTS = {"official": False, "skipScout": False}


EVERYBODY = (*AGENTS, mover.run, data_carousel.run, messages.run, notification.run)
PAUSES_S = (0.1, 3.0, 15.0)
"""Seconds before a step: mostly few; after some, part of what a process keeps of the grid is read anew; after others, all."""
LOOKS = 3
"""Rounds until a task that waited for a site has been looked at again and waits anew."""
QUIET = 15
"""Rounds without a job for a pilot after which nothing moves any more: in fewer, the attempts and merges of a chain of tasks
come one after the other."""


class Walk:
    """One walk: some tasks, some whose files move between storages, pilots, a chooser of what happens next."""

    def __init__(self, seed: int, storages: Storages, clock: WalkClock) -> None:
        self.clock = clock
        self.chance = random.Random(seed)
        # Brokers draw sites by the common one: else each run of a seed is another walk.
        random.seed(seed)
        self.pilots = [Pilot(site=SITE), Pilot(site="SITE_B")]
        self.at_work: list[dict[str, Any]] = []
        self.past: list[dict[str, Any]] = []
        add_queue("SITE_B")
        self.tasks = self._tasks()
        self.moving = MovingData(storages, self.chance)
        self.tasks[-1:-1] = self.moving.submit()
        self.pilots += self.moving.pilots
        self.steps: list[tuple[int, Callable[[], object]]] = [
            (30, self.agent),
            (12, self.fetch),
            (10, self.heartbeat),
            (20, self.end),
            (4, self.fall_silent),
            (4, self.repeat),
            (4, self.lose),
            (2, self.stale_claim),
            (3, self.command),
            (3, self.grow),
            (1, self.site_goes_or_comes),
            (2, self.small_bunch),
            (2, self.merge_late),
            *self.moving.steps(),
        ]

    def _tasks(self) -> list[int]:
        add_dataset("lab.in", 25)
        add_dataset("lab.pile", 60)
        add_dataset("lab.growing", 4, open=True)
        plain = submit(parameters("lab.a", reads("lab.in"), nFilesPerJob=2, maxAttempt=3, **SCOUTS))
        pairs = submit(
            parameters("lab.b", reads("lab.in"), reads("lab.pile", "IN2", ratio=1), nFilesPerJob=3, maxAttempt=4)
        )
        made = submit(
            parameters("lab.c", template("number", "--seed ${RNDMSEED}"), noInput=True, nEvents=200, nEventsPerJob=10)
        )
        child = submit(parameters("lab.d", reads("lab.a.out"), nFilesPerJob=2, noWaitParent=True), parent=plain)
        waiting = submit(parameters("lab.e", reads("lab.c.out"), nFilesPerJob=5), parent=made)
        growing = submit(
            parameters("lab.f", reads("lab.growing"), nFilesPerJob=1, nChunksToWait=1, runUntilClosed=True, **SCOUTS)
        )
        built = submit(
            parameters(
                "lab.h",
                reads("lab.in"),
                nFilesPerJob=3,
                maxAttempt=5,
                buildSpec={"archiveName": "sources.tar.gz", "jobParameters": "-i ${IN} -o ${OUT}"},
                sourceURL="https://cache.example:443",
            )
        )
        spec = {"transPath": "merge", "jobParameters": "${TRN_OUTPUT:OUTPUT} ${TRN_LOG:LOG}"}
        more = {"mergeOutput": True, "mergeSpec": spec, "nFilesPerMergeJob": 3, "maxAttempt": 4}
        extra = template("output", "lab.h.hist.${SN}.root", "lab.h.hist", allowNoOutput=True)
        merged = submit(parameters("lab.h", reads("lab.in"), extra, nFilesPerJob=1, **more))
        text = "<submission><command>run</command>"
        for number in range(8):
            named = "".join(f"<file>lab.in.{one:05d}</file>" for one in range(number * 3, number * 3 + 4))
            paired = f"<inds><name>lab.pile</name><file>lab.pile.{number // 2:05d}</file></inds>"
            text += f"<job><inds><name>lab.in</name>{named}</inds>{paired}<output>out.{number}</output></job>"
        grouped = submit(
            parameters(
                "lab.l",
                reads("lab.in"),
                reads("lab.pile", "IN2"),
                {"type": "constant", "value": "${XML_EXESTR}"},
                loadXML=f"{text}</submission>",
                maxAttempt=4,
            )
        )
        big = submit(parameters("lab.g", reads("lab.in"), nFilesPerJob=1, ramCount=16_000))
        return [plain, pairs, made, child, waiting, growing, built, merged, grouped, big]

    def step(self) -> None:
        self.clock.move(self.chance.choices(PAUSES_S, (90, 8, 2))[0])
        weights, actions = zip(*self.steps, strict=True)
        self.chance.choices(actions, weights)[0]()

    def agent(self) -> None:
        wake()
        self.chance.choice(EVERYBODY)()

    def small_bunch(self) -> None:
        wake()
        job_generator.run(tasks=2, jobs_a_task=self.chance.randint(1, 3))

    def fetch(self) -> None:
        self.at_work += self.chance.choice(self.pilots).fetch(self.chance.randint(1, 4))

    def heartbeat(self) -> None:
        if self.at_work:
            update_job(report(self.chance.choice(self.at_work), self.chance.choice(("starting", "running"))))

    def end(self) -> None:
        if self.at_work:
            job = self.at_work.pop(self.chance.randrange(len(self.at_work)))
            outcome = self.chance.choices(("finished", "failed", "incomplete"), (8, 2, 1))[0]
            update_job(self.moving.final_report(job, outcome))
            self.past.append(job)

    def work(self, pilot: Pilot) -> int:
        """All jobs that a pilot gets come to a good end. Returns how many."""
        found = pilot.fetch(100)
        for job in found:
            pilot.start(job)
            update_job(self.moving.final_report(job, "finished"))
        return len(found)

    def fall_silent(self) -> None:
        if self.at_work:
            self.past.append(self.at_work.pop(0))

    def repeat(self) -> None:
        """A report that was sent before, or is late, or contradicts the first."""
        if self.past:
            job = self.chance.choice(self.past)
            outcome = self.chance.choice(("finished", "failed"))
            update_job(self.chance.choice((report(job, "running"), final_report(job, outcome))))

    def lose(self) -> None:
        open_jobs = Job.objects.filter(status__in=("sent", "running")).order_by("id")
        if found := list(open_jobs.values_list("id", flat=True)[:20]):
            age(self.chance.choice(found), timeout_limits.limit("job.heartbeat").total_seconds() + 1)
            lost_jobs.run()

    def stale_claim(self) -> None:
        """A process claims tasks and dies."""
        claims.claim_tasks("a process that dies", ["defined", "ready", "running", "prepared", "pending"], 2)
        with connection.cursor() as cursor:
            cursor.execute(
                """UPDATE jedi_tasks SET lockedtime = least(lockedtime, clock_timestamp() - interval '301 seconds')
                    WHERE lockedby IS NOT NULL"""
            )
        if self.chance.random() < 0.7:
            stale_locks.run()

    def command(self) -> None:
        name = self.chance.choices(COMMANDS, (1, 1, 3, 5, 3, 3, 1, 1, 2))[0]
        more: dict[str, Any] | None = None
        if name == "finish" and self.chance.random() < 0.5:
            more = {"soft": True}
        elif name == "reassign":
            more = {"nucleus": "CERN", "back": True, "mode": self.chance.choice(("hard", "soft", "nokill"))}
        elif name == "remove_files":
            more = {"files": ",".join(self.some_files())}
        elif name == "incexec" and self.chance.random() < 0.5:
            more = {"changes": {"nFilesPerJob": self.chance.randint(1, 4)}}
        with suppress(command_queue.CommandRefusedError):
            command_queue.give_command(self.chance.choice(self.tasks), TaskCommand(name), by="ada", parameters=more)

    def some_files(self) -> list[str]:
        """Up to three files that tasks read."""
        names = sorted(set(File.objects.filter(type__in=["input", "pseudo_input"]).values_list("lfn", flat=True)))
        return self.chance.sample(names, min(len(names), self.chance.randint(1, 3))) or ["none"]

    def grow(self) -> None:
        start = 100 + self.chance.randrange(10_000) * 10
        with suppress(Exception):
            add_files("lab.growing", range(start, start + self.chance.randint(1, 3)))
        look_again()

    def site_goes_or_comes(self) -> None:
        queue = Queue.objects.get(name="SITE_B")
        queue.status = "offline" if queue.status == "online" else "online"
        queue.save()

    def merge_late(self) -> None:
        """Unmerged files of a queue that has been off for days are merged at the other one."""
        merger.run(now=timezone.now() + timedelta(days=self.chance.choice((2, 4))))

    def drain(self) -> None:
        """Let everything come to its end: no new faults, all pilots work, the growing dataset closes."""
        Queue.objects.update(status="online")
        self.moving.mend()
        with connection.cursor() as cursor:
            cursor.execute("UPDATE catalogue_datasets SET open = false WHERE name = 'lab.growing'")
            cursor.execute(
                "UPDATE jedi_tasks SET lockedtime = lockedtime - interval '301 seconds' WHERE lockedby IS NOT NULL"
            )
            cursor.execute(
                """UPDATE jobs SET heartbeat_at = heartbeat_at - interval '1 day',
                          statechangetime = statechangetime - interval '1 day' WHERE heartbeat_at IS NOT NULL"""
            )
        quiet = 0
        while quiet < QUIET:
            self.clock.move(max(PAUSES_S))
            self._go_on()
            wake()
            look_again()
            for run in EVERYBODY:
                run()
            worked = sum(map(self.work, self.pilots))
            quiet = 0 if worked else quiet + 1
            unfinished = Task.objects.exclude(status__in=TASK_FINAL).exclude(pk=self.tasks[-1])
            if quiet >= LOOKS and not unfinished.exists():
                return

    def _go_on(self) -> None:
        """Pauses that were asked for before may be obeyed only now, and tasks were given up while their only queue was off."""
        for task_id in Task.objects.filter(status="paused").values_list("id", flat=True):
            command_queue.give_command(task_id, "resume", by="ada")
        given_up = Task.objects.filter(status="exhausted").exclude(pk=self.tasks[-1])
        for task_id in given_up.values_list("id", flat=True):
            command_queue.give_command(task_id, "retry", by="ada")


@pytest.fixture
def storages(tmp_path: Path) -> Iterator[Storages]:
    configured.forget()
    yield Storages(tmp_path)
    configured.forget()


@pytest.fixture
def clock(books: None) -> Iterator[WalkClock]:
    with standing_clock() as clock:
        yield clock


@pytest.mark.parametrize("seed", range(1, 1 + cases(3, full=5)))
def test_whatever_happens_the_books_balance_and_every_task_ends_or_says_why_not(
    seed: int, storages: Storages, clock: WalkClock
) -> None:
    walk = Walk(seed, storages, clock)
    for number in range(1, STEPS + 1):
        walk.step()
        if number % AUDIT_EVERY == 0:
            assert_books_balance(f"seed {seed}, step {number}")
    walk.drain()
    for task in Task.objects.order_by("id"):
        if task.id == walk.tasks[-1] and task.status not in TASK_FINAL:
            assert "low memory" in (task.error_dialog or ""), "no site can take it, and it says so"
        else:
            assert task.status in TASK_FINAL, f"task {task.id} {task.name} is {task.status}: {task.error_dialog}"
    assert not Job.objects.open().exists()
    if seed == WHERE_ALL_MOVES:
        walk.moving.check_that_it_moved()
