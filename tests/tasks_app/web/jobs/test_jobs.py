"""The list of jobs with its plots and its archive, what a job's page tells of others, and jobs side by side."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from brokerage_app.models import VerdictRecord
from tasks_app.explaining import why_job as jobs_explained
from tasks_app.failures import booking
from tasks_app.models import Job, JobArchive, JobRetryHistory, Task
from tasks_app.web.jobs import job_facts
from tests.ended_jobs import note_failed
from tests.tasks_app.web.lists.test_listing import Table, of_csv

MOST_QUERIES = 12
NODE = "wn007.example"


@pytest.fixture
def chain(make_task: Callable[..., Task], make_job: Callable[..., Job]) -> list[Job]:
    """Three jobs on the same files: one in the archive, one that failed like another job on its node, one that runs."""
    task, now = make_task(), timezone.now()
    VerdictRecord.objects.create(
        task_id=task.id,
        chosen=[["SITE_B", 9.0, {}], ["SITE_A", 2.5, {"queued": 0.5}]],
        skipped=[],
        sentence="2 of 9 sites.",
        first_at=now - timedelta(days=2),
        at=now,
    )
    failed = {
        "status": "failed",
        "site": "SITE_A",
        "worker_node": NODE,
        "pilot_error_code": 1110,
        "pilot_error_diag": "cvmfs is not mounted",
        "start_time": now - timedelta(hours=2),
        "end_time": now - timedelta(hours=1),
        "cpu_time_s": 900,
        "core_count": 1,
        "state_change_time": now - timedelta(hours=1),
        "max_attempt": 3,
    }
    first = make_job(task_id=task.id, attempt=1, status="finished")
    second = make_job(task_id=task.id, attempt=2, **failed)
    third = make_job(task_id=task.id, attempt=3, status="running", site="SITE_B", start_time=now - timedelta(minutes=5))
    make_job(task_id=make_task().id, attempt=1, **failed)
    JobArchive.objects.create(**Job.objects.filter(pk=first.id).values().get())
    Job.objects.filter(pk=first.id).delete()
    for old, new in ((first, second), (second, third)):
        JobRetryHistory.objects.create(
            task_id=task.id, old_job_id=old.id, new_job_id=new.id, origin_job_id=first.id, relation_type="retry"
        )
    note_failed(now - timedelta(days=1))
    while booking.book_ends(100):
        pass
    return [first, second, third]


def test_the_list_shows_what_the_export_holds(
    reader: Client, chain: list[Job], django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(MOST_QUERIES):
        page = reader.get(f"/jobs/?task={chain[0].task_id}&plots=on")
    text = page.content.decode()
    exported = of_csv(reader, next(url for form, url in page.context["export_forms"] if form == "CSV"))
    titles = {column.name: number for number, column in enumerate(head.column for head in page.context["heads"])}
    steady = [number for name, number in titles.items() if name not in ("walltime_s", "efficiency_percent", "queued_s")]
    assert len(exported) == 3  # with the heads
    assert [[row[n] for n in steady] for row in Table(text).rows] == [[row[n] for n in steady] for row in exported[1:]]
    assert "pilot:1110" in text and NODE in text and "25 %" in text
    # Plots count the same jobs; every number of queues and states leads to its list.
    plots = page.context["plots"]
    assert plots.jobs == 2 and not plots.is_capped
    assert sum(number for _, number in plots.efficiencies.rows) == 1
    assert f"?task={chain[0].task_id}&amp;plots=on&amp;site=SITE_A&amp;status=failed" in text
    assert "Show as table" in text

    archive = reader.get("/jobs/?archived=true").content.decode()
    assert f"/jobs/{chain[0].id}/" in archive and f"/jobs/{chain[1].id}/" not in archive
    assert "archived=true" in next(url for _, url in reader.get("/jobs/?archived=true").context["export_forms"])
    assert "No job matches" in reader.get("/jobs/?site=NOWHERE&plots=on").content.decode()


def test_a_failed_job_tells_how_common_that_is(
    reader: Client, chain: list[Job], django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(MOST_QUERIES):
        page = reader.get(f"/jobs/{chain[1].id}/")
    text = page.content.decode()
    common = page.context["common"]
    assert (common.jobs, common.here, common.on_node, common.tasks) == (2, 2, 2, 2)
    assert "All of them were on this worker node." in text
    assert [(one.job_id, one.depth) for one in page.context["attempts"]] == [(job.id, n) for n, job in enumerate(chain)]
    assert page.context["attempts"][0].status == "finished"  # from the archive
    assert "rank 2 of 2 chosen queues" in text and "queued = <strong>0.5" in text
    assert reader.get(f"/jobs/{chain[0].id}/").status_code == 200
    assert reader.get(f"/jobs/{chain[2].id}/").context["common"] is None


def test_jobs_stand_side_by_side(reader: Client, chain: list[Job]) -> None:
    ids = ",".join(str(job.id) for job in chain)
    page = reader.get(f"/jobs/compare/?ids={ids}")
    different = {line.column.name: line.values for line in page.context["different"]}
    assert different["attempt"] == ["1", "2", "3"] and different["error"][0] == "–"
    assert "task_id" in {line.column.name for line in page.context["equal"]}
    wrong = reader.get(f"/jobs/compare/?ids=x,{chain[1].id},99999999999")
    assert "there is no job 99999999999" in wrong.content.decode() and "enter job numbers" in wrong.content.decode()
    assert "Compare two or more jobs" in reader.get("/jobs/compare/").content.decode()


@pytest.mark.django_db
def test_the_page_and_why_of_a_job_name_the_decision_that_held_when_it_was_made(
    make_task: Callable[..., Task], make_job: Callable[..., Job]
) -> None:
    """Not the one before, and none that came later, were it a second."""
    task, now = make_task(), timezone.now()
    job = make_job(task_id=task.id, status="activated", site="SITE_A")
    Job.objects.filter(pk=job.id).update(creation_time=now)
    job.refresh_from_db()
    before, held, _ = (
        VerdictRecord.objects.create(
            task_id=task.id,
            chosen=[[site, 2.5, {"queued": 0.5}] for site in sites],
            skipped=[],
            sentence="Some sites.",
            first_at=now + timedelta(seconds=seconds),
            at=now + timedelta(seconds=seconds),
        )
        for seconds, sites in ((-60, ["SITE_A"]), (0, ["SITE_B", "SITE_A"]), (1, ["SITE_A"]))
    )
    there, decision = job_facts.sent_here(job), jobs_explained.why(job, now)["decision"]
    assert there is not None and there.verdict == held and there.choice.again_at is None
    assert (decision["id"], decision["at"], decision["place"], decision["of"]) == (held.id, now, 2, 2)

    later = now + timedelta(minutes=5)
    VerdictRecord.objects.filter(pk=held.id).update(at=later)
    there = job_facts.sent_here(job)
    assert there is not None and (there.choice.at, there.choice.again_at) == (now, later)

    # A merge job goes to its files, wherever the other jobs of its task were sent.
    job.processing_type = "pmerge"
    assert job_facts.sent_here(job) is None and jobs_explained.why(job, now)["decision"] is None
    job.processing_type = None

    # One that held and chose other sites did not send it there, and an older one no longer held.
    VerdictRecord.objects.filter(pk=held.id).update(chosen=[["SITE_B", 2.5, {}]])
    assert job_facts.sent_here(job) is None and jobs_explained.why(job, now)["decision"] is None
    held.delete()
    there = job_facts.sent_here(job)
    assert there is not None and there.verdict == before
