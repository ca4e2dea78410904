"""What agents book of jobs that have ended, whatever ended them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from tasks_app.agents import failures
from tasks_app.agents.watchdogs import archive, old_failures
from tasks_app.domain.states import JobStatus
from tasks_app.failures.booking import book_ends
from tasks_app.models import ErrorFingerprint, Job, JobEndDue, JobEnds, JobFailure
from tasks_app.outcomes.job_outcome import Outcome
from tasks_app.outcomes.outcomes import book
from tests.ended_jobs import note_failed

NOW = timezone.now()


def end(job: Job, status: JobStatus, diag: str = "", component: str = "ddm") -> None:
    code = 200 if status == JobStatus.FAILED else 0
    with transaction.atomic(), connection.cursor() as cursor:
        book(cursor.cursor, [Outcome(job.id, job.task_id, status, component, code, diag, by="test")])


def counts(dimension: str) -> dict[str, tuple[int, int]]:
    return {row.key: (row.finished, row.failed) for row in JobEnds.objects.filter(dimension=dimension)}


@pytest.mark.django_db
def test_each_end_of_a_job_is_booked_once_with_its_error_and_what_it_cost(make_job: Callable[..., Job]) -> None:
    hour_ago = NOW - timedelta(hours=1)
    jobs = [
        make_job(
            task_id=7,
            site=f"SITE_{'AB'[n % 2]}",
            worker_node=f"slot{n}@wn1",
            pilot_id="t|Q|PR|3.7.2.5",
            core_count=8,
            start_time=hour_ago,
            end_time=NOW,
            gshare="User",
            attempt=2,
        )
        for n in range(4)
    ]
    end(jobs[0], JobStatus.FINISHED)
    end(jobs[1], JobStatus.FAILED, "file 17 is lost")
    end(jobs[2], JobStatus.FAILED, "file 18 is lost")
    end(jobs[3], JobStatus.CANCELLED)
    assert JobEndDue.objects.count() == 3
    with pytest.raises(RuntimeError), transaction.atomic():
        book_ends(100)
        raise RuntimeError("killed before the end of the transaction")
    assert (JobEndDue.objects.count(), JobFailure.objects.count(), JobEnds.objects.count()) == (3, 0, 0)

    assert failures.run().items == 3
    assert failures.run().items == 0
    found = ErrorFingerprint.objects.get()
    assert (found.key, found.text, found.example, found.category) == (
        "ddm:200",
        "file <n> is lost",
        "file 17 is lost",
        "data",
    )
    row = JobFailure.objects.get(pk=jobs[1].id)
    assert (row.site, row.node, row.user, row.activity, row.pilot_version) == (
        "SITE_B",
        "wn1",
        "ada",
        "User",
        "3.7.2.5",
    )
    assert (row.walltime_s, row.wasted_core_s, row.attempt, row.task_id) == (3600, 8 * 3600, 2, 7)
    assert counts("all") == {"": (1, 2)}
    assert counts("site") == {"SITE_A": (1, 1), "SITE_B": (0, 1)}
    assert (counts("node"), counts("task")) == ({"wn1": (1, 2)}, {"7": (1, 2)})

    # The agent was down until the job had been archived; the error is seen again, later.
    late = make_job(task_id=7)
    end(late, JobStatus.FAILED, "file 19 is lost")
    Job.objects.filter(pk=late.id).update(modification_time=NOW - timedelta(days=400))
    archive.run()
    assert failures.run().items == 1
    found.refresh_from_db()
    assert JobFailure.objects.get(pk=late.id).fingerprint_id == found.id
    assert found.first_seen < found.last_seen == JobFailure.objects.get(pk=late.id).ended


@pytest.mark.django_db
def test_old_failures_and_their_kinds_go(make_job: Callable[..., Job]) -> None:
    old, new = (make_job(status="failed", state_change_time=NOW - timedelta(days=d), exe_error_code=1) for d in (40, 1))
    note_failed(NOW - timedelta(days=60))
    assert failures.run().items == 2
    assert old_failures.run(now=NOW).items > 0
    assert [f.id for f in JobFailure.objects.all()] == [new.id]
    assert set(JobEnds.objects.values_list("hour__date", flat=True)) == {(NOW - timedelta(days=1)).date()}
    old_failures.run(now=NOW + timedelta(days=60))
    assert not ErrorFingerprint.objects.exists()
    assert old.id != new.id


@pytest.mark.django_db(transaction=True)
def test_two_passes_at_once_share_the_work(make_job: Callable[..., Job]) -> None:
    for number in range(40):
        end(make_job(task_id=number % 3), JobStatus.FAILED, f"error of {'abc'[number % 3] * 4}")
    start = threading.Barrier(2)
    done: list[int] = []

    def work() -> None:
        try:
            start.wait(10)
            while booked := book_ends(7):
                done.append(booked)
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    book_ends(1000)
    assert JobFailure.objects.count() == 40
    assert counts("all") == {"": (0, 40)}
    assert ErrorFingerprint.objects.count() == 3
