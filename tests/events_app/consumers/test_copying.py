"""Copies of jobs, and which job of a jobset owns its files."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import transaction

from events_app.consumers.copying import Copied, CopyKind, JobCopy, Place, copy_jobs, hand_over
from jedisite.database.sql import hot_cursor
from tasks_app.models import Dataset, File, Job, JobFile, JobParams, JobRetryHistory, JobStatusLog, Task
from tests.events_app.jobsets import Jobset, make_jobset
from tests.statements import sent

pytestmark = pytest.mark.django_db
RUN = {
    "worker_node": "node7",
    "worker_id": "w1",
    "events": 20,
    "pilot_error_code": 1305,
    "sub_status": "pilot_failed",
    "secret_hash": b"x",
    "cpu_time_s": 9,
}


@pytest.fixture
def jobset(make_task: Callable[..., Task], make_dataset: Callable[..., Dataset]) -> Jobset:
    return make_jobset(make_task, make_dataset, **RUN)


def copied(*copies: JobCopy) -> Copied:
    with transaction.atomic(), hot_cursor() as cursor:
        return copy_jobs(cursor, copies, by="test", reason="a test asks for it")


def files_of(job: int) -> list[tuple[str, str, str]]:
    return list(JobFile.objects.filter(job_id=job).order_by("id").values_list("type", "lfn", "status"))


def test_a_retry_is_a_new_job_of_the_jobset_that_begins_anew(jobset: Jobset) -> None:
    made = copied(JobCopy(jobset.first, CopyKind.RETRY))
    (number,) = made.jobs
    old, new = Job.objects.get(pk=jobset.first), Job.objects.get(pk=number)
    assert (new.status, new.fence, new.attempt, new.max_attempt) == ("activated", 0, 2, 4)
    assert (new.jobset_id, new.event_service, new.parent_id) == (old.jobset_id, 1, old.id)
    assert (new.current_priority, new.assigned_priority) == (901, 901)
    assert (new.site, new.core_count, new.min_ram_mb, new.user) == (old.site, 8, 8000, "ada")
    assert new.name == f"user.ada.test.{number}"
    blank = ("start_time", "end_time", "heartbeat_at", "secret_hash", *RUN)
    assert {name: getattr(new, name) for name in blank} == dict.fromkeys(blank)
    assert JobParams.objects.get(pk=number).params == JobParams.objects.get(pk=old.id).params
    (logged,) = JobStatusLog.objects.filter(job_id=number).values_list("status", "site", "by", "reason")
    assert logged == ("activated", "SITE_A", "test", "a test asks for it")
    (row,) = JobRetryHistory.objects.values_list("old_job_id", "new_job_id", "relation_type", "origin_job_id")
    assert row == (old.id, number, "retry", old.id)


def test_a_copy_reads_the_same_inputs_and_has_a_log_of_its_own(jobset: Jobset) -> None:
    made = copied(JobCopy(jobset.first, CopyKind.CONSUMER))
    (number,) = made.jobs
    log = f"out.000001.log.tgz.{number}"
    assert files_of(number) == [("input", "events.root", "again"), ("log", log, "defined")]
    record = File.objects.get(lfn=log)
    assert (record.status, record.job_id, record.out_job_id, record.keep_track) == ("defined", number, number, 1)
    assert made.logs == {jobset.logs.id: 1}
    assert JobFile.objects.get(file_id=record.id).guid
    assert not JobRetryHistory.objects.exists()
    assert Job.objects.get(pk=number).attempt == 1
    (again,) = copied(JobCopy(number, CopyKind.RETRY)).jobs
    assert ("log", f"out.000001.log.tgz.{again}", "defined") in files_of(again), "not one number behind the other"


def test_a_merge_job_has_its_own_needs_and_command(jobset: Jobset) -> None:
    place = Place("SITE_B", "STORE_B", None, 2000, "SCORE")
    copy = JobCopy(
        jobset.first, CopyKind.MERGE, place, 5000, "Express", "merge_events", "out.000001.root", "ap,esmerge"
    )
    (number,) = copied(copy).jobs
    new = Job.objects.get(pk=number)
    assert (new.event_service, new.attempt, new.max_attempt, new.current_priority) == (2, 2, 2, 5000)
    assert (new.gshare, new.site, new.core_count, new.min_ram_mb, new.resource_type) == (
        "Express",
        "SITE_B",
        None,
        2000,
        "SCORE",
    )
    assert (new.transformation, new.special_handling) == ("merge_events", "ap,esmerge")
    assert JobParams.objects.get(pk=number).params == "out.000001.root"
    assert JobFile.objects.get(job_id=number, type="log").destination_se == "STORE_B"
    assert JobRetryHistory.objects.get().relation_type == "es_merge"


def test_copies_cost_the_same_for_any_number(jobset: Jobset) -> None:
    with sent() as statements:
        made = copied(*[JobCopy(jobset.first, CopyKind.CONSUMER) for _ in range(20)])
    assert len(statements) == 3
    assert len(set(made.jobs)) == 20 and made.logs == {jobset.logs.id: 20}
    assert copied() == Copied([], {})


def test_files_go_to_one_job_of_the_jobset_and_count_for_that(jobset: Jobset) -> None:
    other = jobset.another()
    with transaction.atomic(), hot_cursor() as cursor:
        hand_over(cursor, jobset.task.id, [jobset.first, other], other)
    log = f"out.000001.log.tgz.{other}"
    assert jobset.owner() == other
    assert files_of(jobset.first) == [("input", "events.root", "again"), ("log", "out.000001.log.tgz", "defined")]
    assert sorted(files_of(other)) == [
        ("input", "events.root", "ready"),
        ("log", log, "defined"),
        ("output", "out.000001.root", "defined"),
    ]
    out = File.objects.get(lfn="out.000001.root")
    assert (out.job_id, out.out_job_id) == (other, other)


def test_only_what_a_job_has_is_handed_over(jobset: Jobset) -> None:
    second, third = jobset.another(), jobset.another()
    with transaction.atomic(), hot_cursor() as cursor:
        hand_over(cursor, jobset.task.id, [second], third)
    assert jobset.owner() == jobset.first
    File.objects.filter(pk=jobset.file.id).update(status="finished")
    with transaction.atomic(), hot_cursor() as cursor:
        hand_over(cursor, jobset.task.id, [jobset.first], third)
    assert jobset.owner() == jobset.first, "it is decided"


def test_a_clone_writes_files_of_its_own_and_counts_the_same_events(jobset: Jobset) -> None:
    params = "--out out.000001.root --log out.000001.root.txt -p%20out.000001.root"
    names = ("out.000001.root", "out.000001.root.txt")
    Job.objects.filter(pk=jobset.first).update(events=20)
    (number,) = copied(JobCopy(jobset.first, CopyKind.CLONE, params=params, outputs=names)).jobs
    own = f"out.000001.{number}.root"
    assert JobParams.objects.get(pk=number).params == f"--out {own} --log out.000001.root.{number}.txt -p%20{own}"
    assert ("output", own, "defined") in files_of(number) and len(files_of(number)) == 3
    record = File.objects.get(lfn=own)
    assert (record.type, record.status, record.job_id, record.out_job_id) == ("output", "defined", number, number)
    new = Job.objects.get(pk=number)
    assert (new.attempt, new.events, new.parent_id) == (1, 20, None)
    assert not JobRetryHistory.objects.exists()
