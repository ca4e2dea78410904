"""Tasks without rules of a VO go nowhere where they could not run: what stands in the way is in the books, and is said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from brokerage_app.grid.repository import forget
from brokerage_app.models import PilotCalls, Queue, QueueEndpoint, QueueStatusLog, StorageEndpoint, VerdictRecord
from jedisite.models import Agent
from tasks_app.agents import feeder, job_generator, refiner
from tasks_app.agents.watchdogs import pending, site_statistics
from tasks_app.counts import statistics
from tasks_app.models import Task
from tests.flow.driving import add_dataset, add_queue, jobs, parameters, reads, submit, wake

pytestmark = pytest.mark.usefixtures("tables")


@dataclass(frozen=True)
class Scene:
    """A queue, the storage that it may have, what the task asks for, what is said, and what mends it."""

    code: str
    says: str
    queue: dict[str, Any] = field(default_factory=dict)
    endpoint: dict[str, Any] | None = None
    params: dict[str, Any] = field(default_factory=dict)
    mends: dict[str, Any] = field(default_factory=dict)


SCENES = {
    "READ": Scene(
        "input_not_readable",
        "blacklisted at LOCAL_SE",
        endpoint={"name": "LOCAL_SE", "blacklisted_read": True},
        mends={"blacklisted_read": False},
    ),
    "WRITE": Scene(
        "output_not_writable",
        "(write_lan) is blacklisted at SE_Q",
        endpoint={"blacklisted_write": True},
        mends={"blacklisted_write": False},
    ),
    "LOCAL": Scene(
        "output_not_writable",
        "(write_lan) is blacklisted at LOCAL_SE",
        endpoint={"name": "LOCAL_SE", "blacklisted_write": True},
        mends={"blacklisted_write": False},
    ),
    "FULL": Scene(
        "storage_full",
        "needs 200 GB of usable space, there are 0 GB at SE_Q",
        endpoint={"space_free_gb": 0.0},
        mends={"space_free_gb": 900.0},
    ),
    "SHORT": Scene(
        "short_walltime",
        "needs 86400 s, the site allows 600 s",
        {"max_walltime_s": 600},
        params={"walltime": 86_400},
        mends={"max_walltime_s": 86_400},
    ),
    "SMALL": Scene(
        "low_memory",
        "needs 2000 MB, the site gives 1000 MB",
        {"max_memory_mb": 1000},
        params={"ramCount": 2000, "site": "Q"},
        mends={"max_memory_mb": 2000},
    ),
    "CORES": Scene(
        "too_few_cores",
        "needs 4 cores, the site gives 1",
        params={"coreCount": 4, "site": "Q"},
        mends={"core_count": 4},
    ),
    "RELEASE": Scene(
        "no_release", "needs Athena 24.0.1", params={"transHome": "Athena-24.0.1"}, mends={"releases": ["ANY"]}
    ),
    "GPU": Scene("no_gpu", "asks for GPU", {"releases": ["ANY"]}, params={"architecture": "&nvidia"}),
}


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_what_stands_in_the_way_is_said_and_mending_it_brings_jobs(
    scene: Scene, api: Callable[..., Client], client: Client, make_user: Callable[..., Any]
) -> None:
    forget()
    Queue.objects.all().delete()
    add_queue("Q", capability="", **scene.queue)
    endpoint = {"name": "SE_Q", "site_name": "Q", **(scene.endpoint or {})}
    if scene.endpoint is not None:
        StorageEndpoint.objects.create(**endpoint)
        QueueEndpoint.objects.create(queue_id="Q", endpoint_id=endpoint["name"], order_read=1, order_write=1)
    add_dataset("lab.in", 2)
    for agent in ("job_generator", "pending"):
        alive = {"period_s": 5, "last_ended_at": timezone.now(), "errors_in_a_row": 0, "paused": False}
        Agent.objects.update_or_create(name=agent, defaults=alive)
    task = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, **scene.params))
    turn()
    assert not jobs(task), Task.objects.values_list("status", "error_dialog")
    said = api().get(f"/api/v2/tasks/{task}/why/").json()["blocked_by"]
    assert said["code"] == scene.code and scene.says in said["sentence"], said
    client.force_login(make_user())
    assert scene.says.split(",")[0] in client.get(f"/tasks/{task}/why/").content.decode()
    if not scene.mends:
        return
    rows = StorageEndpoint.objects.filter(pk=endpoint["name"]) if scene.endpoint else Queue.objects.filter(pk="Q")
    rows.update(**scene.mends)
    turn()
    assert len(jobs(task)) == 2


def test_jobs_go_where_pilots_ask_as_long_as_that_queue_takes_them() -> None:
    """Nothing waits at the queue whose pilot has ended, so that no waiting job tells of it: each task would try it anew."""
    forget()
    Queue.objects.all().delete()
    add_queue("ENDED", capability="")
    add_queue("LIVE", capability="")
    now = timezone.now()
    QueueStatusLog.objects.update(at=now - timedelta(hours=1))
    for name, ago in (("ENDED", 11), ("LIVE", 0)):
        asked = now - timedelta(minutes=ago)
        PilotCalls.objects.create(site=name, hour=now - timedelta(hours=1), get_job=1, last_get_job=asked)
    statistics.refresh()
    site_statistics.run(now)
    add_dataset("lab.in", 2)
    tasks = [submit(parameters(f"lab.{n}", reads("lab.in"), nFilesPerJob=1)) for n in range(2)]
    turn()
    assert Counter(job.site for task in tasks for job in jobs(task)) == {"LIVE": 4}
    first = VerdictRecord.objects.filter(task_id=tasks[0]).earliest("id")
    assert first.sentence == "1 of 2 sites was chosen, LIVE; skipped: 1 pilots stopped."
    ((site, code, said, _),) = first.skipped
    assert (site, code, said) == ("ENDED", "pilots_stopped", "no pilot has asked for a job there for 11 min")
    Queue.objects.filter(pk="LIVE").update(status="brokeroff")
    last = submit(parameters("lab.last", reads("lab.in"), nFilesPerJob=1))
    turn()
    assert [job.site for job in jobs(last)] == ["ENDED"] * 2, "it is tried where nothing else takes the jobs"


def turn() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE queue_activity SET pilots_3h = 5")
    statistics.refresh()
    wake()
    refiner.run()
    feeder.run()
    pending.run()
    job_generator.run()
