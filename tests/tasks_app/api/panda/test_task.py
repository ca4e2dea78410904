"""Submitting and listing tasks as PanDA's clients do."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django.fixtures import DjangoAssertNumQueries

from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.domain.super_status import STATES_OF, super_status
from tasks_app.models import Command, Dataset, Task

pytestmark = pytest.mark.django_db
Api = Callable[..., Client]
Make = Callable[..., Any]
LIST = "/api/v1/task/get_tasks_detailed_info_since"


def submit(client: Client, parameters: Any, parent: int | None = None) -> tuple[bool, str, Any]:
    body = {"task_parameters": parameters, "parent_tid": parent}
    answer = client.post("/api/v1/task/submit", body, content_type="application/json")
    assert answer.status_code == 200
    said = answer.json()
    return said["success"], said["message"], said["data"]


def listed(client: Client, **query: Any) -> list[dict[str, Any]]:
    if isinstance(query.get("filters"), dict):
        query["filters"] = json.dumps(query["filters"])
    answer = client.get(LIST, query).json()
    assert answer["success"], answer
    return list(answer["data"])


def test_a_submission_is_a_task_of_its_caller_and_each_refusal_has_its_code(
    api: Api, task_params: Make, make_task: Make, rows_stored: Callable[[], dict[str, int]], settings: Any
) -> None:
    ada, parent = api(), make_task(user="eve")
    wanted = task_params(taskName="user.ada.t1/", uniqueTaskName=True, processingType="panda-client-2.2.0-jedi-run")
    taken, says, task_id = submit(ada, wanted, parent.id)
    task = Task.objects.get(pk=task_id)
    assert taken and f"jediTaskID={task_id}" in says
    assert (task.user, task.name, task.status, task.parent_id) == ("ada", "user.ada.t1/", "registered", parent.id)
    assert submit(ada, json.dumps(task_params(taskName="as.text")))[0]
    before = rows_stored()
    assert submit(ada, wanted)[2] == 1
    Task.objects.filter(pk=task_id).update(status="running")
    taken, says, code = submit(ada, wanted)
    assert (taken, code) == (False, 2) and f"jediTaskID={task_id}" in says
    assert submit(ada, task_params(), 12345)[::2] == (False, 11)
    for bad in ({}, task_params(nEvents="x"), task_params(prodSourceLabel="managed")):
        taken, says, code = submit(ada, bad)
        assert (taken, code) == (False, 4) and says
    assert submit(ada, [1])[::2] == (False, None)
    settings.JEDI_MOST_ACTIVE_TASKS = 1
    assert submit(ada, task_params(taskName="one.more"))[::2] == (False, 10)
    assert rows_stored() == before


def test_faults_name_the_option_of_prun_to_its_users_only(api: Api, task_params: Make) -> None:
    reads = {"type": "template", "param_type": "input", "value": '-i "${IN/T}"', "dataset": "user.ada.nix"}
    wanted = task_params(noInput=None, nEvents=None, jobParameters=[reads], dsForIN="user.ada.nix")
    assert submit(api(), wanted)[1].startswith("jobParameters[0].dataset: There is no dataset 'user.ada.nix'.")
    said = submit(api(), {**wanted, "processingType": "panda-client-1.6.4-jedi-run"})[1]
    assert said.startswith("--inDS: There is no dataset 'user.ada.nix'.") and said.count("--inDS") == 1


def test_a_name_whose_task_has_ended_runs_again(api: Api, task_params: Make, make_task: Make) -> None:
    old = make_task(name="user.ada.t1/", status="finished", vo="atlas", prod_source_label="user")
    taken, says, task_id = submit(api(), task_params(taskName="user.ada.t1/", uniqueTaskName=True, vo="atlas"))
    assert (taken, task_id, Task.objects.count()) == (True, old.id, 1) and f"jediTaskID={old.id}" in says
    assert Command.objects.get().name == "incexec"


def test_another_command_is_refused_in_the_form_that_prun_prints(api: Api, task_params: Make) -> None:
    client, wanted = api(), task_params(taskName="user.ada.t1/", uniqueTaskName=True)
    _, _, made = submit(client, wanted)
    Task.objects.update(status="done")
    other = {"type": "constant", "value": "echo%20NEWCODE"}
    taken, says, code = submit(client, {**wanted, "jobParameters": [*wanted["jobParameters"], other]})
    assert (taken, code, Command.objects.count()) == (False, 2, 0)
    assert "another command" in says and f"jediTaskID={made}" in says
    assert submit(client, wanted)[::2] == (True, made)


def test_a_list_has_ones_own_tasks_with_their_files_newest_first(
    api: Api, make_task: Make, make_dataset: Make, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(30):
        make_task(status="running", name=f"user.ada.{number}")
    done = make_task(status="scouting", req_id=77, creation_date=datetime(2026, 11, 20, 11, 24, 24, 985767, UTC))
    make_task(user="eve", status="done", req_id=77)
    for counts in ({"files": 7, "files_finished": 2, "files_failed": 1}, {"files": 2, "files_finished": 1}):
        make_dataset(done, **counts)
    make_dataset(done, files=50, master_id=Dataset.objects.first().id)
    make_dataset(done, files=9, type="output")
    client = api()
    with django_assert_max_num_queries(5):  # three of them say who asks
        tasks = listed(client)
    assert [task["jediTaskID"] for task in tasks] == sorted((t["jediTaskID"] for t in tasks), reverse=True)
    assert len(tasks) == 31 and {task["userName"] for task in tasks} == {"ada"}
    shown = {
        "jediTaskID": done.id,
        "reqID": 77,
        "taskName": done.name,
        "userName": "ada",
        "status": "scouting",
        "superStatus": "submitting",
        "pctFinished": 33,
        "pctFailed": 11,
        "nFiles": 9,
        "nFilesFinished": 3,
        "nFilesFailed": 1,
        "nFilesMissing": 0,
        "creationDate": {"__datetime__": "2026-11-20T11:24:24.985767"},
    }
    assert {name: tasks[0][name] for name in shown} == shown
    assert (tasks[1]["nFiles"], tasks[1]["pctFinished"]) == (0, 0)


def test_a_list_can_be_filtered(api: Api, make_task: Make) -> None:
    one = make_task(name="user.ada.one/", status="done", req_id=101, modification_time=datetime(2026, 1, 1, tzinfo=UTC))
    two = make_task(name="user.ada.one+two/", status="running", req_id=102)
    eves = make_task(name="user.eve.x/", status="pending", user="eve")
    client = api()

    def ids(filters: Any = None, **query: Any) -> list[int]:
        more = {} if filters is None else {"filters": filters}
        return sorted(task["jediTaskID"] for task in listed(client, **more, **query))

    assert ids() == ids(n_tasks=1000, since="None") == [one.id, two.id]
    assert ids(n_tasks=1) == ids(since="2026-06-01 00:00:00") == [two.id]
    assert ids({"jediTaskID": str(one.id)}) == ids({"reqID": "101"}) == ids({"superStatus": "done"}) == [one.id]
    assert ids({"status": "done|running"}) == ids({"superStatus": "running|done"}) == [one.id, two.id]
    assert (
        ids({"taskName": "user.ada.one+two/"}) == ids({"taskName": "*one+*"}) == ids({"taskName": ".*two/"}) == [two.id]
    )
    assert ids({"taskName": "user.ada.one/|user.ada.*two/"}) == [one.id, two.id]
    assert ids({"taskName": "user"}) == ids({"superStatus": "?"}) == ids({"jediTaskID": eves.id}) == []
    assert ids({"userName": "eve"}) == [eves.id] and len(ids({"userName": "*"})) == 3


def test_tasks_of_a_user_are_found_by_the_full_name_in_any_case(api: Api, make_task: Make) -> None:
    User.objects.create_user("jdoe", first_name="Jane", last_name="Doe")
    User.objects.create_user("plato")
    janes, platos = make_task(user="jdoe"), make_task(user="plato")
    make_task(user="bystander")
    client = api()
    for name in ("jane doe", "Jane Doe", " JANE  DOE ", "jdoe", "JDoe"):
        assert [t["jediTaskID"] for t in listed(client, filters={"userName": name})] == [janes.id], name
    found = listed(client, filters={"userName": "jane doe|Plato"})
    assert sorted(t["jediTaskID"] for t in found) == [janes.id, platos.id]
    assert listed(client, filters={"userName": "jane"}) == listed(client, filters={"userName": " "}) == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"filters": "{"}, "filters"),
        ({"filters": "[1]"}, "filters"),
        ({"filters": '{"lockedBy": "x"}'}, "lockedBy"),
        ({"filters": '{"jediTaskID": "x"}'}, "jediTaskID"),
        ({"filters": '{"jediTaskID": "9999999999999999999"}'}, "jediTaskID"),
        ({"filters": '{"status": ["done"]}'}, "status"),
        ({"filters": '{"status": "a\\u0000b"}'}, "filters"),
        ({"filters": json.dumps({"status": "x|" * 60})}, "status"),
        ({"filters": json.dumps({"status": "x" * 2000})}, "status"),
        ({"since": "yesterday"}, "since"),
        ({"since": "0001-01-01T00:00:00+14:00"}, "since"),
        ({"n_tasks": "x"}, "n_tasks"),
        ({"n_tasks": "0"}, "n_tasks"),
    ],
)
def test_a_wrong_question_is_refused_with_a_sentence_that_names_it(api: Api, query: dict[str, str], field: str) -> None:
    answer = api().get(LIST, query)
    said = answer.json()
    assert (answer.status_code, said["success"], said["data"]) == (200, False, None) and field in said["message"]


def test_everything_that_is_at_work_is_active_for_pbook() -> None:
    active = {"registered", "submitting", "ready", "running"}
    for status in TaskStatus:
        coarse = super_status(status)
        assert coarse in ({status} if status in TASK_FINAL | {TaskStatus.EXHAUSTED} else active)
        assert status in STATES_OF[coarse]
