"""A cluster that lives and does nothing is started anew."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from django.db import connection

from jedisite.agents import passes as agents
from jedisite.models import Agent

pytestmark = pytest.mark.timeout(600)
ROOT = Path(__file__).resolve().parents[3]


def wait_for(condition: Callable[[], bool], what: str, limit_s: float = 120) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {limit_s:g} s"
        time.sleep(0.1)


@contextmanager
def cluster(*arguments: str) -> Iterator[psutil.Process]:
    settings = connection.settings_dict
    url = f"postgresql://{settings['USER']}:{settings['PASSWORD']}@{settings['HOST']}:{settings['PORT']}/{settings['NAME']}"
    process = subprocess.Popen(
        [sys.executable, "manage.py", "cluster", *arguments], cwd=ROOT, env={**os.environ, "DATABASE_URL": url}
    )
    try:
        yield psutil.Process(process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def workers(parent: psutil.Process) -> list[psutil.Process]:
    """The processes of django-q2 below its main process: its sentinel, workers, monitor and pusher."""
    return [p for child in parent.children() for p in child.children(recursive=True)]


def passes() -> int:
    return int(Agent.objects.get(pk="refiner").passes)


@pytest.mark.django_db(transaction=True)
def test_a_cluster_whose_workers_do_nothing_is_started_anew() -> None:
    with cluster("--stuck-after", "4") as parent:

        def tick_until_one_runs() -> bool:
            Agent.objects.filter(pk="refiner").update(due_at="2000-01-01T00:00Z", queued_at=None)
            agents.tick()
            return passes() > 0

        wait_for(tick_until_one_runs, "the first pass")
        for process in workers(parent):
            process.suspend()
        before, frozen = passes(), {p.pid for p in workers(parent)}
        Agent.objects.filter(pk="refiner").update(due_at="2000-01-01T00:00Z", queued_at=None)

        def runs_again() -> bool:
            """As the ticker does: a worker may have been stopped in the middle of this very agent's pass."""
            agents.free_dead_leases()
            agents.tick()
            return passes() > before

        wait_for(runs_again, "a pass after the workers stopped")
        assert not frozen & {p.pid for p in workers(parent)}
