"""Commands as PanDA's clients give them: one answer to each, in the words and with the code that they print as it is meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from tasks_app.models import Command, Dataset, Task

pytestmark = pytest.mark.django_db
Api = Callable[..., Client]
Make = Callable[..., Any]


def give(client: Client, name: str, task: Task, **more: Any) -> dict[str, Any]:
    body = {"task_id": task.id, **more}
    said: dict[str, Any] = client.post(f"/api/v1/task/{name}", body, content_type="application/json").json()
    return said


@pytest.mark.parametrize("name", ["retry", "increase_attempts"])
def test_more_attempts_are_refused_at_once_where_no_file_lacks_them(
    api: Api, make_task: Make, rows_stored: Callable[[], dict[str, int]], name: str
) -> None:
    client, task = api("production"), make_task(status="pending", prod_source_label="user")
    Dataset.objects.create(task=task, name="user.ada.in", type="input", files=3)
    before = rows_stored()
    said = give(client, name, task)
    assert (said["success"], said["data"]) == (name == "retry", 4)
    assert said["message"] == (
        f"task {task.id} has no file that has used up its attempts: all that failed are tried again without a retry"
    )
    assert rows_stored() == before


def test_a_retry_of_a_task_at_work_is_no_failure_to_those_that_print_the_answer(api: Api, make_task: Make) -> None:
    task = make_task(status="pending", prod_source_label="user")
    Dataset.objects.create(task=task, name="user.ada.in", type="input", files=3, files_failed=1)
    assert give(api(), "retry", task) == {
        "success": True,
        "message": f"the failed files of task {task.id}, which is pending, are tried again",
        "data": 0,
    }
    assert Command.objects.get().name == "retry"


def test_a_failed_task_takes_a_retry(api: Api, make_task: Make) -> None:
    task = make_task(status="failed")
    Dataset.objects.create(task=task, name="user.ada.in", type="input", files=3, files_failed=3, files_used=3)
    said = give(api(), "retry", task)
    assert (said["data"], said["message"]) == (0, f"retry was registered for task {task.id}")
    assert Command.objects.get().name == "retry"


def test_a_failed_task_that_never_had_input_refuses_a_retry_at_once(api: Api, make_task: Make) -> None:
    task = make_task(status="failed")
    says = f"task {task.id} is failed and never had any input; nothing to retry. To have it looked up, "
    assert says in give(api(), "retry", task)["message"]
    assert not Command.objects.exists()


@pytest.mark.parametrize(
    ("name", "status", "says"),
    [
        ("kill", "done", "is done; it has ended; nothing to kill"),
        ("finish", "failed", "is failed; it has ended; nothing to finish"),
        ("pause", "aborted", "is aborted; it has ended; nothing to pause"),
        ("kill", "aborting", "is aborting; it is ending already; nothing to kill"),
        (
            "retry",
            "done",
            "is done; all of its files were processed; nothing to retry. If there is more input by now, "
            "run it again with prun and the same --outDS",
        ),
    ],
)
def test_a_refusal_is_short_and_names_nothing_that_the_client_does_not_have(
    api: Api, make_task: Make, name: str, status: str, says: str
) -> None:
    task = make_task(status=status)
    said = give(api(), name, task)
    assert (said["data"], said["message"]) == (4, f"task {task.id} {says}")
    assert not Command.objects.exists()


def test_secrets_that_are_deleted_are_said_to_be_and_those_that_are_not_there_too(api: Api) -> None:
    ada = api()

    def put(**body: Any) -> Any:
        return ada.post("/api/v1/creds/set_user_secrets", body, content_type="application/json").json()

    put(key="a", value="1")
    put(key="b", value="2")
    assert put(key="nosuch", value=None) == {"success": False, "message": "you have no secret 'nosuch'", "data": None}
    assert put(key="a", value=None)["data"] == "1 secret is deleted"
    assert put(key=None, value=None)["data"] == "1 secret is deleted"
    assert put(key=None, value=None) == {"success": False, "message": "you have no secret", "data": None}
