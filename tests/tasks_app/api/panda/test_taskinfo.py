"""What PanDA's clients ask about one task, and about those that changed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from tasks_app.models import File, JobArchive, TaskParams

pytestmark = pytest.mark.django_db
Api = Callable[..., Client]
Make = Callable[..., Any]


def get(client: Client, name: str, **query: Any) -> Any:
    answer = client.get(f"/api/v1/task/{name}", query)
    assert answer.status_code == 200
    said = answer.json()
    return said["data"] if said["success"] else said["message"]


def test_a_task_is_told_with_its_jobs_datasets_and_parameters(
    api: Api, make_task: Make, make_job: Make, make_dataset: Make
) -> None:
    parent = make_task(user="eve", status="done")
    task = make_task(status="running", parent_id=parent.id)
    TaskParams.objects.create(task=task, params={"taskName": task.name})
    data = make_dataset(task, name="eve:in", files=7, files_used=5, files_finished=3, files_failed=1)
    make_dataset(task, name="ada:out", type="output", container_name="ada:all/")
    make_dataset(task, name="ada:unmerged", type="trn_output")
    file = File.objects.create(task_id=task.id, dataset_id=data.id, lfn="f1", type="input", status="ready", scope="eve")
    old = JobArchive.objects.create(id=5, task_id=task.id, status="failed", site="SITE_A")
    moments = {"start_time": datetime(2026, 1, 1, tzinfo=UTC), "end_time": datetime(2026, 1, 1, 1, tzinfo=UTC)}
    job, merge = make_job(task_id=task.id, **moments), make_job(task_id=task.id, processing_type="pmerge")
    client = api()
    assert get(client, "get_status", task_id=task.id) == "running"
    assert get(client, "get_job_ids", task_id=task.id) == [old.id, job.id, merge.id]
    assert get(client, "get_task_parameters", task_id=task.id) == {"taskName": task.name}
    assert get(client, "get_detailed_info", task_id=task.id)["nFilesFinished"] == 3
    assert get(client, "get_parent_detailed_info", task_id=task.id)["jediTaskID"] == parent.id
    details = {
        "jediTaskID": task.id,
        "inDS": "eve:in",
        "outDS": "ada:all/",
        "statistics": "finished*3,failed*1,running*1,ready*2",
        "PandaID": [old.id, job.id],
        "mergePandaID": [merge.id],
        "mergeStatus": "running",
    }
    assert get(client, "get_details", task_id=task.id) == details
    full = get(client, "get_details", task_id=task.id, include_parameters="True", include_status="True")
    assert (full["status"], full["task_parameters"]) == ("running", {"taskName": task.name})
    jobs = get(client, "get_job_descriptions", task_id=task.id, unsuccessful_only="False")
    assert [(j["PandaID"], j["jobDuration"]) for j in jobs] == [(old.id, None), (job.id, 3600), (merge.id, None)]
    bad = get(client, "get_job_descriptions", task_id=task.id, unsuccessful_only="True")
    assert [j["PandaID"] for j in bad] == [old.id]
    listed = [
        {
            "dataset": {"name": "eve:in", "id": data.id},
            "files": [{"lfn": "f1", "scope": "eve", "id": file.id, "status": "ready"}],
        }
    ]
    assert get(client, "get_datasets_and_files", task_id=task.id) == listed
    assert get(client, "get_datasets_and_files", task_id=task.id, dataset_types=["input", "lib"]) == listed
    assert "no datasets of the types lib" in get(client, "get_datasets_and_files", task_id=task.id, dataset_types="lib")


@pytest.mark.parametrize(
    "name",
    [
        "get_status",
        "get_job_ids",
        "get_task_parameters",
        "get_detailed_info",
        "get_parent_detailed_info",
        "get_details",
        "get_job_descriptions",
        "get_datasets_and_files",
    ],
)
def test_what_is_not_there_or_no_number_is_refused_with_a_sentence(api: Api, name: str) -> None:
    client = api()
    assert get(client, name, task_id=7) == "there is no task 7"
    for wrong in ({"task_id": "x"}, {"task_id": "None"}, {}, {"task_id": 2**64}):
        assert "task_id" in get(client, name, **wrong)


def test_tasks_that_changed_are_listed_from_the_oldest(api: Api, make_task: Make) -> None:
    old, new, other, eves = (
        make_task(modification_time=datetime(year, 1, 1, tzinfo=UTC), user=user, prod_source_label=label)
        for year, user, label in (
            (2020, "ada", "user"),
            (2026, "ada", "user"),
            (2026, "ada", "test"),
            (2026, "eve", "user"),
        )
    )
    client = api()

    def ids(**query: Any) -> list[int]:
        return [
            t["jediTaskID"]
            for t in get(client, "get_tasks_modified_since", **{"since": "2025-01-01 00:00:00", **query})
        ]

    assert ids(dn="None", full="True", min_task_id="None") == [new.id, other.id]
    assert ids(since="2019-01-01") == [old.id, new.id, other.id]
    assert (
        ids(dn="eve") == [eves.id]
        and ids(min_task_id=new.id) == [other.id]
        and ids(prod_source_label="user") == [new.id]
    )
    assert "since" in get(client, "get_tasks_modified_since")
