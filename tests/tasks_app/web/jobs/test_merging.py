"""Pages of tasks and jobs whose outputs are merged."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from tasks_app.models import Dataset, Job, JobRetryHistory, Task


@pytest.fixture
def pair(make_task: Callable[..., Task], make_job: Callable[..., Job]) -> tuple[Job, Job]:
    """A job that waits for its merge, and the merge job."""
    task = make_task()
    waits = make_job(task_id=task.id, status="merging")
    merge = make_job(task_id=task.id, status="running", processing_type="pmerge")
    JobRetryHistory.objects.create(
        task_id=task.id, old_job_id=waits.id, new_job_id=merge.id, origin_job_id=waits.id, relation_type="merge"
    )
    return waits, merge


def text(client: Client, path: str) -> str:
    return client.get(path).content.decode()


@pytest.mark.parametrize(
    ("status", "of_merge", "sentence"),
    [
        ("merging", "running", "Its output waits to be merged by"),
        ("merging", "failed", "Its output waits to be merged again, after"),
        ("finished", "finished", "Its output was merged by"),
    ],
)
def test_a_job_says_by_whom_its_output_is_merged(
    reader: Client, pair: tuple[Job, Job], status: str, of_merge: str, sentence: str
) -> None:
    waits, merge = pair
    Job.objects.filter(pk=waits.id).update(status=status)
    Job.objects.filter(pk=merge.id).update(status=of_merge)
    page = text(reader, f"/jobs/{waits.id}/")
    assert sentence in page and f"/jobs/{merge.id}/" in page
    assert "Jobs on the same files" not in page, "a merge job is no attempt of another"


def test_a_job_whose_merge_job_is_not_made_yet_says_what_it_waits_for(
    reader: Client, make_task: Callable[..., Task], make_job: Callable[..., Job]
) -> None:
    job = make_job(task_id=make_task().id, status="merging")
    assert "until a merge job is full" in text(reader, f"/jobs/{job.id}/")


def test_a_merge_job_names_the_jobs_whose_output_it_merges(reader: Client, pair: tuple[Job, Job]) -> None:
    waits, merge = pair
    page = text(reader, f"/jobs/{merge.id}/")
    assert "The job merges the outputs of other jobs" in page and f"/jobs/{waits.id}/" in page


def test_unmerged_datasets_are_shown_to_those_who_ask(reader: Client, make_task: Callable[..., Task]) -> None:
    task = make_task()
    for type_, name in (("output", "lab.out"), ("trn_output", "panda.um.lab.out")):
        Dataset.objects.create(task=task, name=name, type=type_, status="ready")
    page = text(reader, f"/tasks/{task.id}/")
    assert "panda.um" not in page and "Show 1 dataset of unmerged files" in page
    assert "panda" in text(reader, f"/tasks/{task.id}/?unmerged=1").split("h-data")[-1]
    listed = f"/api/v2/tasks/{task.id}/datasets/"
    assert [d["name"] for d in reader.get(listed).json()["results"]] == ["lab.out"]
    assert len(reader.get(f"{listed}?unmerged=true").json()["results"]) == 2
