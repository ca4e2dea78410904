"""PanDA's calls with which users command their tasks, and the answers that its clients read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from brokerage_app.models import Queue
from tasks_app.api.panda.command_calls import NAMES
from tasks_app.domain.task_commands import COMMANDS, MORE_ATTEMPTS_IN, Giver
from tasks_app.models import Command, Dataset, Task

pytestmark = pytest.mark.django_db
Api = Callable[..., Client]
Make = Callable[..., Task]


def call(client: Client, name: str, **body: Any) -> Any:
    return client.post(f"/api/v1/task/{name}", body, content_type="application/json")


@pytest.mark.parametrize("name", NAMES)
def test_a_command_is_taken_or_refused_with_its_code(api: Api, make_task: Make, name: str) -> None:
    rule = COMMANDS[NAMES[name]]
    states = sorted(rule.accepted - MORE_ATTEMPTS_IN or rule.accepted)
    fits = make_task(status=states[0], split_rule="WH=1" if name == "release" else None)
    Dataset.objects.create(task=fits, name="user.ada.in", type="input", files=3, files_failed=1)
    broken = make_task(status="broken")
    client = api("production") if rule.giver is Giver.PRODUCTION else api()
    taken = call(client, name, task_id=fits.id)
    assert (taken.status_code, taken.json()["success"], taken.json()["data"]) == (200, True, 0)
    assert Command.objects.get().name == NAMES[name]
    no = call(client, name, task_id=broken.id).json()
    assert (no["success"], no["data"]) == (name == "retry", 4) and "is broken" in no["message"]
    assert call(client, name, task_id=7).json()["data"] == 2
    others = call(api("user", name="eve"), name, task_id=fits.id).json()
    assert (others["success"], others["data"]) == (False, None) and "belongs to ada" in others["message"]
    assert Command.objects.count() == 1


def test_commands_that_are_sent_at_once_are_taken_in_their_order(api: Api, make_task: Make) -> None:
    task, client = make_task(status="running"), api()
    for name in ("pause", "resume", "kill"):
        assert call(client, name, task_id=task.id).json()["data"] == 0
    no = call(client, "retry", task_id=task.id).json()
    assert no["data"] == 4 and no["message"].endswith("wait until it has ended, then retry is accepted")
    assert call(client, "resume", task_id=task.id).json()["success"] is False
    assert list(Command.objects.order_by("id").values_list("name", flat=True)) == ["pause", "resume", "kill"]


def test_a_retry_with_options_runs_the_task_again_with_changes(api: Api, make_task: Make) -> None:
    task = make_task(status="finished")
    Queue.objects.bulk_create(Queue(name=name, site_name=name) for name in "AB")
    answer = call(api(), "retry", task_id=task.id, new_parameters={"nFilesPerJob": 3, "excludedSite": "A,B"}).json()
    assert (answer["success"], answer["data"]) == (True, 3)
    command = Command.objects.get()
    assert (command.name, command.parameters) == ("incexec", {"changes": {"nFilesPerJob": 3, "excludedSite": "A,B"}})


@pytest.mark.parametrize(
    ("more", "name", "changes"), [({}, "retry", {}), ({"nFiles": 3}, "incexec", {"changes": {"nFiles": 3}})]
)
def test_flags_of_a_retry_are_the_qualifiers_of_the_command(
    api: Api, make_task: Make, more: dict[str, Any], name: str, changes: dict[str, Any]
) -> None:
    task = make_task(status="finished")
    Dataset.objects.create(task=task, name="user.ada.in", type="input", files=3, files_failed=1)
    flags = {"no_child_retry": True, "disable_staging_mode": True, "keep_gshare_priority": True}
    answer = call(api(), "retry", task_id=task.id, new_parameters=more, **flags).json()
    assert answer["success"] is True
    command = Command.objects.get()
    assert (command.name, command.parameters) == (name, {"sole": True, "staged": True, "keep": True, **changes})


@pytest.mark.parametrize("more", [{}, {"nFiles": 3}])
def test_a_retry_discards_events_and_one_with_changes_does_not(api: Api, make_task: Make, more: dict[str, Any]) -> None:
    task = make_task(status="finished", event_service=1)
    Dataset.objects.create(task=task, name="user.ada.in", type="input", files=3, files_failed=1)
    answer = call(api(), "retry", task_id=task.id, new_parameters=more, discard_events=True).json()
    if more:
        assert not answer["success"] and "discard" in answer["message"] and not Command.objects.exists()
    else:
        assert Command.objects.get().parameters == {"discard": True}


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("kill", {}),
        ("kill", {"task_id": "x"}),
        ("finish", {"task_id": 1, "soft": "perhaps"}),
        ("retry", {"task_id": 1, "new_parameters": [1]}),
        ("increase_attempts", {"task_id": 1, "increase": 0}),
    ],
)
def test_a_bad_call_is_refused_with_a_sentence(api: Api, make_task: Make, name: str, body: dict[str, Any]) -> None:
    answer = call(api(), name, **body)
    said = answer.json()
    assert (answer.status_code, said["success"]) == (200, False) and said["message"] and not Command.objects.exists()


def test_parameters_reach_the_command(api: Api, make_task: Make) -> None:
    task = make_task()
    Dataset.objects.create(task=task, name="user.ada.in", type="input", files=3, files_failed=1)
    call(api(), "increase_attempts", task_id=task.id, increase=7)
    call(api(), "finish", task_id=task.id, soft=True)
    assert list(Command.objects.order_by("id").values_list("parameters", flat=True)) == [
        {"attempts": 7},
        {"soft": True},
    ]


def test_those_who_steer_reactivate_a_task_whatever_the_limits_say(api: Api, make_task: Make) -> None:
    manager = api("production")
    for status, command in (("finished", "retry"), ("failed", "retry"), ("done", "incexec")):
        task = make_task(status=status)
        if command == "retry":
            Dataset.objects.create(task=task, name="user.ada.in", type="input", files=3, files_failed=1)
        said = call(manager, "reactivate", task_id=task.id, keep_attempt_nr=False, trigger_job_generation=None).json()
        assert (said["success"], said["data"]) == (True, 0)
        given = Command.objects.get(task=task)
        assert (given.name, given.parameters) == (command, {"transcend": True} if command == "retry" else None)
    mine = call(api(), "reactivate", task_id=make_task(status="finished").id).json()
    assert (mine["success"], mine["data"]) == (False, None) and "steer" in mine["message"]
    assert call(manager, "reactivate", task_id=make_task(status="broken").id).json()["data"] == 4
    assert call(manager, "reactivate", task_id=7).json()["data"] == 2
