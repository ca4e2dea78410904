"""Tasks get a work queue and a global share when they are refined, and their jobs with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from brokerage_app.models import GlobalShare, Queue, WorkQueue
from tasks_app.agents import refiner
from tasks_app.models import Job, Task
from tasks_app.params.schema import ParamErrors
from tasks_app.submission import parameter_changes
from tests.flow.driving import SITE, add_dataset, parameters, reads, settle, submit
from tests.flow.pilot import Pilot

Api = Callable[..., Client]


def refined(**more: Any) -> Task:
    made = submit(parameters(f"lab.t{Task.objects.count()}", reads("lab.in"), **more))
    refiner.run()
    return Task.objects.select_related("work_queue").get(pk=made)


def add_shares() -> None:
    GlobalShare.objects.create(name="Analysis", value=90)
    GlobalShare.objects.create(
        name="Group", value=10, parent_id="Analysis", working_group="GP_", prod_source_label="user", queue_id=1
    )
    GlobalShare.objects.create(name="User", value=90, parent_id="Analysis", prod_source_label="user", queue_id=2)
    GlobalShare.objects.create(name="Cloud", value=10, prod_source_label="managed", rtype="cloud")


@pytest.fixture
def grid(books: None) -> None:
    add_dataset("lab.in", 4)


def test_without_queues_and_shares_a_task_has_neither_and_keeps_a_share_that_it_names(grid: None) -> None:
    assert (refined().work_queue, refined().gshare) == (None, None)
    assert (refined(gshare="Express", workQueueName="x").gshare, Task.objects.filter(status="tobroken").count()) == (
        "Express",
        0,
    )


def test_a_task_and_its_jobs_get_the_queue_and_share_that_take_them(grid: None) -> None:
    add_shares()
    WorkQueue.objects.create(
        name="group", type="user", vo="lab", order=1, criteria="workingGroup LIKE :g", variables="g:GP_%"
    )
    WorkQueue.objects.create(name="of others", type="user", vo="other", order=0)
    WorkQueue.objects.create(name="closed", type="user", vo="lab", order=-1, status="inactive")
    WorkQueue.objects.create(name="P", type="user", vo="lab", order=2, partition_id=-1)
    rest = WorkQueue.objects.create(
        name="rest", type="user", vo="lab", partition_id=WorkQueue.objects.get(name="P").id, order=9
    )
    task = refined()
    assert (task.work_queue, task.gshare) == (rest, "User")
    grouped = refined(workingGroup="GP_Top")
    assert (str(grouped.work_queue), grouped.gshare) == ("group", "Group")
    named = refined(workQueueName="group", gshare="Cloud")
    assert (str(named.work_queue), named.gshare) == ("group", "Cloud")
    settle()
    found = Job.objects.filter(task_id=task.id).values_list("work_queue_id", "gshare").distinct()
    assert list(found) == [(rest.id, "User")]


def test_the_campaign_of_a_task_decides_on_its_queue_and_share(grid: None, api: Api) -> None:
    GlobalShare.objects.create(name="MC23", value=50, campaign="mc23", queue_id=1)
    GlobalShare.objects.create(name="Rest", value=50, queue_id=2)
    WorkQueue.objects.create(name="mc23", type="user", vo="lab", order=1, criteria="campaign = :c", variables="c:mc23a")
    WorkQueue.objects.create(name="rest", type="user", vo="lab", order=2)
    found = [refined(campaign=campaign) for campaign in ("mc23a", "mc20")]
    assert [(str(task.work_queue), task.gshare) for task in found] == [("mc23", "MC23"), ("rest", "Rest")]
    again = [api().get(f"/api/v2/tasks/{task.id}/queue/").json() for task in found]
    assert [(one["queue_now"], one["share_now"]) for one in again] == [("mc23", "MC23"), ("rest", "Rest")]


@pytest.mark.parametrize(
    ("params", "says"),
    [
        (
            {"gshare": "Analysis"},
            "gshare: 'Analysis' has shares below it; the shares for tasks are Group, User, Cloud.",
        ),
        ({"gshare": "nothing"}, "gshare: 'nothing' is not a global share"),
        ({"prodSourceLabel": "test"}, "task definition does not match any global share"),
    ],
)
def test_a_task_without_a_share_is_broken_and_says_so(grid: None, params: dict[str, Any], says: str) -> None:
    add_shares()
    task = refined(**params)
    assert task.status == "tobroken" and says in (task.error_dialog or "")


def test_a_task_that_no_share_takes_is_refused_at_the_door(grid: None, api: Callable[..., Client]) -> None:
    """By the refiner's own function: what one share takes is accepted."""
    get_user_model().objects.create_user("ada")
    GlobalShare.objects.create(name="Evgen", value=100, processing_type="evgen")
    caller = api("production")
    answer = caller.post("/api/v2/tasks/", parameters("lab.t", reads("lab.in")), "application/json")
    assert answer.status_code == 422, answer.content
    errors = answer.json()["errors"]
    assert len(errors) == 1, errors
    fault = errors[0]
    assert "ask definition does not match any global share: vo=lab, prodSourceLabel=user" in fault["message"]
    assert "processingType=test" in fault["message"] and "the shares are Evgen." in fault["message"]
    assert not Task.objects.exists()
    GlobalShare.objects.create(name="Rest", value=1)
    answer = caller.post("/api/v2/tasks/", parameters("lab.t", reads("lab.in")), "application/json")
    assert answer.status_code == 201, answer.content


@pytest.mark.parametrize(
    ("queue", "says"),
    [
        (
            {"type": "user", "vo": "lab", "criteria": "processingType = :p", "variables": "p:evgen"},
            "no work queue accepts the task: vo=lab, label=user, processingType=test, workingGroup=null, coreCount=1",
        ),
        ({"type": "user", "vo": "lab", "criteria": "broken"}, "criteria that cannot be read: q"),
        ({"type": "user", "vo": "cms"}, "queues for vo=lab are undefined"),
        ({"type": "managed", "vo": "lab"}, "queues for type=user are undefined in vo=lab"),
    ],
)
def test_a_task_that_no_work_queue_takes_is_broken_and_says_so(grid: None, queue: dict[str, Any], says: str) -> None:
    WorkQueue.objects.create(name="q", **queue)
    task = refined()
    assert task.status == "tobroken" and says in (task.error_dialog or "")


def test_a_task_bound_to_a_site_belongs_where_its_resource_type_does(grid: None) -> None:
    add_shares()
    Queue.objects.filter(pk=SITE).update(data={"resource_type": "cloud"})
    Queue.objects.create(name="OTHER", site_name="OTHER", data={"resource_type": "GRID"})
    production = {"prodSourceLabel": "managed", "taskType": "prod"}
    assert refined(site=f"{SITE},OTHER", **production).gshare == "Cloud"
    assert refined(site="OTHER", **production).status == "tobroken"
    assert refined(site="UNKNOWN", **production).status == "tobroken"


def test_jobs_that_wait_follow_their_task_to_another_share(grid: None) -> None:
    add_shares()
    task = refined(nFilesPerJob=1)
    settle()
    pilot = Pilot()
    pilot.start(pilot.fetch(1)[0])
    said = parameter_changes.change_share(task.id, "Group", by="ada", reason="asked")
    assert said == "the share is Group, also of 3 queued jobs"
    assert set(Job.objects.filter(task_id=task.id, status="activated").values_list("gshare", flat=True)) == {"Group"}
    assert set(Job.objects.filter(task_id=task.id, status="running").values_list("gshare", flat=True)) == {"User"}
    with pytest.raises(ParamErrors, match="gshare: 'Analysis' has shares below it"):
        parameter_changes.change_share(task.id, "Analysis", by="ada", reason="asked")
    assert Task.objects.get(pk=task.id).gshare == "Group"


def test_every_queue_and_share_that_was_tried_is_told(grid: None, api: Api) -> None:
    add_shares()
    WorkQueue.objects.create(
        name="sim", type="user", vo="lab", order=1, criteria="processingType = :p", variables="p:sim"
    )
    WorkQueue.objects.create(name="rest", type="user", vo="lab", order=2)
    task = refined()
    parameter_changes.change_share(task.id, "Cloud", by="ada", reason="asked")
    found = api().get(f"/api/v2/tasks/{task.id}/queue/").json()
    assert (found["id"], found["queue"], found["share"], found["faults"]) == (task.id, "rest", "Cloud", [])
    assert (found["queue_now"], found["partition_now"], found["share_now"]) == ("rest", None, "User")
    assert found["queues_tried"] == [
        {
            "name": "sim",
            "partition": None,
            "matched": False,
            "why": "processingType = 'sim' is false: processingType is 'test'",
        },
        {"name": "rest", "partition": None, "matched": True, "why": "it accepts every task"},
    ]
    assert [(one["name"], one["matched"]) for one in found["shares_tried"]] == [("Group", False), ("User", True)]


def test_a_share_that_tasks_cannot_have_is_refused_by_name(grid: None, api: Api) -> None:
    add_shares()
    task = refined()
    body = {"gshare": "Analysis", "reason": "asked"}
    answer = api("production").post(f"/api/v2/tasks/{task.id}/changes/", body, "application/json")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "gshare")


def test_a_task_that_names_a_share_which_is_none_is_not_accepted(grid: None, api: Api) -> None:
    add_shares()
    body = parameters("lab.new", reads("lab.in"), gshare="Analysis")
    get_user_model().objects.create_user("ada")
    answer = api("production").post("/api/v2/tasks/", body, "application/json")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "gshare")
    assert not Task.objects.exists()


def test_how_cpu_is_divided_is_told(grid: None, api: Api) -> None:
    add_shares()
    WorkQueue.objects.create(name="P", type="user", vo="lab", order=1, partition_id=-1, share=60)
    WorkQueue.objects.create(
        name="rest", type="user", vo="lab", order=9, share=30, partition_id=WorkQueue.objects.get(name="P").id
    )
    WorkQueue.objects.create(name="idle", type="user", vo="lab", order=5, share=40, criteria="site IS NOT NULL")
    WorkQueue.objects.create(name="es", type="managed", vo="lab", order=6, function="Resource")
    made = refined(nFilesPerJob=1)
    settle()
    pilot = Pilot()
    for job in pilot.fetch(3):
        pilot.start(job)
    found = api().get("/api/v2/shares/", {"vo": "lab", "label": "user"}).json()
    shares = {one["name"]: one for one in found["shares"]}
    assert list(shares) == ["Analysis", "Group", "User", "Cloud"]
    assert (shares["User"]["percent"], shares["User"]["executing"], shares["User"]["queued"]) == (81, 30, 10)
    assert (shares["User"]["target"], shares["User"]["ratio"]) == (pytest.approx(24.3), pytest.approx(30 / 24.3))
    assert (shares["Cloud"]["idle"], shares["Analysis"]["idle"], shares["User"]["idle"]) == (True, False, None)
    assert shares["Group"]["figures"]["norm_usage"] == 0 and shares["Analysis"]["figures"] is None
    assert found["order"] == ["Group", "User"]
    assert [(one["name"], one["tasks"], one["percent"]) for one in found["work_queues"]] == [
        ("P", 0, 100),
        ("idle", 0, 0),
        ("rest", 1, 100),
    ]
    everything = api().get("/api/v2/shares/").json()
    assert everything["order"] == ["es", "Cloud", "Group", "User"]
    assert made.gshare == "User"
