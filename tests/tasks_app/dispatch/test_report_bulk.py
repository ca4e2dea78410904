"""Many reports at once mean what each of them means alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.test import Client
from django.utils import timezone

from tasks_app.dispatch.bulk_reports import update_jobs
from tasks_app.dispatch.reports import NotYoursError, Proof, Report, UnknownJobError, update_job
from tasks_app.models import Job, JobMetadata, JobOutputReport, JobStatusLog

pytestmark = pytest.mark.django_db

SECRET = "s3cret"
FIRST = 6_000_000_000
STATES = ("activated", "sent", "starting", "running", "holding", "transferring", "finished", "failed", "closed")
SAYS = ("starting", "running", "finished", "failed", "holding", "transferring")
PROOFS = (
    Proof(1, SECRET),
    Proof(1, SECRET, "SITE_A"),
    Proof(1, SECRET, attempt=1),
    Proof(1, SECRET, attempt=2),
    Proof(1, "guessed"),
    Proof(1, "guessed", attempt=2),
    Proof(2, SECRET),
    Proof(1, SECRET, "SITE_B"),
    Proof(site="SITE_A", attempt=1),
    Proof(site="SITE_A", attempt=2),
    Proof(site="SITE_B", attempt=2),
    Proof(site="SITE_A"),
)
TOLD: tuple[dict[str, Any], ...] = (
    {},
    {
        "measures": {"cpu_time_s": 7, "max_rss_kb": 2**40, "cores": 8, "node": 'wn"1\\,{}', "sub_status": "own"},
        "start_time": datetime(2026, 1, 2, tzinfo=UTC),
    },
    {
        "errors": {"pilot_error_code": -1305, "pilot_error_diag": "NULL", "trans_exit_code": "65"},
        "outputs": {"a.b": {"guid": "g", "fsize": 1}},
        "metadata": {"said": ["x", None, "\\"]},
        "end_time": datetime(2026, 1, 3, tzinfo=UTC),
        "by": "harvester",
    },
)
COLUMNS = [
    field.attname
    for field in Job._meta.concrete_fields
    if field.attname not in ("id", "creation_time", "modification_time", "state_change_time", "heartbeat_at")
]
CASES = [
    (state, said, proof, told, secret)
    for s, state in enumerate(STATES)
    for n, said in enumerate(SAYS)
    for p, proof in enumerate(PROOFS)
    for told in [TOLD[(s + n + p) % len(TOLD)]]
    for secret in (SECRET, "")
]


def add(number: int, state: str, secret: str = SECRET) -> Job:
    digest = hashlib.sha256(secret.encode()).digest() if secret else None
    return Job(
        id=FIRST + number,
        site="SITE_A",
        task_id=20_000_000,
        status=state,
        fence=1,
        secret_hash=digest,
        attempt=1,
        cpu_time_s=1,
        command_to_pilot="tobekilled" if number % 5 == 0 else None,
    )


def told_alone(report: Report) -> str:
    try:
        return update_job(report)
    except (NotYoursError, UnknownJobError) as exc:
        return type(exc).__name__


def shown(answer: Any) -> str:
    return answer if isinstance(answer, str) else type(answer).__name__


def left_behind(jobs: list[Job]) -> list[Any]:
    """What stands of each job, without its number and the moments at which it was written."""
    ids = [job.id for job in jobs]
    found: dict[int, list[Any]] = {}
    for row in Job.objects.filter(pk__in=ids).values("id", *COLUMNS):
        for name in ("start_time", "end_time"):
            row[name] = row[name] and (row[name] if row[name].month == 1 else "now")
        row["secret_hash"] = bytes(row["secret_hash"] or b"")
        found[row.pop("id")] = [row]
    for model, key, *names in (
        (JobOutputReport, "id", "task_id", "attempt", "status", "data"),
        (JobMetadata, "id", "metadata"),
        (JobStatusLog, "job_id", "status", "site", "by"),
    ):
        rows = model._default_manager.filter(**{f"{key}__in": ids}).order_by("id").values_list(key, *names)
        for number, *values in rows:
            found[number].append((model.__name__, values))
    return [found[number] for number in ids]


def test_reports_in_one_call_do_what_each_of_them_does_alone(make_job: Callable[..., Job]) -> None:
    alone, together = (
        Job.objects.bulk_create(add(n + 10_000 * copy, case[0], case[-1]) for n, case in enumerate(CASES))
        for copy in range(2)
    )

    def reports(jobs: list[Job]) -> list[Report]:
        return [Report(job.id, said, proof, **told) for job, (_, said, proof, told, _) in zip(jobs, CASES, strict=True)]

    for again in range(2):  # the same once more: what was booked stays booked once
        expected = [told_alone(report) for report in reports(alone)]
        answers = [shown(answer) for answer in update_jobs(reports(together)[::-1])[::-1]]
        for case, *pair in zip(CASES, expected, answers, strict=True):
            assert pair[0] == pair[1], (again, case)
        for case, *pair in zip(CASES, left_behind(alone), left_behind(together), strict=True):
            assert pair[0] == pair[1], (again, case)


def test_no_job_ends_before_it_starts_whatever_a_pilot_s_clock_says() -> None:
    """A pilot that tells times in whole seconds, one whose clock is behind, and those that leave times out."""
    now = timezone.now()
    said = [
        (now, now.replace(microsecond=0)),
        (None, now - timedelta(minutes=5)),
        (None, None),
        (now, now + timedelta(minutes=5)),
        (now, None),
    ]
    jobs = Job.objects.bulk_create(add(n, "running") for n in range(2 * len(said)))
    reports = [
        Report(job.id, "failed", Proof(1, SECRET), start_time=start, end_time=end)
        for job, (start, end) in zip(jobs, said * 2, strict=True)
    ]
    for report in reports[: len(said)]:
        update_job(report)
    update_jobs(reports[len(said) :])
    took = [job.end_time - job.start_time for job in Job.objects.order_by("id") if job.end_time and job.start_time]
    assert took[0] == took[1] == took[5] == took[6] == timedelta(), took
    assert took[3] == took[8] == timedelta(minutes=5)
    assert len(took) == 10 and min(took) >= timedelta()


def test_several_reports_of_one_job_are_booked_in_their_order() -> None:
    (job,) = Job.objects.bulk_create([add(1, "sent")])
    said = ["starting", "running", "running", "finished", "failed"]
    assert update_jobs([Report(job.id, state, Proof(1, SECRET)) for state in said]) == ["NULL"] * 5
    assert list(JobStatusLog.objects.order_by("id").values_list("status", flat=True)) == [
        "starting",
        "running",
        "holding",
    ]
    assert JobOutputReport.objects.get().status == "finished"
    assert update_jobs([]) == []


def test_a_hundred_heartbeats_are_one_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = Job.objects.bulk_create(add(n, "running") for n in range(100))
    reports = [Report(job.id, "running", Proof(1, SECRET), {"cpu_time_s": job.id}) for job in jobs]
    seen: list[Any] = []
    execute = psycopg.Cursor.execute

    def counted(cursor: Any, query: Any, *more: Any, **named: Any) -> Any:
        seen.append(query)
        return execute(cursor, query, *more, **named)

    monkeypatch.setattr(psycopg.Cursor, "execute", counted)
    answers = update_jobs(reports)
    monkeypatch.undo()
    assert len(seen) == 1
    assert answers == ["tobekilled" if n % 5 == 0 else "NULL" for n in range(100)]
    assert all(job.cpu_time_s == job.id for job in Job.objects.all())


def test_over_http_one_bad_report_spoils_no_other(make_job: Callable[..., Job], api: Callable[..., Client]) -> None:
    jobs = [make_job(status="running", attempt=1) for _ in range(4)]
    good = {"job_status": "running", "attempt_nr": 1}
    said = [
        {**good, "job_id": jobs[0].id, "job_sub_status": "toreassign", "cpu_consumption_time": 3},
        {**good, "job_id": jobs[1].id, "job_status": "dancing"},
        {**good, "job_id": "x"},
        [],
        {**good, "job_id": 1},
        {**good, "job_id": jobs[2].id, "core_count": 10**9},
        {**good, "job_id": jobs[2].id, "attempt_nr": 2},
        {
            **good,
            "job_id": jobs[3].id,
            "job_sub_status": "cancelled",
            "job_status": "failed",
            "job_output_report": '{"a": {}}',
            "meta_data": "words",
        },
    ]
    client = api("pilot", site="SITE_A")

    def send(body: Any) -> Any:
        answer = client.post("/api/v1/pilot/update_jobs_bulk", json.dumps(body), content_type="application/json")
        assert answer.status_code == 200
        return answer.json()

    for job_list in (said, json.dumps(said)):
        data = send({"job_list": job_list, "harvester_id": "h"})["data"]
        assert [(one["success"], one["data"]["StatusCode"]) for one in data] == [
            (True, 0),
            (False, 50),
            (False, 50),
            (False, 50),
            (False, 70),
            (False, 50),
            (True, 0),
            (True, 0),
        ]
        assert data[0]["data"]["command"] == "NULL" and data[6]["data"]["command"] == "tobekilled"
        assert all(one["StatusCode"] == one["data"]["StatusCode"] for one in data)
        for n, word in ((1, "job_status"), (2, "job_id"), (3, "job_list[3]"), (4, "not yours"), (5, "core_count")):
            assert word in data[n]["message"], n
    rows = [list(Job.objects.filter(pk=job.id).values_list("status", "sub_status", "cpu_time_s")) for job in jobs]
    assert rows == [
        [("running", None, 3)],
        [("running", None, None)],
        [("running", None, None)],
        [("holding", "cancelled", None)],
    ]
    for bad in ({}, {"job_list": "{"}, {"job_list": {}}, {"job_list": [{}] * 1001}):
        refused = send(bad)
        assert not refused["success"] and "job_list" in refused["message"]
    assert send({"job_list": []})["data"] == []
