"""The door for the states of jobs, asked for every pair of states: what the table allows happens and is logged, and
nothing else happens at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product

import pytest
from django.db import transaction

from jedisite.database.sql import hot_cursor
from tasks_app.domain.states import JOB_FINAL, JOB_MOVES, JobStatus
from tasks_app.lifecycle import job_moves
from tasks_app.lifecycle.job_ends import JobEnd, write_ends
from tasks_app.models import Job, JobStatusLog
from tasks_app.outcomes import outcomes

Make = Callable[..., Job]
ENDS = JOB_FINAL | {JobStatus.MERGING}
PAIRS = tuple(product(JobStatus, JobStatus))


def assert_moved(
    jobs: dict[int, tuple[str, str]], by: str, reason: str | None, news: Iterable[str] = JobStatus
) -> None:
    """Each job, given with its old state and the one it was asked for, has moved and says so where the table allows it
    and the door is for it; the others are as they were."""
    door = set(news)
    expected = {job: new if new in JOB_MOVES[JobStatus(old)] & door else old for job, (old, new) in jobs.items()}
    assert dict(Job.objects.values_list("id", "status")) == expected
    logged = {(job, new, by, reason, "SITE_A") for job, (_, new) in jobs.items() if expected[job] != jobs[job][0]}
    assert set(JobStatusLog.objects.values_list("job_id", "status", "by", "reason", "site")) == logged


@pytest.mark.django_db
def test_jobs_of_a_task_move_as_the_table_allows(make_job: Make) -> None:
    jobs = {make_job(status=old, task_id=1000 + n).id: (old, new) for n, (old, new) in enumerate(PAIRS)}
    moved = [
        job_moves.move_jobs_of_task(1000 + n, old, new, by="ada", reason="so be it")
        for n, (old, new) in enumerate(PAIRS)
    ]
    assert moved == [int(new in JOB_MOVES[old]) for old, new in PAIRS]
    assert_moved(jobs, "ada", "so be it")


@pytest.mark.django_db
def test_free_jobs_move_as_the_table_allows(make_job: Make) -> None:
    jobs = {make_job(status=old).id: (old, new) for old, new in PAIRS}
    moved = [
        job_moves.move_free_jobs(old, new, "j.pandaid = %(id)s", {"id": job}, by="t", reason="x", limit=9)
        for job, (old, new) in jobs.items()
    ]
    assert moved == [int(new in JOB_MOVES[JobStatus(old)]) for old, new in jobs.values()]
    assert_moved(jobs, "t", "x")


@pytest.mark.django_db
def test_jobs_in_other_states_than_the_one_named_stay(make_job: Make) -> None:
    jobs = {make_job(status=old, task_id=7).id: old for old in JobStatus}
    assert job_moves.move_jobs_of_task(7, "activated", "throttled", by="t", reason="x") == 1
    changed = {job for job, old in jobs.items() if Job.objects.get(pk=job).status != old}
    assert changed == {job for job, old in jobs.items() if old == "activated"}


@pytest.mark.django_db
def test_jobs_end_as_the_table_allows(make_job: Make) -> None:
    jobs = {make_job(status=old).id: (old, new) for old, new in PAIRS}
    with hot_cursor() as cursor:
        ended = write_ends(cursor, [JobEnd(job, new, 5, "adder", "why") for job, (_, new) in jobs.items()])
    allowed = {job for job, (old, new) in jobs.items() if new in JOB_MOVES[JobStatus(old)] & ENDS}
    assert set(ended) == allowed
    assert_moved(jobs, "adder", "why", ENDS)
    assert set(Job.objects.filter(end_time__isnull=False).values_list("id", flat=True)) == allowed


@pytest.mark.django_db(transaction=True)
def test_a_booking_ends_no_job_as_the_table_forbids(make_job: Make) -> None:
    jobs = {make_job(status=old).id: (old, new) for old, new in PAIRS}
    with transaction.atomic(), hot_cursor() as cursor:
        outcomes.book(cursor, [outcomes.Outcome(job, None, new, by="t") for job, (_, new) in jobs.items()])
    assert_moved(jobs, "t", "", ENDS)


@pytest.mark.django_db
def test_jobs_get_their_library_as_the_table_allows(make_job: Make) -> None:
    jobs = {make_job(status=old).id: (old, new) for old, new in PAIRS}
    with hot_cursor() as cursor:
        for job, (_, new) in jobs.items():
            job_moves.give_library(cursor, 1, 2, [job], new, by="t", reason="x")
    stayed = {job: (old, new if old == "defined" else old) for job, (old, new) in jobs.items()}
    assert_moved(stayed, "t", "x")
