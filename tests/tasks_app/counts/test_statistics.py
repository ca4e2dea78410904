"""Numbers on jobs that brokers read: counts of what is there now, and what queues have done lately."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from brokerage_app.grid import pilotcalls, repository
from brokerage_app.models import (
    JobCount,
    PilotCalls,
    Queue,
    QueueActivity,
    QueueStatusLog,
    Refreshed,
    UserCount,
    WorkerStats,
)
from brokerage_app.vocabulary.site_view import UserJobs
from tasks_app.agents.watchdogs import site_statistics
from tasks_app.counts import statistics
from tasks_app.models import Job, JobStatusLog, Task
from tests.flow.threads import together

NOW = timezone.now()


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    repository.forget()
    pilotcalls._counts.clear()
    pilotcalls._next_write = 0.0


@pytest.fixture
def queues(db: None) -> None:
    for name in ("SITE_A", "SITE_B"):
        Queue.objects.create(name=name, site_name=name)


def counted() -> dict[tuple[Any, ...], tuple[int, int]]:
    rows = JobCount.objects.values_list("site", "share", "resource_type", "label", "status", "jobs", "cores")
    return {row[:5]: row[5:] for row in rows}


def test_open_jobs_are_counted_and_what_is_gone_disappears(make_job: Callable[..., Job]) -> None:
    for cores in (8, 8, None):
        make_job(gshare="X", resource_type="MCORE", prod_source_label="managed", core_count=cores)
    gone = make_job(status="activated")
    make_job(status="finished")
    assert statistics.refresh()
    assert counted() == {
        ("SITE_A", "X", "MCORE", "managed", "running"): (3, 17),
        ("SITE_A", "", "", "", "activated"): (1, 1),
    }
    gone.status = "failed"
    gone.save()
    make_job(gshare="X", resource_type="MCORE", prod_source_label="managed", core_count=1)
    statistics.refresh()
    assert counted() == {("SITE_A", "X", "MCORE", "managed", "running"): (4, 18)}


def test_counts_that_are_young_enough_are_not_counted_again(make_job: Callable[..., Job]) -> None:
    assert statistics.refresh()
    make_job()
    assert not statistics.refresh(3600)
    assert counted() == {}
    assert statistics.refresh()
    assert sum(jobs for jobs, _ in counted().values()) == 1
    assert Refreshed.objects.get(name="job_counts").rows == 1


def test_with_many_open_jobs_counting_rests_for_five_times_as_long_as_it_took(make_job: Callable[..., Job]) -> None:
    make_job()
    assert statistics.refresh()
    Refreshed.objects.filter(name=statistics.JOB_COUNTS).update(took_ms=60_000)
    assert statistics.refresh(), "few jobs are counted whenever somebody asks"
    Refreshed.objects.filter(name=statistics.JOB_COUNTS).update(took_ms=60_000)
    JobCount.objects.update(jobs=statistics.MANY_JOBS + 1)
    assert not statistics.refresh()
    Refreshed.objects.filter(name=statistics.JOB_COUNTS).update(at=timezone.now() - timedelta(minutes=5, seconds=1))
    assert statistics.refresh()


@pytest.mark.django_db(transaction=True)
def test_several_that_count_at_once_agree(make_job: Callable[..., Job]) -> None:
    for _ in range(5):
        make_job()
    done = []
    together(*([lambda: done.append(statistics.refresh())] * 4))
    assert len(done) == 4 and any(done)
    assert [jobs for jobs, _ in counted().values()] == [5]


def test_the_watchdog_writes_users_starts_transfers_and_disk_use(
    queues: None, make_task: Callable[..., Task], make_job: Callable[..., Job]
) -> None:
    task = make_task(disk_io=800)
    started = [make_job(task_id=task.id, core_count=8, gshare="U"), make_job(task_id=task.id, core_count=1, gshare="U")]
    started.append(make_job(status="finished"))
    started.append(make_job(status="failed"))
    for job, minutes in zip(started, (10, 300, 6, 20), strict=True):
        JobStatusLog.objects.create(
            job_id=job.id, status="running", by="pilot", site="SITE_A", at=NOW - timedelta(minutes=minutes)
        )
    late = make_job(site="SITE_B")
    JobStatusLog.objects.create(
        job_id=late.id, status="running", by="pilot", site="SITE_B", at=NOW - timedelta(hours=9)
    )
    make_job(status="transferring", nucleus="CERN")
    make_job(status="activated", gshare="U")
    make_job(status="activated", gshare="U", processing_type="pmerge")
    site_statistics.run(NOW)
    found = QueueActivity.objects.get(site="SITE_A")
    assert (found.started_per_h, found.last_start) == (3 / 6, NOW - timedelta(minutes=6))
    assert (found.disk_io_kbps, found.transferring_to) == ((800 / 8 + 800) / 2, {"CERN": 1})
    other = QueueActivity.objects.get(site="SITE_B")
    assert (other.started_per_h, other.last_start) == (0, NOW - timedelta(hours=9))
    grid = repository.load_grid(NOW)
    assert grid.sites["SITE_A"].users["U"] == {"ada": UserJobs(queued=1, running=2)}
    assert grid.sites["SITE_A"].last_start_s == 360


def test_a_start_is_remembered_when_it_is_no_longer_in_the_log(queues: None, make_job: Callable[..., Job]) -> None:
    log = JobStatusLog.objects.create(job_id=make_job().id, status="running", by="p", site="SITE_A", at=NOW)
    site_statistics.run(NOW)
    log.delete()
    Job.objects.all().delete()
    site_statistics.run(NOW + timedelta(hours=8))
    assert QueueActivity.objects.get(site="SITE_A").last_start == NOW
    assert not UserCount.objects.exists()


@pytest.mark.parametrize(("hours_ago", "pilots"), [((1,), None), ((1, 4), 12), ((4,), 0)])
def test_pilots_are_known_once_they_were_counted_for_three_hours(
    queues: None, hours_ago: tuple[int, ...], pilots: int | None
) -> None:
    for hours in hours_ago:
        PilotCalls.objects.create(
            site="SITE_A" if hours < 4 else "SITE_B", hour=NOW - timedelta(hours=hours), get_job=2, update_job=10
        )
    PilotCalls.objects.create(site="SITE_A", hour=NOW - timedelta(days=8), get_job=2)
    QueueStatusLog.objects.update(at=NOW - timedelta(hours=3, seconds=1))
    site_statistics.run(NOW)
    assert QueueActivity.objects.get(site="SITE_A").pilots_3h == pilots


def test_a_queue_that_was_just_added_has_had_no_time_for_pilots(queues: None) -> None:
    """It must not be refused, or be told of, for pilots that could not have come for three hours."""
    PilotCalls.objects.create(site="SITE_B", hour=NOW - timedelta(hours=4), get_job=2)
    QueueStatusLog.objects.filter(queue="SITE_B").update(at=NOW - timedelta(hours=4))
    QueueStatusLog.objects.filter(queue="SITE_A").update(at=NOW - timedelta(minutes=5), new="offline")
    site_statistics.run(NOW)
    assert dict(QueueActivity.objects.values_list("site", "pilots_3h")) == {"SITE_A": None, "SITE_B": 0}
    assert not PilotCalls.objects.filter(hour__lt=NOW - timedelta(days=7)).exists()


def test_workers_of_the_last_hour_that_run_or_wait_are_counted(queues: None) -> None:
    for status, workers, minutes in (("running", 5, 1), ("submitted", 7, 59), ("finished", 9, 1), ("ready", 11, 1)):
        WorkerStats.objects.create(
            harvester="h",
            queue="SITE_A",
            resource_type="SCORE",
            status=status,
            workers=workers,
            at=NOW - timedelta(minutes=minutes),
        )
    WorkerStats.objects.create(
        harvester="old",
        queue="SITE_A",
        resource_type="SCORE",
        status="running",
        workers=90,
        at=NOW - timedelta(hours=2),
    )
    site_statistics.run(NOW)
    assert QueueActivity.objects.get(site="SITE_A").batch_jobs == 12


def test_calls_of_pilots_are_written_together(queues: None, django_assert_num_queries: Any) -> None:
    pilotcalls.count("SITE_A", got=1)
    row = PilotCalls.objects.get()
    assert (row.site, row.get_job, row.update_job) == ("SITE_A", 1, 0)
    asked = row.last_get_job
    assert asked is not None and abs(asked - timezone.now()) < timedelta(seconds=20)
    threads = [
        threading.Thread(target=lambda: [pilotcalls.count("SITE_A", got=1, updated=2) for _ in range(50)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pilotcalls.count("no queue", got=5)
    assert PilotCalls.objects.get().get_job == 1
    pilotcalls.write()
    row = PilotCalls.objects.get()
    assert (row.get_job, row.update_job) == (201, 400)
    assert row.last_get_job is not None and row.last_get_job > asked
    pilotcalls.count("SITE_A", updated=1)
    pilotcalls.write()
    assert PilotCalls.objects.get().last_get_job == row.last_get_job, "an update asks for no job"


@pytest.mark.parametrize(
    ("asked", "waited", "at_pilot", "batch", "silent_since"),
    [
        (9, 30, False, False, 9),
        (None, 30, False, False, 30),
        (30, 9, False, False, 9),
        (4, 30, False, False, None),
        (30, 4, False, False, None),
        (9, 30, True, False, None),
        (9, 30, False, True, None),
    ],
)
def test_a_queue_is_silent_where_jobs_wait_and_no_pilot_asks(
    queues: None,
    make_job: Callable[..., Job],
    asked: int | None,
    waited: int,
    at_pilot: bool,
    batch: bool,
    silent_since: int | None,
) -> None:
    minute = timedelta(minutes=1)
    make_job(status="activated", site="SITE_A", state_change_time=NOW - waited * minute)
    if at_pilot:
        make_job(status="running", site="SITE_A")
    if asked is not None:
        PilotCalls.objects.create(site="SITE_A", hour=NOW - 60 * minute, get_job=1, last_get_job=NOW - asked * minute)
    if batch:
        WorkerStats.objects.create(
            harvester="h", queue="SITE_A", resource_type="SCORE", status="submitted", workers=1, at=NOW
        )
    statistics.refresh()
    site_statistics.run(NOW)
    found = QueueActivity.objects.get(site="SITE_A").silent_since
    assert found == (None if silent_since is None else NOW - silent_since * minute)
    grid = repository.load_grid(NOW)
    assert grid.sites["SITE_A"].silent_s == (None if silent_since is None else silent_since * 60.0)


@pytest.mark.parametrize(
    ("asked", "added", "at_pilot", "reported", "quiet_since"),
    [
        (11, 60, False, None, 11),
        (4, 60, False, None, None),
        (11, 60, True, None, None),
        (11, 60, False, 59, None),
        (11, 60, False, 61, 11),
        (None, 60, False, None, 60),
        (None, 4, False, None, None),
        (11, 4, False, None, 11),
        (None, None, False, None, 7 * 1440),
    ],
)
def test_a_queue_is_quiet_where_no_pilot_asks_whether_jobs_wait_or_not(
    queues: None,
    make_job: Callable[..., Job],
    asked: int | None,
    added: int | None,
    at_pilot: bool,
    reported: int | None,
    quiet_since: int | None,
) -> None:
    minute = timedelta(minutes=1)
    if at_pilot:
        make_job(status="sent", site="SITE_A")
    log = QueueStatusLog.objects.filter(queue="SITE_A")
    if added is None:
        log.delete()
    else:
        log.update(at=NOW - added * minute)
    if asked is not None:
        PilotCalls.objects.create(site="SITE_A", hour=NOW - 60 * minute, get_job=1, last_get_job=NOW - asked * minute)
    if reported is not None:
        WorkerStats.objects.create(
            harvester="h",
            queue="SITE_A",
            resource_type="SCORE",
            status="running",
            workers=0,
            at=NOW - reported * minute,
        )
    statistics.refresh()
    site_statistics.run(NOW)
    found = QueueActivity.objects.get(site="SITE_A")
    assert (found.quiet_since, found.silent_since) == (
        None if quiet_since is None else NOW - quiet_since * minute,
        None,
    )
    site = repository.load_grid(NOW).sites["SITE_A"]
    assert site.quiet_s == (None if quiet_since is None else quiet_since * 60.0)
