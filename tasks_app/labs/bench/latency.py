"""bench latency: from submission to the first activated job on an idle site with its real agents, one small task at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from django.conf import settings
from django.db import connection

from brokerage_app.grid.local_twin import ensure_local_site
from jedisite.agents.passes import run_agent
from tasks_app.inputs.registering import register_dataset
from tasks_app.labs.bench import scene, web
from tasks_app.labs.bench.database import Place
from tasks_app.labs.bench.measuring import Rates, Result, Target
from tasks_app.lifecycle import task_moves

FILES = 20
LIMIT_S = 60.0
LOOK_S = 0.01
AGENTS = ("refiner", "feeder", "job_generator")


class NoJobError(RuntimeError):
    """A task got no job in time; the sentence says in which state it is."""


def run(place: Place, sizes: Sequence[int], rounds: int, say: Callable[[str], None]) -> Result:
    """Measure the time to the first activated job.

    `sizes`: tasks by the agents (7). As many go through the same agents called one after the other, as the raw case.
    """
    tasks = sizes[0] if sizes else 7
    ensure_local_site(place.home / "storage", slots=2)
    _register(place.home / "storage" / "input")
    direct = [_direct() for _ in range(tasks)]
    say("agents called in turn, s: " + ", ".join(f"{seconds:.3f}" for seconds in direct))
    with web.running(place, "qcluster", "ticker"):
        _by_agents()  # everything has been started and imported
        waited = [_by_agents() for _ in range(tasks)]
    say("by ticker and qcluster, s: " + ", ".join(f"{seconds:.3f}" for seconds in waited))
    rates = Rates({"by ticker and qcluster": [1 / s for s in waited], "agents called in turn": [1 / s for s in direct]})
    result = Result("latency", "tasks/s", rates, "by ticker and qcluster", "agents called in turn", {"tasks": tasks})
    result.more = {"median_s": round(median(waited), 3), "longest_s": round(max(waited), 3)}
    result.targets.append(
        Target("seconds from submission to the first job, median", median(waited), 3, 1, at_most=True)
    )
    return result


def _register(folder: Path) -> None:
    folder.mkdir(parents=True)
    # Registering links the files into this installation's storage, which no site may have made yet.
    Path(settings.JEDI_STORAGE).mkdir(parents=True, exist_ok=True)
    paths = [folder / f"input_{number:02d}.root" for number in range(FILES)]
    for path in paths:
        path.write_bytes(path.name.encode())
    register_dataset(scene.INPUT, "bench", paths)


def _submit() -> int:
    return task_moves.submit(
        scene.parameters(2),
        name="user.bench.latency",
        user=scene.ME,
        vo="lab",
        label="user",
        task_type="anal",
        priority=500,
        parent_id=None,
    )


def _direct() -> float:
    began = time.perf_counter()
    task_id = _submit()
    for agent in AGENTS:
        run_agent(agent)
    seconds = time.perf_counter() - began
    if not _jobs(task_id):
        raise NoJobError(_why(task_id))
    _take_away(task_id)
    return seconds


def _by_agents() -> float:
    began = time.perf_counter()
    task_id = _submit()
    while not _jobs(task_id):
        if time.perf_counter() - began > LIMIT_S:
            raise NoJobError(_why(task_id))
        time.sleep(LOOK_S)
    seconds = time.perf_counter() - began
    _take_away(task_id)
    return seconds


def _ask(query: str, *values: Any) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return cursor.fetchone() if cursor.description else None


def _jobs(task_id: int) -> bool:
    return _ask("SELECT 1 FROM jobs WHERE jeditaskid = %s AND jobstatus = 'activated' LIMIT 1", task_id) is not None


def _why(task_id: int) -> str:
    row = _ask("SELECT status, errordialog FROM jedi_tasks WHERE jeditaskid = %s", task_id)
    return f"task {task_id} has no job after {LIMIT_S:.0f} s: it is {row[0]}, {row[1] or 'without a reason'}"


def _take_away(task_id: int) -> None:
    """End the task, so that the site is idle again for the next one."""
    _ask("UPDATE jobs SET jobstatus = 'closed' WHERE jeditaskid = %s", task_id)
