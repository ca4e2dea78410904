"""The pages on work queues: the list, one queue, and which queue a task would get."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from brokerage_app.models import GlobalShare, ThrottleRecord, WorkQueue
from tasks_app.counts import statistics
from tasks_app.models import Job, Task

pytestmark = pytest.mark.django_db
MOST_QUERIES = 12


@pytest.fixture
def queues(make_task: Callable[..., Task], make_job: Callable[..., Job]) -> dict[str, int]:
    """Three queues of a label, one of them held back, and one that is inactive; the first has a task and jobs."""
    ids = {}
    for order, (name, criteria, share, status) in enumerate(
        (
            ("simul", "processingType = 'simul' AND coreCount > 1", 60, None),
            ("evgen", "processingType IN ('evgen')", 20, None),
            ("rest", None, 20, None),
            ("old", "site = 'x'", 5, "inactive"),
        )
    ):
        ids[name] = WorkQueue.objects.create(
            name=name, type="managed", vo="atlas", order=order, criteria=criteria, share=share, status=status
        ).id
    GlobalShare.objects.create(name="MC", value=1)
    task = make_task(work_queue_id=ids["simul"], vo="atlas", prod_source_label="managed", processing_type="evgen")
    for n, status in enumerate(("running", "running", "activated")):
        made = timezone.now() - timedelta(minutes=30)
        make_job(
            task_id=task.id,
            status=status,
            work_queue_id=ids["simul"],
            core_count=8,
            site=f"S{n % 2}",
            creation_time=made,
        )
    statistics.refresh()
    for queue, passed, least in ((f"queue:{ids['simul']}", False, None), ("share:MC", True, 900)):
        ThrottleRecord.objects.create(
            vo="atlas",
            label="managed",
            queue=queue,
            passed=passed,
            min_priority=least,
            max_jobs=0 if not passed else 7,
            detail="4120 jobs are queued, 2400 may be",
            lines=["stops: <b>queued"],
        )
    return {**ids, "task": task.id}


def test_queues_say_what_they_have_and_what_holds_them_back(
    reader: Client, queues: dict[str, int], django_assert_max_num_queries: Any
) -> None:
    reader.get("/help/states/")  # the choices of the frame are kept for a minute
    with django_assert_max_num_queries(MOST_QUERIES):
        answer = reader.get("/queues/")
    rows = {row.queue.name: row for row in answer.context["rows"]}
    assert [(name, row.state) for name, row in rows.items()] == [
        ("simul", "throttled"),
        ("evgen", "ok"),
        ("rest", "ok"),
        ("old", "inactive"),
    ]
    first = rows["simul"]
    assert (first.jobs.running, first.jobs.cores, first.jobs.queued) == (2, 16, 1)
    assert (first.tasks.open, first.tasks.oldest, first.percent) == (1, queues["task"], 100)
    assert round(first.made_per_h) == 6  # three in half an hour
    text = answer.content.decode()
    assert "4120 jobs are queued, 2400 may be" in text and "&lt;b&gt;queued" in text and "<b>queued" not in text
    assert "/shares/MC/" in text and f"/jobs/?queue={queues['simul']}&amp;status=" in text
    with django_assert_max_num_queries(MOST_QUERIES):
        page = reader.get(f"/queues/{queues['simul']}/")
    assert [(site, jobs.cores, jobs.queued) for site, jobs, _ in page.context["sites"]] == [("S0", 8, 1), ("S1", 8, 0)]
    assert f"/tasks/{queues['task']}/" in page.content.decode()
    assert "No job of this queue is open" in reader.get(f"/queues/{queues['rest']}/").content.decode()
    assert reader.get("/queues/999999/").status_code == 404


def test_without_queues_the_page_says_so(reader: Client) -> None:
    assert "No work queue is configured" in reader.get("/queues/").content.decode()


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("a-vo=atlas&a-label=managed&a-processingType=simul&a-coreCount=8", "Work queue <strong>simul</strong>, share"),
        ("a-vo=atlas&a-label=managed&a-processingType=x", "Work queue <strong>rest</strong>"),
        ("a-vo=atlas&a-label=managed&a-processingType=x", "processingType is &#x27;x&#x27;"),
        ("a-vo=cms", "Queues for vo=cms are undefined"),
        ("a-coreCount=many", "coreCount: enter a whole number"),
        ("a-vo=" + "x" * 200, "vo: at most 128 characters"),
        ("task=12345", "there is no task &#x27;12345&#x27;"),
        ("task=<b>", "there is no task &#x27;&lt;b&gt;&#x27;"),
    ],
)
def test_the_tester_says_which_queue_a_task_would_get_and_why(
    reader: Client, queues: dict[str, int], asked: str, says: str
) -> None:
    assert says in reader.get(f"/queues/tester/?{asked}").content.decode()


def test_the_tester_takes_a_task_by_its_number(reader: Client, queues: dict[str, int]) -> None:
    text = reader.get(f"/queues/tester/?task={queues['task']}").content.decode()
    assert "Work queue <strong>evgen</strong>" in text and "processingType = &#x27;simul&#x27; is false" in text


def test_the_page_says_whether_the_shares_of_queues_steer(
    reader: Client, queues: dict[str, int], make_job: Callable[..., Job]
) -> None:
    says = "These shares only inform: jobs are created and sent by the"
    assert says in reader.get("/queues/").content.decode()
    assert "it only informs" in reader.get(f"/queues/{queues['simul']}/").content.decode()
    GlobalShare.objects.all().delete()
    text = reader.get("/queues/").content.decode()
    assert says not in text and "Jobs are created and sent by these shares" in text
    assert "it only informs" not in reader.get(f"/queues/{queues['simul']}/").content.decode()
    make_job(status="activated", work_queue_id=queues["rest"])
    assert reader.get("/api/v2/shares/").json()["order"] == ["rest", "simul", "evgen"], "rest has less than its part"
    WorkQueue.objects.update(share=None)
    assert "No queue has a share: jobs are sent by priority" in reader.get("/queues/").content.decode()


def test_sub_queues_say_what_they_have_and_what_holds_back_their_partition(
    reader: Client, queues: dict[str, int], make_job: Callable[..., Job]
) -> None:
    partition = WorkQueue.objects.create(name="part", type="managed", vo="atlas", partition_id=-1, share=100)
    WorkQueue.objects.filter(pk__in=(queues["evgen"], queues["rest"])).update(partition_id=partition.id)
    make_job(status="running", work_queue_id=queues["rest"], core_count=48)
    statistics.refresh()
    ThrottleRecord.objects.create(
        vo="atlas", label="managed", queue=f"queue:{partition.id}", passed=False, detail="full"
    )
    rows = {row.queue.name: row for row in reader.get("/queues/").context["rows"]}
    assert {name: (row.has, row.state) for name, row in rows.items()} == {
        "simul": (25, "throttled"),
        "evgen": (0, "throttled"),
        "rest": (75, "throttled"),
        "part": (75, "throttled"),
        "old": (None, "inactive"),
    }
