"""Tasks that read much wait for room where their input is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from brokerage_app.grid import configured
from brokerage_app.models import DatasetReplica, GdpConfig, QueueEndpoint, StorageEndpoint
from tasks_app.agents import feeder, job_generator, refiner
from tasks_app.agents.watchdogs import pending, task_withholder
from tasks_app.models import Job, Task
from tests.flow.driving import SITE, add_dataset, jobs, parameters, reads, status, submit, task, wake

pytestmark = pytest.mark.usefixtures("books")


@pytest.fixture(autouse=True)
def _limits(books: None) -> Iterator[None]:
    for key, value, type in (("LIMIT_IOINTENSITY_managed", "500", "float"), ("LIMIT_PRIORITY_managed", "900", "int")):
        GdpConfig.objects.create(app="jedi", component="task_withholder", key=key, value=value, type=type)
    configured.forget()
    yield
    configured.forget()
    Job.objects.filter(id__gte=90_000_000).delete()


def reading_task(name: str = "lab.t", endpoint: str = "DISK", intensity: int = 600, **more: Any) -> int:
    """A task of production that reads a dataset which lies at one endpoint, from which the queue reads."""
    StorageEndpoint.objects.get_or_create(name="DISK", defaults={"site_name": SITE})
    QueueEndpoint.objects.get_or_create(queue_id=SITE, endpoint_id="DISK", defaults={"order_read": 1})
    add_dataset(f"{name}.in", 3)
    made = submit(
        parameters(name, reads(f"{name}.in"), nFilesPerJob=1, prodSourceLabel="managed", taskType="prod", **more)
    )
    for run in (refiner.run, feeder.run):
        wake()
        run()
    # As data management would say it: the feeder has asked the local catalogue.
    DatasetReplica.objects.filter(dataset=f"{name}.in").delete()
    DatasetReplica.objects.create(dataset=f"{name}.in", endpoint=endpoint, files=3, bytes=3000, complete=True)
    Task.objects.filter(pk=made).update(io_intensity=intensity, io_intensity_unit="kBPerS")
    return made


def queue_users(count: int) -> None:
    Job.objects.bulk_create(Job(id=90_000_000 + i, status="activated", site=SITE) for i in range(count))


def hold(after: timedelta = timedelta()) -> int:
    return task_withholder.run(now=timezone.now() + after).items


def test_a_task_waits_while_the_queue_near_its_input_is_full() -> None:
    made = reading_task()
    queue_users(20)
    assert hold() == 0, "as many as may be"
    crowd_more = Job(id=90_000_100, status="activated", site=SITE)
    crowd_more.save(force_insert=True)
    assert hold() == 1
    assert status(made) == "pending"
    assert (task(made).error_dialog or "").startswith(
        "Withheld from busy storage: it reads 600 kB/s a core (500 is the limit for priorities below 900) and its input is "
        "at 1 endpoint: 0 cannot be read, 1 queue reads from the others"
    )
    assert task(made).frozen_time is None, "it is not given up for that"
    assert hold() == 0
    assert pending.run(now=timezone.now() + timedelta(minutes=44)).items == 0
    Job.objects.filter(id__gte=90_000_000).delete()
    assert hold() == 1
    assert pending.run(now=timezone.now() + timedelta(seconds=1)).items == 1
    wake()
    assert job_generator.run().items == 3
    assert len(jobs(made)) == 3


@pytest.mark.parametrize(
    "spared", ["reads little", "urgent", "of users", "input is nowhere known", "room", "not configured"]
)
def test_other_tasks_go_on(spared: str) -> None:
    made = reading_task(intensity=499 if spared == "reads little" else 600)
    if spared == "urgent":
        Task.objects.filter(pk=made).update(current_priority=900)
    elif spared == "of users":
        Task.objects.filter(pk=made).update(prod_source_label="user")
    elif spared == "input is nowhere known":
        DatasetReplica.objects.all().delete()
    elif spared == "not configured":
        GdpConfig.objects.all().delete()
        configured.forget()
    queue_users(0 if spared == "room" else 50)
    assert hold() == 0
    assert status(made) == "ready"


def test_storage_that_cannot_be_read_is_no_place() -> None:
    made = reading_task()
    StorageEndpoint.objects.update(blacklisted_read=True)
    assert hold() == 1
    assert "1 cannot be read" in (task(made).error_dialog or "")
