"""Work queues in the job generator where no tree of shares is configured: their order, and partitions as one queue."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from brokerage_app.grid import configured
from brokerage_app.models import GlobalShare, ThrottleRecord, WorkQueue
from tasks_app.agents import job_generator
from tasks_app.explaining.why_task import why
from tasks_app.generation.queue_order import order_of
from tasks_app.generation.task_turns import HAS_WORK
from tasks_app.generation.throttle import decide
from tasks_app.generation.turns_by_configuration import turns_of
from tasks_app.lifecycle import claims
from tasks_app.models import Job, Task
from tests.flow.driving import jobs, parameters, settle, task, wake
from tests.flow.pilot import Pilot
from tests.flow.test_throttle import configure, queue_users, ready_task, work_queue

pytestmark = [pytest.mark.usefixtures("books"), pytest.mark.usefixtures("no_audit_of_crowds")]


@pytest.fixture
def no_audit_of_crowds() -> Any:
    """The jobs of `queue_users` have no log and no task: they go before the books are looked at."""
    configured.forget()
    yield
    Job.objects.filter(id__gte=90_000_000).delete()
    configured.forget()


def in_turn() -> list[int]:
    """The tasks that a pass takes, in their order."""
    wake()
    throttle = decide(timezone.now(), HAS_WORK)
    turns = turns_of(throttle.queues, order_of(throttle, HAS_WORK))
    claimed = claims.claim_tasks("t", ["ready", "running", "scouting"], 50, agent="job_generator", turns=turns)
    for task_id, fence in claimed:
        claims.release_task(task_id, fence)
    return [task_id for task_id, _ in claimed]


def test_queues_furthest_below_their_share_get_jobs_first() -> None:
    one, two, free = work_queue("one", 60), work_queue("two", 40), work_queue("free", None)
    tasks = {queue.name: ready_task(queue, f"lab.{queue.name}") for queue in (one, two, free)}
    second = ready_task(one, "lab.again", priority=900)
    queue_users(one, 3, "running")
    queue_users(two, 6, "running")
    free_of_shares, below, above = tasks["free"], second, tasks["two"]
    assert in_turn() == [free_of_shares, below, above, tasks["one"]], "the same person's second task comes later"
    queue_users(one, 12, "running")
    assert in_turn() == [free_of_shares, above, below, tasks["one"]]
    GlobalShare.objects.create(name="all", value=1)
    assert order_of(decide(timezone.now(), HAS_WORK), HAS_WORK) == (), "a tree of shares steers instead"


def test_a_partition_is_one_queue_for_the_throttle_and_its_tasks_say_so() -> None:
    whole = work_queue("parts", 50, partition_id=-1)
    left, right = (work_queue(name, 50, partition_id=whole.id) for name in ("left", "right"))
    configure("NQUEUELIMIT_parts", 5)
    held = ready_task(right)
    queue_users(left, 6)
    wake()
    assert job_generator.run().items == 0, "jobs of the one sub queue hold back those of the other"
    assert "6 jobs are queued (whole queue), the limit is 5" in (task(held).error_dialog or "")
    record = ThrottleRecord.objects.get()
    assert (record.queue, record.passed) == (f"queue:{whole.id}", False)
    answer = why(task(held))
    assert answer["blocked_by"]["code"] == "throttled_none_running" and answer["throttle"] == record.lines
    Job.objects.filter(id__gte=90_000_000).update(status="finished")
    wake()
    assert job_generator.run().items == len(jobs(held)) == 3


def test_sub_queues_take_turns_as_one_queue() -> None:
    whole = work_queue("parts", 50, partition_id=-1)
    left, right = (work_queue(name, 50, partition_id=whole.id) for name in ("left", "right"))
    alone = work_queue("alone", 50)
    tasks = [ready_task(queue, f"lab.{n}", priority=500 - n) for n, queue in enumerate((left, right, alone, alone))]
    Task.objects.filter(pk__in=tasks).update(user="ada")
    WorkQueue.objects.filter(pk=alone.id).update(order=1)
    assert in_turn() == [tasks[2], tasks[0], tasks[3], tasks[1]], "left and right have one turn in each round"


def test_a_sub_queue_of_a_partition_without_a_share_is_not_throttled() -> None:
    whole = work_queue("parts", None, partition_id=-1)
    sub = work_queue("sub", 50, partition_id=whole.id)
    configure("NQUEUELIMIT_parts", 5)
    made = ready_task(sub)
    queue_users(sub, 6)
    wake()
    assert job_generator.run().items == len(jobs(made)) == 3
    assert not ThrottleRecord.objects.exists()


def test_inside_a_partition_the_sub_queue_with_fewest_jobs_for_its_share_comes_first() -> None:
    whole = work_queue("parts", 100, partition_id=-1)
    left, right = (work_queue(name, share, partition_id=whole.id) for name, share in (("left", 70), ("right", 30)))
    tasks = [ready_task(left, "lab.left", priority=900), ready_task(right, "lab.right", priority=500)]
    queue_users(left, 8)
    queue_users(right, 2)
    assert in_turn() == tasks[::-1], "2 of 30 wait, and 8 of 70"
    queue_users(right, 2)
    assert in_turn() == tasks


def test_an_urgent_task_that_a_production_manager_submits_is_sent_first_on_a_site_without_shares(api: Any) -> None:
    def submitted(name: str, priority: int, **more: Any) -> int:
        values = {"userName": "production", "taskPriority": priority, **more}
        body = parameters(name, noInput=True, nEvents=1, nEventsPerJob=1, **values)
        answer = api("production").post("/api/v2/tasks/", body, "application/json")
        assert answer.status_code == 201, answer.json()["errors"]
        return int(answer.json()["id"])

    usual = submitted("user.production.usual", 2000)
    urgent = submitted("user.production.urgent", 50, processingType="urgent")
    settle()
    assert [int(job["taskID"]) for job in Pilot().fetch(2)] == [urgent, usual]
