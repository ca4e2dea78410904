"""Obstacles, one a task: the headline of why names the one that was planted, and its advice, followed, brings jobs.

All stand on one grid whose other queues refuse every one of these tasks for reasons that do not concern them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from brokerage_app.grid.configured import forget
from brokerage_app.models import GdpConfig, Queue, QueueEndpoint, StorageEndpoint
from jedisite.models import Agent
from tasks_app.agents import feeder, job_generator, refiner
from tasks_app.agents.watchdogs import pending
from tasks_app.counts import statistics
from tasks_app.models import Job, Task
from tasks_app.submission import parameter_changes
from tests.flow.driving import add_dataset, add_queue, jobs, parameters, reads, submit, wake

pytestmark = pytest.mark.usefixtures("tables")
Make = Callable[..., Any]
Follow = Callable[[int, Client], None]
"""Does to a task what the advice says. The client is that of its owner."""
MANY = 60
"""Far more jobs than may be queued where none runs."""


def storage(queue: str, **more: Any) -> None:
    StorageEndpoint.objects.create(name=f"SE_{queue}", site_name=queue, **{"space_free_gb": 9000.0, **more})
    QueueEndpoint.objects.create(queue_id=queue, endpoint_id=f"SE_{queue}", order_read=1, order_write=1)


def of_queue(name: str, **values: Any) -> Follow:
    return lambda task, owner: Queue.objects.filter(pk=name).update(**values) and None


def of_storage(queue: str, **values: Any) -> Follow:
    return lambda task, owner: StorageEndpoint.objects.filter(pk=f"SE_{queue}").update(**values) and None


def attributes(**values: Any) -> Follow:
    return by_owner(attributes=values)


def by_owner(**change: Any) -> Follow:
    def follow(task: int, owner: Client) -> None:
        body = {**change, "reason": "as advised"}
        answer = owner.post(f"/api/v2/tasks/{task}/changes/", body, "application/json")
        assert answer.status_code == 200, answer.content

    return follow


def changed(**values: Any) -> Follow:
    return lambda task, owner: parameter_changes.change_in_place(task, values, by="ada")


def anew(**columns: Any) -> Follow:
    """What a task that is submitted anew with other parameters has in its columns."""
    return lambda task, owner: Task.objects.filter(pk=task).update(**columns) and None


def jobs_are(status: str, queue: str = "CAP") -> Follow:
    return lambda task, owner: Job.objects.filter(site=queue).update(status=status) and None


@dataclass(frozen=True)
class Obstacle:
    """A queue, the one that the task may use, with what stands in the way, and what is done as the advice says.

    headline, advice   parts of the sentences that people read
    """

    code: str
    headline: str
    advice: str
    follow: Follow
    queue: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, Any] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    endpoint: dict[str, Any] | None = None


GPU = "x86_64-el9-gcc13-opt&nvidia-A100"
OBSTACLES = {
    "OFFLINE": Obstacle(
        "site_offline",
        "the site's status is offline (“new switches until noon”)",
        "Have OFFLINE set online",
        of_queue("OFFLINE", status="online"),
        {"status": "offline", "status_reason": "new switches until noon."},
    ),
    "PAUSED": Obstacle(
        "site_paused",
        "the site's status is paused (“too many failures”)",
        "Have PAUSED set online",
        of_queue("PAUSED", status="online"),
        {"status": "paused", "status_reason": "too many failures"},
    ),
    "BLACKLISTED": Obstacle(
        "input_not_readable",
        "reading (read_lan) is blacklisted at SE_BLACKLISTED",
        "Have the blacklisting of SE_BLACKLISTED lifted",
        of_storage("BLACKLISTED", states={}),
        endpoint={"states": {"read_lan": "OFF"}},
    ),
    "FULL": Obstacle(
        "storage_full",
        "needs 200 GB of usable space, there are 50 GB at SE_FULL",
        "Have space freed at SE_FULL",
        of_storage("FULL", space_free_gb=500.0),
        endpoint={"space_free_gb": 50.0},
    ),
    "SHORT": Obstacle(
        "short_walltime",
        "needs 100000, the site gives 27000 HS06 s in 3600 s",
        "Lower the cpuTime of the task from 1000 to 270 HS06s an event, if",
        attributes(cpuTime=270),
        {"max_walltime_s": 3600},
        {"cpu_time": 1000, "cpu_time_unit": "HS06sPerEvent"},
    ),
    "BASE": Obstacle(
        "short_walltime",
        "BASE, the only site that the task may use, was skipped: needs 5045 s, the site allows 3600 s",
        "Lower the cpuTime of the task from 40000 to 26800 HS06s an event, if",
        attributes(cpuTime=26800),
        {"max_walltime_s": 3600},
        {"vo": "local", "cpu_time": 40_000, "cpu_time_unit": "HS06sPerEvent"},
        {"nFilesPerJob": None, "includedSite": None, "nEventsPerJob": 1, "site": "BASE"},
    ),
    "PAIRS": Obstacle(
        "short_walltime",
        "needs 200000, the site gives 124200 HS06 s in 14400 s",
        "Make jobs of 1 file (nFilesPerJob; now 2)",
        by_owner(split_rule={"nFilesPerJob": 1}),
        {"max_walltime_s": 14_400},
        {"cpu_time": 1000, "cpu_time_unit": "HS06sPerEvent"},
        {"nFilesPerJob": 2},
    ),
    "SMALL": Obstacle(
        "low_memory",
        "needs 900 MB, the site gives 500 MB",
        "Ask for 555 MB of memory at most (ramCount; now 1000)",
        attributes(ramCount=555),
        {"max_memory_mb": 500},
    ),
    "CORES": Obstacle(
        "too_few_cores",
        "",
        "Ask for 1 core a job (coreCount; now 4)",
        attributes(coreCount=1),
        params={"coreCount": 4},
    ),
    "SCRATCH": Obstacle(
        "scratch_disk",
        "",
        "Lower the workDiskCount of the task from 6000 to ",
        attributes(workDiskCount=2000),
        {"work_dir_mb": 4000},
        {"work_disk_count": 6000, "work_disk_unit": "MB"},
    ),
    "RELEASE": Obstacle(
        "no_release",
        "on any platform; the site publishes no software",
        "Have the software installed and published at RELEASE",
        of_queue("RELEASE", releases=["ANY"]),
        {"releases": ["AUTO"]},
        {"trans_home": "Athena-24.0.1", "architecture": None},
    ),
    "GPU": Obstacle(
        "no_gpu",
        "the site publishes no hardware",
        "Kill the task and submit it again, under another name and without asking for a GPU (architecture x86_64-el9-gcc13-opt)",
        anew(architecture="x86_64-el9-gcc13-opt"),
        {"releases": ["ANY"]},
        {"architecture": GPU},
    ),
    "EXCLUDED": Obstacle(
        "excluded",
        "it wants EXCL* and excludes EXCLUDED.",
        "Kill the task and run it again (incexec) with an excludedSite other than EXCLUDED",
        changed(excludedSite=[]),
        params={"includedSite": ["EXCL*"], "excludedSite": ["EXCLUDED"]},
    ),
    "CAP": Obstacle(
        "queue_full",
        " queued",
        "Wait until jobs that are queued at CAP have started",
        jobs_are("running"),
    ),
    # Work that is bound is not asked how full its queue is, and gets no jobs there all the same.
    "BOUND": Obstacle(
        "queue_full",
        " queued",
        "Wait until jobs that are queued at CAP have started",
        jobs_are("running"),
        columns={"site": "CAP"},
        params={"includedSite": ["CAP"]},
    ),
    "UNKNOWN": Obstacle(
        "site_unknown",
        "UNKNOWN does not exist",
        "Reassign the task to a site other than UNKNOWN",
        anew(site="GPU"),
    ),
    "SHARELESS": Obstacle(
        "zero_share",
        "SHARELESS, the only site that the task may use, was skipped",
        "Have the fair-share policy of SHARELESS changed",
        of_queue("SHARELESS", policy=""),
        {"policy": "type=any:0%"},
    ),
}


@pytest.fixture(params=["production", "analysis"])
def broker(request: pytest.FixtureRequest) -> Iterator[str]:
    GdpConfig.objects.create(
        app="jedi", component="brokerage", key="JOB_BROKER_user", value=request.param, type="str", vo="lab"
    )
    forget()
    yield request.param
    forget()


def queue_users() -> None:
    """Jobs of another task that wait at CAP: they were made when others ran there."""
    add_dataset("lab.queue_users", MANY)
    submit(
        parameters("lab.t.queue_users", reads("lab.queue_users"), nFilesPerJob=1, includedSite=["CAP"]), priority=900
    )
    refiner.run()
    feeder.run()
    turn()
    jobs_are("running")(0, Client())
    turn()
    jobs_are("activated")(0, Client())


def plant() -> dict[str, int]:
    """The grid with all obstacles, and their tasks, refined and fed."""
    for number in range(5):
        add_queue(f"FAR_{number}", capability="", min_memory_mb=16_000, max_memory_mb=64_000)
        add_queue(f"NEVER_{number}", capability="", policy="type=any:0%")
    tasks = {}
    for name, one in OBSTACLES.items():
        add_queue(name, capability="", **one.queue)
        storage(name, **(one.endpoint or {}))
    queue_users()
    for name, one in OBSTACLES.items():
        add_dataset(f"lab.{name}", 2, events=100)
        more = {"nFilesPerJob": 1, "includedSite": [name], "cpuTime": 1, "cpuTimeUnit": "HS06sPerEvent", **one.params}
        tasks[name] = submit(parameters(f"lab.t.{name}", reads(f"lab.{name}"), **more))
    for agent in (refiner, feeder):
        while agent.run().items:  # a pass ends after a while
            pass
    for name, one in OBSTACLES.items():
        Task.objects.filter(pk=tasks[name]).update(**one.columns)
    Queue.objects.filter(pk="UNKNOWN").delete()
    for agent in ("job_generator", "pending"):
        alive = {"period_s": 5, "last_ended_at": timezone.now(), "errors_in_a_row": 0, "paused": False}
        Agent.objects.update_or_create(name=agent, defaults=alive)
    return tasks


def turn() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE queue_activity SET pilots_3h = 5")
    statistics.refresh()
    wake()
    pending.run()
    job_generator.run()


def test_each_headline_is_true_and_its_advice_brings_jobs(
    broker: str, api: Callable[..., Client], client: Client, make_user: Make
) -> None:
    tasks, caller = plant(), api()
    client.force_login(make_user())
    before = caller.get(f"/api/v2/tasks/{tasks['OFFLINE']}/why/").json()["blocked_by"]
    assert before["code"] == "not_looked_at" and "no broker has decided on it yet" in before["sentence"]
    turn()
    for name, one in OBSTACLES.items():
        said = caller.get(f"/api/v2/tasks/{tasks[name]}/why/").json()["blocked_by"]
        assert (name, said["code"].removesuffix("_of_type")) == (name, one.code), said
        assert one.headline in said["sentence"], said
        assert one.advice in said["advice"], said
        page = client.get(f"/tasks/{tasks[name]}/why/").content.decode()
        assert one.advice in page
    ways = {"SHORT": "needs", "PAIRS": "split_rule", "SCRATCH": "needs", "GPU": "kill"}
    for name, act in ways.items():
        address = f'href="/tasks/{tasks[name]}/do/{act}/"'
        assert address in client.get(f"/tasks/{tasks[name]}/why/").content.decode(), name
    assert not any(map(jobs, tasks.values()))
    for free in (50, 7):
        StorageEndpoint.objects.filter(pk="SE_FULL").update(space_free_gb=free)
        (space,) = caller.get("/api/v2/sites/FULL/why/").json()["settings"]
        assert (space["column"], space["now"]) == ("SE_FULL", free), "of now, not of the decision"
    for name, one in OBSTACLES.items():
        one.follow(tasks[name], caller)
    turn()
    assert {name for name, task in tasks.items() if jobs(task)} == set(OBSTACLES)
