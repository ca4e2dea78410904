"""The page of time-outs counts what is near a limit and what is over it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from brokerage_app.grid.configuring import set_value
from tasks_app.configured import timeout_limits, timeout_table
from tasks_app.models import Dataset, Job, Task
from tasks_app.web.machinery.timeout_pages import rows

pytestmark = pytest.mark.django_db
NOW = timezone.now()


def ago(name: str, part: float) -> Any:
    """The moment at which this part of a limit has passed since."""
    return NOW - timeout_limits.limit(name) * part


def counts(name: str) -> tuple[int | None, int | None]:
    row = next(row for row in rows(NOW) if row.timeout.name == name)
    return row.near, row.over


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("job.pending", {"status": "pending", "prod_source_label": "managed"}),
        ("job.assigned", {"status": "assigned", "prod_source_label": "managed"}),
        ("job.activated", {"status": "activated", "prod_source_label": "managed"}),
        ("job.heartbeat", {"status": "running", "prod_source_label": "managed"}),
        ("job.holding_urgent", {"status": "holding", "prod_source_label": "managed", "current_priority": 900}),
    ],
)
def test_jobs(make_job: Callable[..., Job], name: str, columns: dict[str, Any]) -> None:
    for part in (0.1, 0.79, 0.81, 0.99, 1.01):
        moment = ago(name, part)
        make_job(creation_time=moment, state_change_time=moment, heartbeat_at=moment, **columns)
    assert counts(name) == (2, 1)


def test_tasks_datasets_and_claims(make_task: Callable[..., Task], make_dataset: Callable[..., Dataset]) -> None:
    make_task(status="exhausted", state_change_time=ago("task.exhausted", 0.9))
    make_task(status="exhausted", state_change_time=ago("task.exhausted", 2))
    make_task(status="exhausted", state_change_time=ago("task.exhausted", 2), split_rule="DF=1")
    make_task(
        status="pending", old_status="ready", frozen_time=ago("task.stuck", 1.1), next_check=NOW + timedelta(days=1)
    )
    make_task(status="throttled", throttled_time=NOW + timedelta(minutes=1), error_dialog="many attempts")
    make_task(status="throttled", throttled_time=NOW - timedelta(minutes=1), error_dialog="too many (type=jobs)")
    make_task(status="ready", locked_by="somebody-1", locked_time=ago("lock.task", 0.5))
    running = make_task(status="running", modification_time=ago("dataset.forgotten", 1.5))
    make_dataset(running, type="input", status="toupdate", modification_time=ago("dataset.forgotten", 1.5))
    assert counts("task.exhausted") == (1, 1)
    assert counts("task.stuck") == (0, 1)
    assert counts("task.quick_retry") == (0, 0)
    assert counts("task.pending") == (None, None), "the quick retry holds for all"
    assert counts("task.throttled_attempts") == (1, 0)
    assert counts("task.throttled_user") == (0, 1)
    assert counts("lock.task") == (0, 0)
    assert counts("dataset.forgotten") == (0, 1)


def test_the_page_shows_every_row_and_what_is_set_here(
    reader: Client, make_job: Callable[..., Job], settings: Any, django_assert_max_num_queries: Any
) -> None:
    settings.JEDI_LIMITS = {"job.pending": 7200}
    for _ in range(30):
        make_job(status="pending", creation_time=NOW - timedelta(hours=3))
    with django_assert_max_num_queries(12):
        text = reader.get("/timeouts/").content.decode()
    for row in timeout_table.TABLE.values():
        assert row.effect.split(":")[0] in text
    assert "set here" in text
    assert "<strong>30</strong>" in text


def test_a_limit_of_none_is_at_once_for_one_label_as_for_all(reader: Client) -> None:
    set_value("watchdog", "PENDING_TIMEOUT_user", "0", by="ada")
    text = reader.get("/timeouts/").content.decode()
    assert "user: at once" in text and "under 1 s" not in text
