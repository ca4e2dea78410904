"""A repository of jobs of its own for each test, and a wait for local jobs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks_app.gpi import job_registry
from tasks_app.gpi.job_registry import JobRegistry
from tasks_app.gpi.rules.master_status import FINAL, NEW

LONGEST_S = 60


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobRegistry:
    """The repository of `Job()`, and a home where nothing is."""
    registry = JobRegistry(tmp_path / "repository")
    monkeypatch.setattr(job_registry, "jobs", registry)
    monkeypatch.chdir(tmp_path)
    return registry


@pytest.fixture
def ended(jobs: JobRegistry) -> Callable[..., Any]:
    """Wait until local jobs and subjobs are in a state; by default until none is at work."""

    def wait(job: Any, *statuses: str) -> Any:
        end = time.monotonic() + LONGEST_S
        while job.status not in (statuses or FINAL | {NEW}):
            assert time.monotonic() < end, f"{job} after {LONGEST_S} s"
            jobs.look(getattr(job, "master", None) or job, now=True)
        return job

    return wait
