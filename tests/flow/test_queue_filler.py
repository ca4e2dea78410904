"""Empty queues get tasks for themselves, and give them back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from brokerage_app.grid import configured
from brokerage_app.models import GdpConfig, Queue
from jedisite.agents.registry import REGISTRY
from tasks_app.agents import feeder, job_generator, refiner
from tasks_app.agents.watchdogs import pending, queue_filler
from tasks_app.models import EmptyQueue, Job, Preassignment, Task, TaskStatusLog
from tests.flow.driving import SITE, add_dataset, add_queue, jobs, parameters, reads, status, submit, task, wake

pytestmark = pytest.mark.usefixtures("books")
EMPTY = timedelta(seconds=1800)


@pytest.fixture(autouse=True)
def _fresh_configuration() -> Iterator[None]:
    configured.forget()
    yield
    configured.forget()


def waiting_task(name: str, files: int = 100, *, generate: bool = False, **more: Any) -> int:
    """A task of production whose files have been read."""
    add_dataset(f"{name}.in", files)
    values = {"nFilesPerJob": 1, "prodSourceLabel": "managed", "taskType": "prod", **more}
    made = submit(parameters(name, reads(f"{name}.in"), **values))
    for run in (refiner.run, feeder.run, *((job_generator.run,) if generate else ())):
        wake()
        run()
    return made


def fill(after: timedelta) -> int:
    return queue_filler.run(now=timezone.now() + after).items


def test_the_watchdog_is_registered() -> None:
    assert "queue_filler" in REGISTRY


def test_a_queue_that_stays_empty_gets_three_tasks_and_frees_them_when_it_is_busy() -> None:
    made = [waiting_task(f"lab.{n}") for n in range(4)]
    add_queue("SITE_B", status="offline")
    assert fill(timedelta()) == 0
    assert list(EmptyQueue.objects.values_list("queue", flat=True)) == [SITE]
    assert fill(EMPTY - timedelta(seconds=5)) == 0
    assert fill(EMPTY + timedelta(seconds=5)) == 3
    assert [task(one).site for one in made] == [SITE, SITE, SITE, None]
    said = TaskStatusLog.objects.filter(task_id=made[0], by="queue_filler").get().reason
    assert said == f"its jobs go to {SITE}, which has only 0 waiting for 0 that run"
    assert fill(EMPTY + timedelta(seconds=6)) == 0, "three of a resource type are enough"

    Queue.objects.filter(pk="SITE_B").update(status="online")
    wake()
    job_generator.run()
    assert {job.site for one in made[:3] for job in jobs(one)} == {SITE}
    assert len(jobs(made[0])) >= 8
    assert fill(EMPTY + timedelta(seconds=7)) == 3
    assert not Preassignment.objects.exists()
    assert {task(one).site for one in made} == {None}
    assert not EmptyQueue.objects.filter(queue=SITE).exists()


def test_only_large_tasks_that_fit_are_sent() -> None:
    small = waiting_task("lab.small", 49)
    hungry = waiting_task("lab.hungry", ramCount=5000)
    bound = waiting_task("lab.bound", site=SITE)
    of_user = waiting_task("lab.user", prodSourceLabel="user", taskType="anal")
    good = waiting_task("lab.good")
    fill(timedelta())
    assert fill(EMPTY + timedelta(seconds=1)) == 1
    assert list(Preassignment.objects.values_list("task_id", "queue")) == [(good, SITE)]
    assert [task(one).site for one in (small, hungry, bound, of_user)] == [None, None, SITE, None]


def test_a_queue_that_is_not_empty_counts_anew() -> None:
    waiting_task("lab.t")
    fill(timedelta())
    Job.objects.bulk_create(Job(id=90_000_000 + i, status="activated", site=SITE) for i in range(5))
    assert fill(timedelta(minutes=10)) == 0
    assert not EmptyQueue.objects.exists()
    Job.objects.all().delete()
    assert fill(timedelta(minutes=20)) == 0
    assert fill(timedelta(minutes=49)) == 0
    assert fill(timedelta(minutes=51)) == 1


def test_a_pending_task_is_tried_again_at_the_empty_queue() -> None:
    Queue.objects.update(status="offline")
    made = waiting_task("lab.t", generate=True)
    assert status(made) == "pending"
    Queue.objects.update(status="online")
    fill(timedelta())
    assert fill(EMPTY + timedelta(seconds=1)) == 1
    assert pending.run(now=timezone.now() + EMPTY + timedelta(seconds=2)).items == 1
    wake()
    assert job_generator.run().items > 0
    assert {job.site for job in jobs(made)} == {SITE}


@pytest.mark.parametrize("cause", ["the queue", "another site", "the end"])
def test_tasks_are_freed_with_their_queue_and_forgotten_at_their_end(cause: str) -> None:
    made = waiting_task("lab.t")
    fill(timedelta())
    assert fill(EMPTY + timedelta(seconds=1)) == 1
    if cause == "the end":
        Task.objects.filter(pk=made).update(status="aborted")
    else:
        Queue.objects.update(status="brokeroff")
    if cause == "another site":
        Task.objects.filter(pk=made).update(site="ELSEWHERE")
    fill(EMPTY + timedelta(seconds=2))
    assert not Preassignment.objects.exists()
    assert task(made).site == {"the queue": None, "another site": "ELSEWHERE", "the end": SITE}[cause]
    Task.objects.filter(pk=made).update(status="ready")


def test_the_number_of_tasks_is_configured() -> None:
    GdpConfig.objects.create(
        app="jedi", component="queue_filler", key="MAX_PREASSIGNED_TASKS_managed", value="0", type="int"
    )
    waiting_task("lab.t")
    fill(timedelta())
    assert fill(EMPTY + timedelta(seconds=1)) == 0
