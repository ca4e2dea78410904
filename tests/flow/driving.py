"""Drives whole tasks: submits them, calls the agents as functions, looks at what came of them."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.db import connection

from brokerage_app.models import Queue
from jedisite.agents.registry import Pass
from tasks_app.agents import (
    adder,
    commando,
    feeder,
    job_generator,
    libraries,
    merger,
    post_processor,
    refiner,
    task_broker,
)
from tasks_app.agents.watchdogs import (
    archive,
    boost,
    goals,
    job_timeouts,
    lost_jobs,
    pending,
    second_look,
    stale_locks,
    throttle,
)
from tasks_app.lifecycle import task_moves
from tasks_app.models import CatalogueDataset, CatalogueFile, Dataset, File, Job, JobFile, Task
from tasks_app.submission import sandbox_uploads

SITE = "SITE_A"
USER = "ada"
WORKERS: tuple[Callable[[], Pass], ...] = (
    refiner.run,
    feeder.run,
    task_broker.run,
    job_generator.run,
    merger.run,
    adder.run,
    libraries.run,
    post_processor.run,
    commando.run,
    pending.run,
    throttle.run,
    goals.run,
)
"""They carry tasks on, or hold them."""
WATCHDOGS: tuple[Callable[[], Pass], ...] = (
    lost_jobs.run,
    job_timeouts.run,
    boost.run,
    stale_locks.run,
    second_look.run,
    archive.run,
)
"""They look after the work of the others: at the end of it is early enough."""
AGENTS = WORKERS + WATCHDOGS
ROUNDS = 60


def template(kind: str, value: str, dataset: str = "", **more: Any) -> dict[str, Any]:
    item = {"type": "template", "param_type": kind, "value": value, **more}
    return {**item, "dataset": dataset} if dataset else item


def parameters(name: str, *items: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A task without scouts, with one output and a log a job, and the given items in its command line."""
    return {
        "taskName": name,
        "userName": USER,
        "vo": "lab",
        "prodSourceLabel": "user",
        "taskType": "anal",
        "processingType": "test",
        "official": True,
        "skipScout": True,
        "taskPriority": 500,
        "transPath": "run_command",
        "coreCount": 1,
        "ramCount": 1000,
        "ramUnit": "MB",
        "log": template("log", f"{name}.${{SN}}.log.tgz", f"{name}.log"),
        "jobParameters": [*items, template("output", f"{name}.${{SN}}.root", f"{name}.out")],
        **more,
    }


def reads(dataset: str, stream: str = "IN", **more: Any) -> dict[str, Any]:
    return template("input", f"--{stream.lower()}=${{{stream}/L}}", dataset, **more)


def submit(params: dict[str, Any], parent: int | None = None, priority: int = 500) -> int:
    return task_moves.submit(
        params,
        name=params["taskName"],
        user=USER,
        vo="lab",
        label=params["prodSourceLabel"],
        task_type="anal",
        priority=priority,
        parent_id=parent,
    )


def give_sandbox(name: str, owner: str = USER, content: bytes = b"an archive") -> None:
    """Upload an archive of that content."""
    incoming = sandbox_uploads.Incoming(owner, name)
    incoming.write(gzip.compress(content, mtime=0))
    incoming.finish()


def add_queue(name: str = SITE, **more: Any) -> Queue:
    values = {"site_name": name, "core_count": 1, "max_memory_mb": 4000, "max_walltime_s": 86_400, **more}
    return Queue.objects.create(name=name, **values)


def add_dataset(
    name: str, files: int = 0, *, open: bool = False, size: int = 1000, events: int | None = None, owner: str = ""
) -> None:
    """A dataset of the local catalogue. Its files exist in the books only."""
    CatalogueDataset.objects.create(name=name, scope="lab", open=open, owner=owner)
    add_files(name, range(files), size=size, events=events)


def add_files(name: str, numbers: Iterable[int], *, size: int = 1000, events: int | None = None) -> None:
    dataset = CatalogueDataset.objects.get(name=name)
    CatalogueFile.objects.bulk_create(
        [
            CatalogueFile(
                dataset=dataset,
                lfn=f"{name}.{number:05d}",
                scope="lab",
                guid=f"{number:08x}",
                size=size,
                adler32=f"{number:08x}",
                events=events,
                endpoint="LOCAL_SE",
                url=f"file://localhost/data/{name}.{number:05d}",
            )
            for number in numbers
        ]
    )


def wake() -> None:
    """Let every wait be over: of tasks that were set aside, of tasks whose sites were full, of what an agent failed at."""
    with connection.cursor() as cursor:
        cursor.execute(
            """UPDATE agent_troubles SET next_try = clock_timestamp();
               UPDATE jedi_tasks SET next_check_at = clock_timestamp() - interval '1 second' WHERE jeditaskid IN (
                   SELECT jeditaskid FROM jedi_tasks ORDER BY jeditaskid FOR UPDATE SKIP LOCKED)"""
        )


def look_again() -> None:
    """Make it time to look at growing datasets."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jedi_datasets SET statecehcktime = 'epoch' WHERE state = 'mutable'")


def agents_turn() -> int:
    """Every agent once. Returns how many things they moved."""
    wake()
    return sum(run().items for run in AGENTS)


def _counted(run: Callable[[], Pass]) -> Callable[[], int]:
    return lambda: run().items


def settle(*others: Callable[[], int]) -> None:
    """Those who carry tasks on or hold them, and others in turn with them, until none of them has anything to do; then the
    watchdogs look, and whatever one of them has moved is carried on.

    Who found nothing is not asked again before somebody else has moved something.
    """
    workers, dogs = [*map(_counted, WORKERS), *others], [*map(_counted, WATCHDOGS)]
    for _ in range(ROUNDS):
        _until_idle(workers)
        if not sum(dog() for dog in dogs):
            return
    raise AssertionError(f"the watchdogs still find something after {ROUNDS} rounds")


def _until_idle(everybody: Sequence[Callable[[], int]]) -> None:
    idle = 0
    for _ in range(ROUNDS):
        wake()
        for one in everybody:
            idle = 0 if one() else idle + 1
            if idle == len(everybody):
                return
    raise AssertionError(f"there is still work after {ROUNDS} rounds")


def task(task_id: int) -> Task:
    return Task.objects.get(pk=task_id)


def status(task_id: int) -> str:
    return str(Task.objects.values_list("status", flat=True).get(pk=task_id))


def jobs(task_id: int, **conditions: Any) -> list[Job]:
    return list(Job.objects.filter(task_id=task_id, **conditions).order_by("id"))


def states(task_id: int) -> dict[str, int]:
    """How many jobs a task has in each state."""
    found: dict[str, int] = {}
    for job in jobs(task_id):
        found[job.status] = found.get(job.status, 0) + 1
    return found


def inputs(job_id: int, type: str = "input", dataset: str | None = None) -> list[str]:
    """Names of the inputs of a job, in order."""
    found = JobFile.objects.filter(job_id=job_id, type=type).order_by("id")
    return list((found.filter(dataset=dataset) if dataset else found).values_list("lfn", flat=True))


def dataset(task_id: int, type: str = "input", name: str | None = None) -> Dataset:
    found = Dataset.objects.filter(task_id=task_id, type=type)
    return (found.filter(name=name) if name else found).get()


def files(task_id: int, type: str = "input") -> list[File]:
    return list(File.objects.filter(task_id=task_id, type=type).order_by("id"))


def age(job_id: int, seconds: float) -> None:
    """Make the last sign of life of a job, and the last change of its state, older."""
    with connection.cursor() as cursor:
        cursor.execute(
            """UPDATE jobs SET heartbeat_at = heartbeat_at - %s * interval '1 second',
                      statechangetime = statechangetime - %s * interval '1 second' WHERE pandaid = %s""",
            [seconds, seconds, job_id],
        )
