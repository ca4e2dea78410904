"""Watchdogs over jobs of queues and users that have too many or too few: fast rebrokerage, the massage of priorities."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from brokerage_app.grid import configured
from brokerage_app.models import GdpConfig, HarvesterSlots, Queue, WorkQueue
from jedisite.agents.registry import REGISTRY
from tasks_app.agents import feeder, job_generator, refiner
from tasks_app.agents.watchdogs import rebrokerage, user_priorities
from tasks_app.models import Job, JobStatusLog, Task
from tests.flow.driving import SITE, add_dataset, add_queue, files, jobs, parameters, reads, states, submit, wake

pytestmark = pytest.mark.usefixtures("books")


def configure(key: str, value: object, component: str = "rebroker", type: str = "int") -> None:
    GdpConfig.objects.create(app="pandaserver", component=component, key=key, value=str(value), type=type)
    configured.forget()


@pytest.fixture(autouse=True)
def _fresh_configuration() -> Iterator[None]:
    configured.forget()
    yield
    configured.forget()


def task_with_jobs(number: int, name: str = "lab.t", share: str = "MC", **more: Any) -> int:
    """A task with an activated job for each of its files, all at the sites that there are."""
    add_dataset(f"{name}.in", number)
    values = {"nFilesPerJob": 1, "prodSourceLabel": "managed", "taskType": "prod", **more}
    made = submit(parameters(name, reads(f"{name}.in"), **values))
    for run in (refiner.run, feeder.run):
        wake()
        run()
    Task.objects.filter(pk=made).update(gshare=share)
    wake()
    job_generator.run()
    return made


def test_both_watchdogs_are_registered() -> None:
    assert {"rebrokerage", "user_priorities"} <= set(REGISTRY)


def test_the_oldest_jobs_in_excess_are_closed_and_made_anew_elsewhere() -> None:
    made = task_with_jobs(12)
    oldest = [job.id for job in jobs(made)][:8]
    configure("FAST_REBRO_THRESHOLD_NQUEUE_MC", 4)
    assert rebrokerage.run().items == 8  # 12 are queued; 4, 3 x 0 and 0.3 x 12 are the limits
    closed = jobs(made, status="closed")
    assert [job.id for job in closed] == oldest
    assert {job.task_buffer_error_code for job in closed} == {110}
    said = JobStatusLog.objects.get(job_id=oldest[0], status="closed").reason
    assert said == (
        "12 jobs of MC are queued at SITE_A with 0 running; 3 x 0, 4 and 0.3 x 12 are the limits, so 8 are made again"
    )
    again = [file for file in files(made) if file.status == "ready"]
    assert (len(again), {file.attempt for file in again}, {file.failed_attempt for file in again}) == (8, {1}, {0})

    add_queue("SITE_B")
    wake()
    assert job_generator.run().items == 8
    assert {job.site for job in jobs(made, status="activated") if job.id > max(oldest) + 4} == {"SITE_B"}
    assert rebrokerage.run().items == 4  # now 8 of the share's 12 jobs are at the other site, again over the limit of 4


def test_jobs_go_back_to_the_only_site() -> None:
    made = task_with_jobs(6)
    configure("FAST_REBRO_THRESHOLD_NQUEUE_MC", 4)
    assert rebrokerage.run().items == 2
    wake()
    assert job_generator.run().items == 2
    assert states(made) == {"activated": 6, "closed": 2}
    assert {job.site for job in jobs(made)} == {SITE}


@pytest.mark.parametrize(
    ("key", "value", "closed"),
    [
        ("FAST_REBRO_THRESHOLD_NQUEUE_FRAC", 0.5, 6),
        ("FAST_REBRO_THRESHOLD_NQUEUE_FRAC", 1, 0),
        ("FAST_REBRO_THRESHOLD_NQNR_RATIO", 5, 2),
        ("FAST_REBRO_THRESHOLD_NQNR_RATIO", 6, 0),
    ],
)
def test_queues_give_jobs_back_beyond_all_limits_that_are_set(key: str, value: float, closed: int) -> None:
    """12 jobs of the share are queued at its only queue and 2 run there: 4, 3 x 2 and 0.3 x 12 are the usual limits."""
    made = task_with_jobs(12)
    if "RATIO" in key:
        queue_users("ada", SITE, 2, "running", gshare="MC")
    configure("FAST_REBRO_THRESHOLD_NQUEUE_MC", 4)
    configure(key, value, type="float")
    assert rebrokerage.run().items == closed
    assert states(made).get("closed", 0) == closed
    Job.objects.filter(id__gte=90_000_000).delete()


@pytest.mark.parametrize(
    "spared",
    [
        "no limit",
        "running",
        "paused queue",
        "no reassignment",
        "resource queue",
        "forbidden by the task",
        "slots",
        "its only site",
    ],
)
def test_jobs_stay_where_one_limit_is_not_passed(spared: str) -> None:
    more = {"forbidden by the task": {"disableReassign": True}, "its only site": {"includedSite": [SITE]}}
    made = task_with_jobs(12, **more.get(spared, {}))
    configure("FAST_REBRO_THRESHOLD_NQUEUE_Another" if spared == "no limit" else "FAST_REBRO_THRESHOLD_NQUEUE_MC", 4)
    if spared == "running":
        with connection.cursor() as cursor:
            cursor.execute(
                """INSERT INTO jobs (pandaid, jobstatus, gshare, computingsite, creationtime)
                   SELECT 90000000 + i, 'running', 'MC', %s, now() FROM generate_series(1, 4) i""",
                [SITE],
            )
    elif spared == "paused queue":
        Queue.objects.update(status="paused")
    elif spared == "no reassignment":
        Queue.objects.update(catchall="disableReassign")
    elif spared == "slots":
        HarvesterSlots.objects.create(queue=SITE, slots=100)
    elif spared == "resource queue":
        own = WorkQueue.objects.create(name="ES", type="managed", vo="lab", function="Resource")
        Job.objects.filter(task_id=made).update(work_queue_id=own.id)
    assert rebrokerage.run().items == 0
    assert states(made) == {"activated": 12}
    Job.objects.filter(id__gte=90_000_000).delete()


def queue_users(user: str, site: str, count: int, status: str, priority: int = 500, **more: Any) -> list[int]:
    start = 90_000_000 + Job.objects.count()
    values = {
        "status": status,
        "user": user,
        "site": site,
        "prod_source_label": "user",
        "current_priority": priority,
        "end_time": timezone.now() if status == "finished" else None,
        **more,
    }
    Job.objects.bulk_create(Job(id=start + i, **values) for i in range(count))
    return [start + i for i in range(count)]


def test_jobs_of_users_who_had_few_are_moved_to_the_top() -> None:
    queue_users("ada", SITE, 20, "running")
    queue_users("ada", SITE, 20, "finished")
    queue_users("ada", SITE, 3, "activated", 800)
    long_ago = timezone.now() - timedelta(days=2)
    queue_users("bob", SITE, 90, "finished", end_time=long_ago)
    mine = [queue_users("bob", SITE, 1, "activated", 700 - i)[0] for i in range(30)]
    # The mean is 20; bob lacks 20 jobs, so 20 of his jobs, but only those within four units of the best.
    assert user_priorities.run().items == 5
    raised = [Job.objects.get(pk=job).current_priority for job in mine]
    assert raised == [1000, 999, 998, 997, 996, *range(695, 670, -1)]
    assert set(Job.objects.filter(user="ada", status="activated").values_list("current_priority", flat=True)) == {800}
    assert user_priorities.run().items == 0, "the best is at the top"
    Job.objects.filter(id__gte=90_000_000).delete()


def test_tests_of_users_are_moved_as_analysis_is_and_those_of_the_site_are_not() -> None:
    test, own = (submit(parameters(f"lab.{kind}", prodSourceLabel="test")) for kind in ("anal", "prod"))
    Task.objects.filter(pk=own).update(task_type="prod")
    queue_users("ada", SITE, 40, "running", prod_source_label="test", task_id=test)
    queue_users("bob", SITE, 5, "activated", prod_source_label="test", task_id=own)
    assert user_priorities.run().items == 0
    queue_users("bob", SITE, 5, "activated", prod_source_label="test", task_id=test)
    assert user_priorities.run().items == 5
    Job.objects.filter(id__gte=90_000_000).delete()


def test_the_massage_leaves_production_and_merging_alone() -> None:
    queue_users("ada", SITE, 40, "running")
    queue_users("bob", SITE, 5, "activated", prod_source_label="managed")
    queue_users("bob", SITE, 5, "activated", processing_type="pmerge")
    assert user_priorities.run().items == 0
    queue_users("bob", SITE, 5, "activated", working_group="phys")
    assert user_priorities.run().items == 5, "jobs of a working group count for the group"
    Job.objects.filter(id__gte=90_000_000).delete()
