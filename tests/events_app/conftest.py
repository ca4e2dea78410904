"""Consumers of ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tasks_app.models import Job
from tests.events_app.ranges import JOBSET, TASK


@pytest.fixture
def make_consumer(make_job: Callable[..., Job]) -> Callable[..., int]:
    def make(**changes: Any) -> int:
        return make_job(**{"task_id": TASK, "jobset_id": JOBSET, "event_service": 1, **changes}).id

    return make
