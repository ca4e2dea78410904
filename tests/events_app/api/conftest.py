"""A pilot that calls as PanDA's pilot does, one that calls as harvester does, and our own, as a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from tests.tasks_app.worker_node.running import CHECKOUT

Call = Callable[..., Any]


@pytest.fixture
def form(api: Callable[..., Client]) -> Call:
    """A legacy call with a form of texts, by a pilot of the queue SITE_A."""
    pilot = api("pilot", site="SITE_A")

    def post(name: str, **fields: Any) -> Any:
        texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in fields.items()}
        return pilot.post(f"/server/panda/{name}", texts).json()

    return post


@pytest.fixture
def v1(api: Callable[..., Client]) -> Call:
    """A v1 call of JSON; the answer, or its status where it is no 200. `by` is another client."""
    pilot = api("pilot", site="SITE_A")

    def post(name: str, by: Client | None = None, **body: Any) -> Any:
        answer = (by or pilot).post(f"/api/v1/event/{name}", json.dumps(body), content_type="application/json")
        return answer.json() if answer.status_code == 200 else answer.status_code

    return post


@pytest.fixture
def start(
    live_server: LiveServer, make_token: Callable[..., str], tmp_path: Path
) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    token = make_token("pilot", site="SITE_A")

    def begin() -> subprocess.Popen[bytes]:
        env = {key: value for key, value in os.environ.items() if not key.startswith(("JEDI_", "DATABASE_URL"))}
        env |= {"JEDI_PILOT_TOKEN": token, "JEDI_SERVER_URL": live_server.url, "PYTHONPATH": str(CHECKOUT)}
        words = [sys.executable, "-m", "tasks_app.worker_node.pilot", "--queue", "SITE_A", "--isolation", "none"]
        words += ["--work", str(tmp_path / "work"), "--max-jobs", "1", "--heartbeat", "0.5"]
        started.append(subprocess.Popen(words, env=env, cwd=CHECKOUT, start_new_session=True))
        return started[-1]

    yield begin
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)
