"""Tabs of a task, and two tasks side by side."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from brokerage_app.models import DatasetReplica, Queue, QueueEndpoint, StorageEndpoint
from jedisite import audit
from tasks_app.ddm.local_files import file_url
from tasks_app.drawing import flows
from tasks_app.drawing.stacks import of_tones
from tasks_app.lists import job_columns as columns
from tasks_app.models import Dataset, File, Job, JobFile, JobRetryHistory, RetryNote, ScoutReport, Task, TaskParams
from tasks_app.usage import site_use
from tasks_app.web.frame.comparing import differences, flat
from tasks_app.web.tasks import task_facts
from tests.tasks_app.web.lists.test_listing import Table

START = datetime(2026, 3, 4, 12, tzinfo=UTC)
TABS = ("jobs", "inputs", "outputs", "sites", "scouts", "flow", "profile", "params", "audit")


@pytest.fixture
def moved(busy_task: Task, make_job: Callable[..., Job]) -> Task:
    """A task with finished jobs whose input lay near, one whose input lay far, and files in every state."""
    near = StorageEndpoint.objects.create(name="NEAR_DISK", site_name="NEAR")
    StorageEndpoint.objects.create(name="FAR_DISK", site_name="FAR")
    for name in ("NEAR", "AWAY"):
        Queue.objects.create(name=name, site_name=name, storage=near if name == "NEAR" else None)
    QueueEndpoint.objects.create(queue_id="NEAR", endpoint_id="NEAR_DISK", order_read=1)
    for endpoint in ("FAR_DISK", "NEAR_DISK"):
        DatasetReplica.objects.create(dataset="data.set.0", endpoint=endpoint, files=100, bytes=1, complete=True)
    for site in ("NEAR", "NEAR", "AWAY"):
        job = make_job(task_id=busy_task.id, status="finished", site=site, core_count=2)
        hours = timedelta(hours=2)
        Job.objects.filter(pk=job.id).update(
            creation_time=START, start_time=START + hours, end_time=START + 2 * hours, cpu_time_s=7200
        )
        JobFile.objects.create(job_id=job.id, lfn="a", type="input", dataset="data.set.0", size=5_000_000)
        JobFile.objects.create(job_id=job.id, lfn="b", type="output", size=2_000_000, destination_se="")
    return busy_task


def test_every_tab_reads_with_few_queries_full_and_empty(
    reader: Client, moved: Task, make_task: Callable[..., Task], django_assert_max_num_queries: Any
) -> None:
    empty = make_task()
    for task in (moved, empty):
        for tab in TABS:
            with django_assert_max_num_queries(12):
                text = reader.get(f"/tasks/{task.id}/{tab}/").content.decode()
            assert f'/tasks/{task.id}/{tab}/" aria-current="page"' in text, tab
            assert " style=" not in text
            assert reader.get(f"/tasks/1/{tab}/").status_code == 404


def test_data_flow_from_storage_to_sites_to_storage(moved: Task, reader: Client) -> None:
    found = {(link.source, link.target): (link.files, link.size) for link in flows.links(task_facts.flows(moved.id))}
    assert found == {
        ("NEAR_DISK (read)", "NEAR"): (2, 10_000_000),
        ("FAR_DISK (read)", "AWAY"): (1, 5_000_000),
        ("NEAR", "NEAR_DISK (written)"): (2, 4_000_000),
        ("AWAY", "unknown place (written)"): (1, 2_000_000),
    }
    drawn = flows.sankey(flows.links(task_facts.flows(moved.id)))
    assert {node["name"] for node in drawn["nodes"]} == {name for pair in found for name in pair}
    assert drawn["links"][0] == {"source": "NEAR_DISK (read)", "target": "NEAR", "value": 10.0}


def test_inputs_are_drawn_where_jobs_read_them_copies_and_merged_outputs_too(
    moved: Task, make_job: Callable[..., Job], tmp_path: Path
) -> None:
    for name in ("NEAR_DISK", "FAR_DISK"):
        StorageEndpoint.objects.filter(name=name).update(path=str(tmp_path / name))
    JobFile.objects.filter(type="input", lfn="a").update(surl=file_url(tmp_path / "NEAR_DISK" / "x" / "a"))
    merge = make_job(task_id=moved.id, status="finished", site="NEAR", processing_type="pmerge")
    JobFile.objects.create(job_id=merge.id, lfn="b", type="input", dataset="unmerged", size=1_000_000)
    found = {(link.source, link.target): (link.files, link.size) for link in flows.links(task_facts.flows(moved.id))}
    assert {pair: size for pair, size in found.items() if pair[0].endswith("(read)")} == {
        ("NEAR_DISK (read)", "AWAY"): (1, 5_000_000),
        ("NEAR_DISK (read)", "NEAR"): (3, 11_000_000),
    }


def test_sites_have_medians_and_the_broker_s_last_word(moved: Task) -> None:
    from tasks_app.web.tasks import page_queries

    rows = {row.site: row for row in task_facts.sites(moved.id, page_queries.latest_verdicts([moved.id])[moved.id])}
    near = rows["NEAR"]
    assert (near.jobs, near.finished, near.success, near.walltime_s, near.queued_s) == (2, 2, 100, 7200, 7200)
    assert near.efficiency == pytest.approx(50)
    assert rows["SITE_A"].is_chosen is True and rows["SITE_A"].failed == 4
    assert "SITE_D" not in rows  # skipped, and nothing runs there


@pytest.mark.parametrize(
    ("cpu", "walltime", "cores", "percent"),
    [
        (0, 0.9, 1, None),
        (1, 1.2, 1, None),
        (0, 90, 1, None),
        (0, 200, 1, 0),
        (0, 25, 4, 0),
        (5, 10, 1, 50),
        (8, 2, 8, 50),
        (None, 100, 1, None),
    ],
)
def test_jobs_that_are_too_short_for_whole_seconds_of_cpu_say_nothing_of_efficiency(
    make_task: Callable[..., Task],
    make_job: Callable[..., Job],
    cpu: int | None,
    walltime: float,
    cores: int,
    percent: float | None,
) -> None:
    task, now = make_task(), timezone.now()
    job = make_job(
        task_id=task.id,
        status="finished",
        site="SITE_A",
        start_time=now,
        end_time=now + timedelta(seconds=walltime),
        cpu_time_s=cpu,
        core_count=cores,
        creation_time=now,
    )
    job.refresh_from_db()
    assert columns.efficiency_percent(job.__dict__, now) == percent
    assert task_facts.sites(task.id, None)[0].efficiency == percent
    assert site_use.speeds(10)["SITE_A"] == (0, percent)


def test_a_profile_adds_up_at_every_time(moved: Task) -> None:
    Job.objects.filter(task_id=moved.id).exclude(status="finished").delete()
    Job.objects.filter(task_id=moved.id, start_time=None).delete()
    found = task_facts.profile(moved.id, START + timedelta(hours=9))
    assert found is not None and found.made[0] == 3
    for at in range(task_facts.STEPS):
        assert sum(row[at] for row in found.layers.values()) == found.made[at]
    half = task_facts.STEPS * 3 // 4
    assert (found.layers["waiting"][0], found.layers["running"][half], found.layers["finished"][-1]) == (3, 3, 3)
    drawn = of_tones(found.ends, found.layers, {})
    assert [layer.name for layer in drawn.layers] == ["finished", "running", "waiting"]


def test_files_say_what_failed_last_and_where_the_datasets_lie(
    reader: Client, busy_task: Task, make_job: Callable[..., Job]
) -> None:
    dataset = Dataset.objects.filter(task=busy_task, type="input").first()
    assert dataset is not None
    DatasetReplica.objects.create(dataset=dataset.name, endpoint="SOME_DISK", files=100, bytes=1, complete=False)
    lost, done = (
        File.objects.create(
            task_id=busy_task.id,
            dataset_id=dataset.id,
            lfn=f"file.{status}",
            type="input",
            status=status,
            failed_attempt=n,
        )
        for status, n in (("failed", 2), ("finished", 0))
    )
    jobs = [make_job(task_id=busy_task.id, status="failed", pilot_error_code=code) for code in (1099, 1213)]
    for job in jobs:
        JobFile.objects.create(job_id=job.id, file_id=lost.id, lfn=lost.lfn, type="input")
    page = reader.get(f"/tasks/{busy_task.id}/inputs/?unfinished=true")
    text = page.content.decode()
    assert "SOME_DISK" in text and "pilot:1213" in text and f"/jobs/{jobs[1].id}/" in text and done.lfn not in text
    answer: Any = reader.get(dict(page.context["export_forms"])["CSV"])
    assert list(csv.reader(io.StringIO(b"".join(answer.streaming_content).decode())))[1:] == Table(text).rows


def test_who_did_what_to_a_task_stands_on_its_audit_tab(reader: Client, busy_task: Task) -> None:
    audit.record("grace", "pause", "task", busy_task.id, reason="<b>wrong</b> input")
    text = reader.get(f"/tasks/{busy_task.id}/audit/").content.decode()
    assert "grace" in text and "&lt;b&gt;wrong&lt;/b&gt; input" in text and "job_generator" in text


def test_two_tasks_are_compared(reader: Client, busy_task: Task, make_task: Callable[..., Task]) -> None:
    other = make_task(user="bob")
    text = reader.get(f"/tasks/compare/?ids={busy_task.id},{other.id}").content.decode()
    assert "bob" in text and "nFilesPerJob" in text
    assert "there is no task 1." in reader.get("/tasks/compare/?ids=1,x").content.decode()
    assert "Enter two task numbers" in reader.get("/tasks/compare/").content.decode()


def test_differences_are_those_of_flat_values() -> None:
    one, two = flat({"a": {"b": [1, 2]}, "c": None}), flat({"a": {"b": [1, 3]}, "d": {}})
    found = differences(one, two)
    assert [(d.name, d.first, d.second) for d in found.differ] == [
        ("a.b.1", "2", "3"),
        ("c", "–", "–"),
        ("d", "–", "{}"),
    ]
    assert found.equal == ["a.b.0"]


def test_all_jobs_that_match_on_the_tab_of_a_task_are_jobs_of_that_task(
    reader: Client, busy_task: Task, make_job: Callable[..., Job]
) -> None:
    other = make_job(status="running")
    first, second, *_ = Job.objects.filter(task_id=busy_task.id).order_by("id")
    JobRetryHistory.objects.create(
        task_id=busy_task.id, old_job_id=first.id, new_job_id=second.id, relation_type="retry"
    )
    page = reader.get(f"/tasks/{busy_task.id}/jobs/?dropped=false&columns=id,follows,followed_by")
    assert page.context["matching"] == f"dropped=false&task={busy_task.id}"
    rows = {row[0]: row[1:] for row in Table(page.content.decode()).rows}
    assert len(rows) == 29 and rows[str(second.id)] == [str(first.id), ""]
    assert str(first.id) not in rows and str(other.id) not in rows
    assert f"task={busy_task.id}" in dict(page.context["export_forms"])["CSV"]


def test_facets_and_filters_of_files_name_datasets(
    reader: Client, busy_task: Task, django_assert_max_num_queries: Any
) -> None:
    dataset = Dataset.objects.filter(task_id=busy_task.id, type="input").earliest("id")
    File.objects.create(task_id=busy_task.id, dataset_id=dataset.id, lfn="a", type="input", status="ready")
    with django_assert_max_num_queries(12):
        page = reader.get(f"/tasks/{busy_task.id}/inputs/")
    (facet,) = (facet for facet in page.context["facets"] if facet["name"] == "dataset")
    assert dataset.name in [name for name, *_ in facet["values"]]
    page = reader.get(f"/tasks/{busy_task.id}/inputs/?dataset={dataset.id}")
    assert [(chip.title, chip.value) for chip in page.context["chips"]] == [("Dataset", dataset.name)]
    assert reader.get(f"/tasks/{busy_task.id}/inputs/?dataset={10**19},x").status_code == 200


def test_a_look_that_measured_no_job_is_not_called_a_measurement(
    reader: Client, make_task: Callable[..., Task]
) -> None:
    task, now = make_task(), timezone.now()

    def look(sample: int, minutes_ago: int) -> None:
        report = ScoutReport.objects.create(
            task_id=task.id,
            scouts=False,
            outcome="measured",
            sample=sample,
            finished_jobs=3,
            detail="",
            presets={},
            measured={"ram_count": 1650} if sample else {},
        )
        ScoutReport.objects.filter(pk=report.pk).update(at=now - timedelta(minutes=minutes_ago))

    def said() -> list[str]:
        return [reader.get(f"/tasks/{task.id}/{tab}").content.decode() for tab in ("", "scouts/")]

    look(0, 30)
    assert all("No finished job could be measured yet." in text and "from 0" not in text for text in said())
    look(2, 20)
    look(0, 10)
    assert all("Measured from 2 of the 3 jobs that had finished" in text and "20 min ago" in text for text in said())


def test_what_jobs_used_is_told_from_what_is_asked_for_because_of_it(
    reader: Client, make_task: Callable[..., Task]
) -> None:
    task = make_task()
    ScoutReport.objects.create(
        task_id=task.id,
        scouts=False,
        outcome="measured",
        sample=8,
        finished_jobs=8,
        detail="",
        presets={"ram_count": 1000},
        measured={"ram_count": 1000, "ram_used": 20},
    )
    for tab in ("", "scouts/"):
        text = " ".join(re.sub("<[^>]*>", " ", reader.get(f"/tasks/{task.id}/{tab}").content.decode()).split())
        assert "20 MB now requested: 1 000 MB" in text, text
    for given, declared in (({}, "– (1 000 MB by default)"), ({"ramCount": 1000}, "1 000 MB")):
        TaskParams.objects.update_or_create(task=task, defaults={"params": given})
        (row,) = reader.get(f"/tasks/{task.id}/").context["scouting"].rows
        assert row.declared.replace("\xa0", " ").replace("\u202f", " ") == declared


def test_the_page_of_a_task_tells_its_goal_its_attempt_and_what_retry_rules_did(
    reader: Client, busy_task: Task
) -> None:
    text = reader.get(f"/tasks/{busy_task.id}/").content.decode()
    assert "<dt>Goal</dt>" not in text and "Retry rules" not in text
    Task.objects.filter(pk=busy_task.id).update(goal=600, attempt=2, start_time=timezone.now())
    for job, applied in ((1, True), (2, True), (3, False)):
        RetryNote.objects.create(
            task_id=busy_task.id, job_id=job, code="retry_limited", detail=f"told of {job}", applied=applied
        )
    text = reader.get(f"/tasks/{busy_task.id}/").content.decode()
    assert "<dt>Goal</dt><dd>60 % of the input; " in text and '<span class="muted">attempt 2</span>' in text
    assert "after 2 failed jobs<br>told of 2" in text and "told of 3" not in text
