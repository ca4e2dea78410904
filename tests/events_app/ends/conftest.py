"""Jobsets with their ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from events_app.rules.range_blocks import RangeBlock
from tasks_app.models import Dataset, Task
from tests.events_app.jobsets import Jobset, make_jobset
from tests.events_app.ranges import insert


@pytest.fixture
def jobset_of(make_task: Callable[..., Task], make_dataset: Callable[..., Dataset]) -> Callable[..., Jobset]:
    """A jobset whose file has ranges of ten events, with three attempts."""

    def make(events: int = 25, attempts: int = 3, **changes: Any) -> Jobset:
        made = make_jobset(make_task, make_dataset, events=events, **changes)
        insert(RangeBlock(made.file.id, 1, events, 10, attempts=attempts))
        return made

    return make
