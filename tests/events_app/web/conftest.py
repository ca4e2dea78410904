"""People who look at the pages, and a busy task of event service."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tasks_app.models import Job, Task
from tests.events_app.busy_ranges import Busy, fill
from tests.tasks_app.web.conftest import ada, operator, reader, static_root  # noqa: F401 - the same people


@pytest.fixture
def busy(make_task: Callable[..., Task], make_job: Callable[..., Job]) -> Busy:
    return fill(make_task, make_job)
