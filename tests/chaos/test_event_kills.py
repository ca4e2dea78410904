"""Consumers of events are killed at any moment: each range is processed exactly once, and the books balance.

Processes of their own play pilots, on the functions behind the calls of pilots. What each was handed and what it was told
of its reports, it writes into a file of its own, with one call of the system a line.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from multiprocessing.sharedctypes import RawValue
from pathlib import Path

import pytest
from django.db import connection, connections, transaction

from brokerage_app.models import StorageEndpoint
from events_app.dispatch import handing_ranges, range_accounts
from events_app.lifecycle import range_handout
from events_app.models import Event
from events_app.rules.event_states import EventStatus
from events_app.rules.range_ids import parse_range_id
from jedisite.database.sql import hot_cursor
from tasks_app.agents import adder, job_generator, post_processor
from tasks_app.dispatch.handing_out import Request, get_jobs
from tasks_app.domain.states import JOB_AT_PILOT
from tasks_app.models import Job
from tasks_app.outcomes.job_outcome import Outcome
from tasks_app.outcomes.outcomes import book
from tests.flow.balance import assert_books_balance
from tests.flow.driving import SITE, add_dataset, add_queue, parameters, reads, settle, status, submit, task, wake
from tests.flow.pilot import Job as Described
from tests.flow.pilot import final_report, proof, report, update_job
from tests.thorough import cases

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(900)]
CONSUMERS = 8
FILES = 4
EVENTS_A_FILE = cases(2_000, full=25_000)
KILLS = cases(16, full=50)
A_CALL = 100
STORE = 4711
"""The number of the storage where outputs of ranges lie."""
CALLS_A_KILL = FILES * EVENTS_A_FILE // (A_CALL * KILLS)
"""Between two kills consumers ask so many times, so that kills are spread over the whole work, however fast it goes."""
FAILS_ONE_IN = 200
CONTEXT = multiprocessing.get_context("fork")
LOCK = " FOR UPDATE"
ROUNDS = 20 * KILLS


def _consume(number: int, kept: Path, seed: int, guarded: bool, may_ask: Callable[[], None]) -> None:
    """One consumer after the other, until no job is left. Killed from outside at any moment."""
    connections.close_all()
    if not guarded:
        for name in ("_OF_JOBSET", "_OF_TASK"):
            if hasattr(range_handout, name):
                setattr(range_handout, name, getattr(range_handout, name).replace(LOCK, ""))
    chance, file = random.Random(seed), os.open(kept, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    while found := get_jobs(Request(SITE, "", 1, node=f"consumer-{number}", worker=str(number))):
        (job,) = found
        update_job(report(job, "running"))
        if job.get("eventService") == "True":
            _take_all(job, chance, file, may_ask)
            update_job(report(job, "finished", outputs={}))
        else:
            update_job(final_report(job, "finished"))
    os._exit(0)


def _take_all(job: Described, chance: random.Random, file: int, may_ask: Callable[[], None]) -> None:
    while True:
        may_ask()
        ranges = handing_ranges.hand_out(job["PandaID"], A_CALL, proof(job))
        if not ranges:
            return
        ids = [one["eventRangeID"] for one in ranges]
        _write(file, "handed", ids)
        said = [(one, "failed" if chance.randrange(FAILS_ONE_IN) == 0 else "finished") for one in ids]
        items = [{"eventRangeID": one, "eventStatus": word, "objstoreID": STORE} for one, word in said]
        answer = range_accounts.account(items, proof(job))
        done = [one for (one, word), took in zip(said, answer.answers, strict=True) if took and word == "finished"]
        _write(file, "finished", done)


def _write(file: int, what: str, ids: list[str]) -> None:
    os.write(file, f"{json.dumps([what, ids])}\n".encode())


class Farm:
    """Consumers at work, of which some are killed."""

    def __init__(self, kept: Path, *, guarded: bool) -> None:
        self.kept, self.guarded, self.chance = kept, guarded, random.Random(7)
        self.at_work: dict[int, ForkProcess] = {}
        # A process that is killed holds neither.
        self.calls, self.is_free = CONTEXT.Semaphore(0), RawValue("b", 0)
        self.kills = 0
        self.started = 0

    def start(self) -> None:
        connection.close()
        for number in range(CONSUMERS):
            if number not in self.at_work:
                self.started += 1
                seed = self.started
                args = (number, self.kept / f"{number}.jsonl", seed, self.guarded, self.wait)
                process = CONTEXT.Process(target=_consume, args=args)
                process.start()
                self.at_work[number] = process

    def allow(self, calls: int) -> None:
        """Let consumers ask for ranges so many times more, whoever comes first."""
        for _ in range(calls):
            self.calls.release()

    def kill_one(self) -> None:
        """After a while of chance, a consumer of chance; its job is lost, as a watchdog finds out."""
        wait([one.sentinel for one in self.at_work.values()], timeout=self.chance.uniform(0.02, 0.3))
        number = self.chance.choice(sorted(self.at_work))
        process = self.at_work.pop(number)
        process.kill()
        process.join(30)
        self.kills += process.exitcode != 0
        lose_jobs_of(number)

    def wait(self) -> None:
        """In a consumer: until it may ask."""
        if not self.is_free.value:
            self.calls.acquire()

    def end(self) -> None:
        """All ask as often as they like, until no job is left."""
        self.is_free.value = 1
        self.allow(CONSUMERS)
        for number, process in list(self.at_work.items()):
            process.join(120)
            assert process.exitcode == 0
            del self.at_work[number]
            lose_jobs_of(number)


def lose_jobs_of(number: int) -> None:
    """Jobs that this consumer had are not heard of any more."""
    with transaction.atomic(), hot_cursor() as cursor:
        lost = Job.objects.filter(worker_id=str(number), status__in=JOB_AT_PILOT).values_list("id", "task_id")
        book(
            cursor,
            [
                Outcome(job, task, "failed", "jobdispatcher", 100, "lost heartbeat", by="job_timeouts")
                for job, task in lost.order_by("id")
            ],
        )


def make_task(name: str = "user.ada.kills") -> int:
    """One after the other in a test has its own name."""
    if not StorageEndpoint.objects.filter(name="EVENTS").exists():
        add_queue(catchall="", job_seed="all")
        StorageEndpoint.objects.create(name="EVENTS", site_name="ELSEWHERE", path="/events", number=STORE)
        add_dataset("lab.events", FILES, events=EVENTS_A_FILE)
    made = submit(
        parameters(
            name,
            reads("lab.events"),
            nFilesPerJob=1,
            nEventsPerInputFile=EVENTS_A_FILE,
            nEventsPerWorker=1,
            nEsConsumers=2,
            maxAttemptES=20,
            maxAttemptEsJob=200,
            notDiscardEvents=True,
            maxAttempt=20,
        )
    )
    settle()
    return made


def turn() -> None:
    wake()
    for agent in (adder, job_generator, post_processor):
        agent.run()


def lines(kept: Path, what: str) -> list[str]:
    found: list[str] = []
    for file in sorted(kept.iterdir()):
        for line in file.read_text().splitlines():
            name, ids = json.loads(line)
            found += ids if name == what else []
    return found


def position(range_id: str) -> tuple[int, int]:
    read = parse_range_id(range_id)
    return read.file_id, read.process_id


def run(kept: Path, *, guarded: bool, kills: int, name: str = "user.ada.kills") -> int:
    made, farm = make_task(name), Farm(kept, guarded=guarded)
    for _ in range(ROUNDS):
        farm.start()
        if farm.kills < kills:
            farm.allow(CALLS_A_KILL)
            farm.kill_one()
        else:
            farm.end()
        turn()
        if status(made) in ("done", "finished", "failed", "exhausted"):
            farm.end()
            assert farm.kills == kills, f"the task was done after {farm.kills} kills"
            return made
    raise AssertionError(f"the task does not end: {told(made)}")


def told(made: int) -> str:
    """What is to be known of a task that does not end."""
    of_jobs = Counter(Job.objects.filter(task_id=made).values_list("event_service", "status", "sub_status"))
    ranges = Counter(Event.objects.filter(task_id=made).values_list("status", flat=True))
    return f"{status(made)} ({task(made).error_dialog}); jobs {dict(of_jobs)}; blocks {dict(ranges)}"


def test_consumers_that_are_killed_process_each_range_exactly_once(tmp_path: Path) -> None:
    made = run(tmp_path, guarded=True, kills=KILLS)
    settle()
    assert status(made) == "done"
    handed, finished = lines(tmp_path, "handed"), lines(tmp_path, "finished")
    of_hand_outs = Counter((*position(one), parse_range_id(one).attempts) for one in handed)
    assert max(of_hand_outs.values()) == 1, "each range goes to one consumer at a time"
    assert max(Counter(map(position, finished)).values()) == 1, "no range was finished twice"
    merged = Event.objects.filter(task_id=made, status=EventStatus.MERGED)
    events = sum(last - first + 1 for first, last in merged.values_list("min_event", "max_event") if first and last)
    assert events == FILES * EVENTS_A_FILE
    # Who was killed between an answer and its line in the file has finished more than it wrote.
    assert len(finished) <= events <= len(finished) + KILLS * A_CALL
    states = set(Event.objects.filter(task_id=made).values_list("status", flat=True))
    assert states <= {EventStatus.MERGED, EventStatus.FAILED}
    assert_books_balance()


def test_without_its_lock_a_range_goes_to_two_consumers(tmp_path: Path) -> None:
    """It takes luck, that two ask at the same moment: of a few tasks one has it."""
    for number in range(5):
        kept = tmp_path / str(number)
        kept.mkdir()
        run(kept, guarded=False, kills=0, name=f"user.ada.kills{number}")
        of_hand_outs = Counter((*position(one), parse_range_id(one).attempts) for one in lines(kept, "handed"))
        if max(of_hand_outs.values()) > 1:
            return
    pytest.fail("the test above would not see a range that two have")
