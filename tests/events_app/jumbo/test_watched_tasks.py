"""The watch dog of jumbo jobs on the tables: what remains of tasks, and what it does with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.management import call_command

from brokerage_app.models import Queue
from events_app.agents import jumbo_watch
from events_app.jumbo.watched_tasks import by_position, watched_tasks
from events_app.lifecycle.range_moves import NewBlock, insert_blocks
from events_app.models import Event
from events_app.rules.event_states import EventStatus
from events_app.rules.jumbo_watch import JumboLimits
from events_app.rules.range_blocks import RangeBlock
from jedisite.database.sql import hot_cursor
from tasks_app.models import Dataset, File, Job, Task, TaskParams, TaskStatusLog
from tasks_app.params.splitrule import SplitRule

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 7, 1, tzinfo=UTC)
LIMITS = JumboLimits()
M = 1_000_000


@pytest.fixture
def make(make_task: Callable[..., Task]) -> Iterator[Callable[..., Task]]:
    """Tasks of event service with one input of one file, of which ranges are in these states."""

    def task(events: int, used: int = 0, *, blocks: dict[EventStatus, int] | None = None, **more: Any) -> Task:
        given = {
            "status": "running",
            "event_service": 1,
            "current_priority": 300,
            "split_rule": "ES=10,IF=1",
            "vo": "lab",
        }
        made = make_task(**{**given, **more})
        TaskParams.objects.create(task=made, params={})
        data = Dataset.objects.create(
            task=made, name=f"in.{made.id}", type="input", status="ready", files=9, files_finished=2, events=events
        )
        Dataset.objects.filter(pk=data.id).update(events_used=used)
        file = File.objects.create(task_id=made.id, dataset_id=data.id, lfn="f", type="input", status="running")
        first = 1
        for status, number in (blocks or {}).items():
            with hot_cursor() as cursor:
                block = RangeBlock(file.id, first, first + number - 1, 10)
                insert_blocks(cursor, [NewBlock(made.id, data.id, made.id, block)])
            Event.objects.filter(task_id=made.id, min_event=first).update(status=status)
            first += number
        return made

    Queue.objects.create(name="JUMBO", site_name="JUMBO", core_count=1, catchall="useJumboJobs", job_seed="es")
    yield task


def test_what_remains_is_what_no_job_has_processed(make: Callable[..., Task]) -> None:
    done = {EventStatus.FINISHED: 30, EventStatus.DONE: 40, EventStatus.MERGED: 20, EventStatus.SENT: 100}
    task = make(3 * M, 1000, blocks=done, use_jumbo="R", site="")
    (found,) = watched_tasks(LIMITS, NOW)
    assert (found.task_id, found.events, found.left, found.files_left) == (task.id, 3 * M, 3 * M - 1090, 7)
    File.objects.update(status="finished")
    assert watched_tasks(LIMITS, NOW)[0].left == 3 * M - 1000, "these are among those that are used"


def test_the_task_with_the_most_events_gets_jumbo_jobs_and_its_history_says_why(make: Callable[..., Task]) -> None:
    smaller, largest = make(2 * M), make(5 * M)
    make(9 * M, current_priority=500)
    make(9 * M, site="A")
    make(9 * M, event_service=0)
    assert jumbo_watch.run(now=NOW).items == 1
    smaller.refresh_from_db()
    largest.refresh_from_db()
    assert (smaller.use_jumbo, largest.use_jumbo) == (None, "W")
    assert largest.split_rule == "ES=10,IF=1,NJ=1,MJ=1" and largest.locked_by is None
    log = TaskStatusLog.objects.get(task_id=largest.id)
    assert log.by == "jumbo_watch" and (log.reason or "").startswith("jumbo jobs are switched on: 5")
    assert jumbo_watch.run(now=NOW).items == 0, "one task at a time"


def test_without_a_queue_for_jumbo_jobs_none_are_switched_on(make: Callable[..., Task]) -> None:
    make(5 * M)
    Queue.objects.update(catchall="")
    assert jumbo_watch.run(now=NOW).items == 0


def test_a_task_with_few_events_left_loses_jumbo_jobs_and_becomes_more_urgent(
    make: Callable[..., Task], make_job: Callable[..., Job]
) -> None:
    task = make(80_000, use_jumbo="R")
    job = make_job(task_id=task.id, status="activated", current_priority=300)
    assert jumbo_watch.run(now=NOW).items == 1
    task.refresh_from_db()
    job.refresh_from_db()
    assert (task.use_jumbo, task.current_priority, job.current_priority) == ("D", 500, 500)
    assert jumbo_watch.run(now=NOW).items == 0


def test_how_many_jumbo_jobs_a_task_gets_is_configured(make: Callable[..., Task]) -> None:
    task = make(5 * M)
    for key, number in (("JUMBO_PER_TASK", "3"), ("JUMBO_PER_SITE", "2")):
        call_command("config", "set", "jumbo_dog", key, number)
    jumbo_watch.run(now=NOW)
    task.refresh_from_db()
    assert task.split_rule == "ES=10,IF=1,NJ=3,MJ=2"


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ("ES=10", False),
        ("ES=10,IF=1", True),
        ("ES=10,NF=1", True),
        ("ES=10,NE=50,EI=100", True),
        ("ES=10,NE=100,EI=50", False),
    ],
)
def test_jumbo_jobs_need_positions_inside_of_files(rule: str, wanted: bool) -> None:
    assert by_position(SplitRule.parse(rule)) is wanted
