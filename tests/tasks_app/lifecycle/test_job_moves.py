"""The door for the states of jobs, asked for every pair of states: what the table allows happens and is logged, and
nothing else happens at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product

import pytest
from django.db import transaction

from jedisite.database.sql import hot_cursor
from tasks_app.dispatch import handing_out
from tasks_app.dispatch.bulk_reports import update_jobs
from tasks_app.dispatch.reports import Proof, Report, update_job
from tasks_app.domain.states import JOB_FINAL, JOB_MOVES, JobStatus
from tasks_app.lifecycle import job_moves
from tasks_app.lifecycle.job_ends import JobEnd, write_ends
from tasks_app.lifecycle.job_reports import ADVANCE, ADVANCES, ALIVE
from tasks_app.models import Job, JobOutputReport, JobStatusLog
from tasks_app.outcomes import outcomes

Make = Callable[..., Job]
ENDS = JOB_FINAL | {JobStatus.MERGING}
PAIRS = tuple(product(JobStatus, JobStatus))


def assert_moved(jobs: dict[int, tuple[str, str]], by: str, reason: str, news: Iterable[str] = JobStatus) -> None:
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


@pytest.mark.django_db
@pytest.mark.parametrize("draw", [0, 99])
def test_only_jobs_that_may_be_sent_are_handed_out(make_job: Make, draw: int) -> None:
    handing_out._hints.clear()
    jobs = {make_job(status=old).id: (old, "sent") for old in JobStatus}
    handed = handing_out.get_jobs(handing_out.Request("SITE_A", count=99, by="p"), draw)
    assert [job["PandaID"] for job in handed] == [
        i for i, (old, _) in jobs.items() if "sent" in JOB_MOVES[JobStatus(old)]
    ]
    assert_moved(jobs, "p", "")


@pytest.mark.django_db
@pytest.mark.parametrize("in_a_list", [False, True])
def test_reports_move_jobs_as_the_table_allows(make_job: Make, in_a_list: bool) -> None:
    said = {"starting": "starting", "running": "running", "finished": "holding", "failed": "holding"}
    jobs = {make_job(status=old, attempt=1).id: (old, word) for old, word in product(JobStatus, said)}
    reports = [Report(job, word, Proof(site="SITE_A", attempt=1), by="p") for job, (_, word) in jobs.items()]
    if in_a_list:
        update_jobs(reports)
    else:
        for report in reports:
            update_job(report)
    assert_moved({job: (old, said[word]) for job, (old, word) in jobs.items()}, "p", "")
    assert set(JobOutputReport.objects.values_list("id", flat=True)) == set(
        Job.objects.filter(
            status="holding", pk__in=[i for i, (old, _) in jobs.items() if old != "holding"]
        ).values_list("id", flat=True)
    )


@pytest.mark.django_db
def test_the_statements_for_reports_move_to_no_other_state(make_job: Make) -> None:
    """Whatever they are asked for: not because their callers ask for nothing else."""
    jobs = {make_job(status=old).id: (old, new) for old, new in PAIRS}
    mine = "pandaid = %(job)s"
    with hot_cursor() as cursor:
        for job, (_, new) in jobs.items():
            cursor.execute(
                ADVANCE.replace("{mine}", mine).replace("{given}", ""),
                {"status": new, "start": None, "job": job, "by": "p"},
            )
    assert_moved(jobs, "p", "", ALIVE)


@pytest.mark.django_db
def test_the_statements_for_lists_of_reports_move_to_no_other_state(make_job: Make) -> None:
    jobs = {make_job(status=old).id: (old, new) for old, new in PAIRS}
    types = {"n": "bigint", "job": "bigint", "status": "text", "start": "timestamptz", "by": "text"}
    statement = ADVANCES.format(
        arrays=", ".join(f"%({name})s::{kind}[]" for name, kind in types.items()),
        names=", ".join(f"said_{name}" for name in types),
        mine="true",
        measures="",
    )
    values = {"n": list(jobs), "job": list(jobs), "status": [str(new) for _, new in jobs.values()]}
    with hot_cursor() as cursor:
        cursor.execute(statement, values | {"start": [None] * len(jobs), "by": ["p"] * len(jobs)})
    assert_moved(jobs, "p", "", ALIVE)
