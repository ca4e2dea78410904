"""Tables filled as a busy installation has them, and people who look at the pages."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from brokerage_app.models import Queue, VerdictRecord
from tasks_app.models import (
    Dataset,
    Job,
    JobFile,
    JobRetryHistory,
    JobStatusLog,
    RetryNote,
    ScoutReport,
    Task,
    TaskParams,
    TaskStatusLog,
)


@pytest.fixture(scope="session", autouse=True)
def static_root() -> None:
    """The folder of collected static files; without it every request warns."""
    Path(django_settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)


@pytest.fixture
def ada(db: None) -> User:
    return User.objects.create_user("ada", password="engine-of-1843")


@pytest.fixture
def reader(ada: User, client: Client) -> Client:
    client.force_login(ada)
    return client


@pytest.fixture
def operator(db: None, client: Client) -> Client:
    client.force_login(User.objects.create_superuser("grace", password="compiler-of-1952"))
    return client


@pytest.fixture
def busy_task(make_task: Callable[..., Task], make_job: Callable[..., Job]) -> Task:
    """A task with datasets, jobs in many states at several sites, errors, a verdict and a history."""
    task = make_task(state_change_time=timezone.now() - timedelta(minutes=5))
    TaskParams.objects.create(task=task, params={"taskName": "user.ada.<b>bold</b>", "nFilesPerJob": 2})
    for number in range(12):
        Dataset.objects.create(
            task=task,
            name=f"data.set.{number}",
            type="input" if number < 2 else "output",
            status="ready",
            files=100,
            files_to_be_used=100,
            files_used=60,
            files_finished=40,
            files_failed=5,
        )
    for number in range(30):
        status = ("running", "activated", "finished", "failed", "failed")[number % 5]
        failed = {"pilot_error_code": 1305, "trans_exit_code": str(1 + number % 3)} if status == "failed" else {}
        make_job(task_id=task.id, status=status, site=f"SITE_{'ABC'[number % 3]}", **failed)
    skipped = [["SITE_D", "low_memory", "needs 4000 MB, the site gives 2000 MB"]]
    VerdictRecord.objects.create(task_id=task.id, chosen=[["SITE_A", 1.0]], skipped=skipped, sentence="1 of 2 sites.")
    TaskStatusLog.objects.create(task_id=task.id, old_status="ready", status="running", by="job_generator")
    ScoutReport.objects.create(
        task_id=task.id,
        scouts=True,
        outcome="passed",
        sample=10,
        finished_jobs=10,
        detail="9 of 10 input files of scouts succeeded, 1 failed permanently (all files of the scouts are finished or have no "
        "attempt left); 9 jobs were measured; 190 more files are released",
        presets={
            "ram_count": 1000,
            "cpu_time": None,
            "cpu_time_unit": None,
            "out_disk_count": 0,
            "out_disk_unit": "kB",
        },
        measured={
            "ram_count": 1650,
            "cpu_time": 162,
            "cpu_time_unit": "HS06sPerEvent",
            "out_disk_count": 1024,
            "out_disk_unit": "kB",
            "cpu_efficiency_percent": 83.5,
        },
    )
    return task


@pytest.fixture
def failed_job(make_task: Callable[..., Task], make_job: Callable[..., Job]) -> Job:
    """A job that failed, with files, a history and a later attempt."""
    task = make_task()
    now = timezone.now()
    job = make_job(
        task_id=task.id,
        status="failed",
        pilot_error_code=1305,
        trans_exit_code="3",
        attempt=1,
        exe_error_diag="<script>alert(1)</script>",
        start_time=now - timedelta(hours=1),
        end_time=now,
        cpu_time_s=1800,
        max_rss_kb=2_000_000,
        min_ram_mb=2000,
    )
    again = make_job(task_id=task.id, attempt=2)
    JobRetryHistory.objects.create(task_id=task.id, old_job_id=job.id, new_job_id=again.id, origin_job_id=job.id)
    for number in range(20):
        JobFile.objects.create(job_id=job.id, type="input" if number else "log", lfn=f"file.{number}", scope="user.ada")
    for status in ("activated", "sent", "running", "failed"):
        JobStatusLog.objects.create(job_id=job.id, status=status, by="pilot")
    for code, detail, applied in (
        ("retry_more_memory", "the job had 2000 MB and used 1954 MB, its inputs get 3000 MB", True),
        ("retry_not_applicable", "retry rule 7 (no_retry) fits exe error 3 but is not active", False),
    ):
        RetryNote.objects.create(job_id=job.id, task_id=task.id, code=code, detail=detail, applied=applied)
    return job


@pytest.fixture
def sites(db: None) -> None:
    for letter in "ABC":
        Queue.objects.create(name=f"SITE_{letter}", site_name=letter)
