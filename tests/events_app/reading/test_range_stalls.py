"""What keeps ranges from getting on: the gate of a task, and what needs attention."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from events_app.models import Event
from events_app.reading import consumer_counts, range_counts, range_stalls
from events_app.rules.event_states import EventStatus
from events_app.rules.range_standing import Standing
from events_app.rules.stalls import IDLE_AFTER, KIND
from jedisite import refusals
from tasks_app.agents import attention
from tasks_app.models import AttentionItem, Job, Task
from tests.events_app.busy_ranges import Busy, block, fill

pytestmark = pytest.mark.django_db


@pytest.fixture
def busy(make_task: Callable[..., Task], make_job: Callable[..., Job]) -> Busy:
    return fill(make_task, make_job)


def test_attention_finds_idle_consumers_ranges_without_attempts_and_outputs_that_nobody_merges(
    busy: Busy, make_job: Callable[..., Job], make_task: Callable[..., Task]
) -> None:
    now = timezone.now()
    alone = busy.jobset + 7
    waits = {
        "task_id": busy.task.id,
        "event_service": 1,
        "status": "merging",
        "state_change_time": now - timedelta(hours=4),
    }
    make_job(**waits, jobset_id=alone)
    make_job(**waits, jobset_id=busy.jobset)
    ended = fill(make_task, make_job, status="done")
    attention.run_slow(now)
    found = {item.key.removeprefix("ranges:"): item for item in AttentionItem.objects.filter(kind=KIND)}
    task = busy.task.id
    assert set(found) == {f"idle:{task}", f"hopeless:{task}", f"unmerged:{task}"}, "nothing of tasks that have ended"
    assert ended.task.id != task
    assert "1 consumer has processed no range for up to 9 h" in found[f"idle:{task}"].sentence
    assert "12 ranges have no attempt left" in found[f"hopeless:{task}"].sentence
    assert "outputs of 1 consumer have waited to be merged for up to 4 h" in found[f"unmerged:{task}"].sentence
    Event.objects.filter(attempt=0).update(attempt=1)
    Job.objects.filter(status="merging").update(status="finished")
    Job.objects.filter(pk=busy.idle.id).update(ranges_reported_at=now)
    attention.run_slow(now + timedelta(minutes=5))
    assert not AttentionItem.objects.filter(kind=KIND, gone_at=None).exists()


def test_a_consumer_that_stalls_after_it_has_reported_a_range_makes_no_progress(
    busy: Busy, make_job: Callable[..., Job]
) -> None:
    """Clones report no ranges, and fine-grained jobs of PanDA's pilots need not: nothing is said of these."""
    now = timezone.now()
    old = {"task_id": busy.task.id, "status": "running", "site": "SITE_A", "start_time": now - timedelta(hours=20)}
    stalled = make_job(**old, event_service=1, ranges_reported_at=now - timedelta(hours=7))
    jumbo = make_job(**old, event_service=4)
    make_job(**old, event_service=1, ranges_reported_at=now - timedelta(hours=5))
    make_job(**old, event_service=3)
    make_job(**old, event_service=6)
    make_job(**old, event_service=2)
    found = consumer_counts.idle(now - IDLE_AFTER)
    assert [one.job_id for one in found] == [jumbo.id, busy.idle.id, stalled.id]
    assert [one.reported for one in found] == [None, None, now - timedelta(hours=7)]
    said = [one.sentence for one in range_stalls.without_progress(now) if one.key.startswith("idle")]
    assert said == [f"Task {busy.task.id} {busy.task.name}: 3 consumers have processed no range for up to 20 h."]


def test_why_asks_the_ranges_of_tasks_with_event_service_only(
    busy: Busy, reader: Client, make_task: Callable[..., Task], django_assert_max_num_queries: Any
) -> None:
    answer = reader.get(f"/api/v2/tasks/{busy.task.id}/why/").json()
    (gate,) = (one for one in answer["gates"] if one["name"] == "ranges")
    assert gate["sentence"] == (
        "143 ranges are ready, 50 are at 2 consumers, 40 are finished, 5 failed and will be tried again, "
        "150 wait to be merged, 100 are merged, 12 have no attempt left; one of the consumers has reported no range for 9 h"
    )
    with django_assert_max_num_queries(16):
        text = reader.get(f"/tasks/{busy.task.id}/why/").content.decode()
    assert "Its ranges of events make progress" in text
    others = reader.get(f"/api/v2/tasks/{make_task().id}/why/").json()
    assert "ranges" not in {one["name"] for one in others["gates"]}


def test_a_task_whose_ranges_have_no_attempt_left_says_so(make_task: Callable[..., Task], busy: Busy) -> None:
    task = make_task(event_service=1)
    Event.objects.bulk_create([block(task, busy.files[0], 9, 1, 12, EventStatus.READY, attempt=0)])
    gate = range_stalls.gate(task, timezone.now())
    assert gate is not None and gate.answer == "no"
    assert (gate.code, gate.sentence) == ("ranges_without_attempts", "of 12 ranges 12 have no attempt left")
    assert refusals.get(gate.code).advice in gate.advice


def test_parts_of_a_file_have_the_ranges_that_begin_there(busy: Busy) -> None:
    task, file = busy.task, busy.files[5]
    Event.objects.bulk_create(
        [
            block(task, file, 1, 1, 7, EventStatus.SENT),
            block(task, file, 2, 71, 1, EventStatus.READY),
            block(task, file, 3, 81, 16, EventStatus.DONE),
        ]
    )
    found = range_counts.of_files(task.id, [file.id, busy.files[0].id], bins=6)
    one = found[file.id]
    assert (one.first, one.last, one.is_capped) == (1, 240, False)
    assert {place: dict(cell.of) for place, cell in one.cells.items()} == {
        0: {Standing.SENT: 4},
        1: {Standing.SENT: 3, Standing.READY: 1},
        **{place: {Standing.DONE: 4} for place in (2, 3, 4, 5)},
    }
    assert dict(one.counts.of) == {Standing.SENT: 7, Standing.READY: 1, Standing.DONE: 16}
    assert dict(found[busy.files[0].id].counts.of) == {Standing.MERGED: 100}


def test_of_a_block_with_a_shorter_last_range_all_ranges_count(busy: Busy) -> None:
    rest = block(busy.task, busy.files[5], 1, 1, 3, EventStatus.SENT)
    rest.max_event = 25
    Event.objects.bulk_create([rest])
    for bins in (1, 2, 3, 7, 48):
        found = range_counts.of_files(busy.task.id, [busy.files[5].id], bins=bins)[busy.files[5].id]
        assert found.counts.total == 3, bins


def test_limits_are_kept_and_said(busy: Busy) -> None:
    assert range_counts.of_task(busy.task.id, 5).is_capped and not range_counts.of_task(busy.task.id).is_capped
    assert range_counts.of_tasks([busy.task.id, 1], 5)[1].counts.total == 0
    assert range_counts.of_files(busy.task.id, [busy.files[3].id], most=5)[busy.files[3].id].is_capped
    assert len(consumer_counts.of_jobset(busy.task.id, busy.jobset, most=1)) == 2
    assert len(consumer_counts.at_work(busy.task.id, most=1)) == 2
