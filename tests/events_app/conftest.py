"""Consumers of ranges, and jobsets with their ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from brokerage_app.models import StorageEndpoint
from events_app.rules.range_blocks import RangeBlock
from tasks_app.models import Dataset, Job, Task
from tests.events_app.jobsets import Jobset, make_jobset
from tests.events_app.ranges import JOBSET, TASK, insert


@pytest.fixture
def storage(db: None) -> StorageEndpoint:
    """Where outputs of ranges lie; its number is 11."""
    return StorageEndpoint.objects.create(name="OS", number=11, site_name="SITE", path="/data/os")


@pytest.fixture
def make_consumer(make_job: Callable[..., Job]) -> Callable[..., int]:
    def make(**changes: Any) -> int:
        return make_job(**{"task_id": TASK, "jobset_id": JOBSET, "event_service": 1, **changes}).id

    return make


@pytest.fixture
def jobset_of(make_task: Callable[..., Task], make_dataset: Callable[..., Dataset]) -> Callable[..., Jobset]:
    """A jobset whose file has ranges of ten events, with three attempts."""

    def make(events: int = 25, attempts: int = 3, **changes: Any) -> Jobset:
        made = make_jobset(make_task, make_dataset, events=events, **changes)
        insert(RangeBlock(made.file.id, 1, events, 10, attempts=attempts))
        return made

    return make
