"""Workflows over the API: submitted, read, previewed, commanded; whose they are counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from jedisite.models import AuditEntry
from tasks_app.models import Command, Task, Workflow
from tasks_app.workflows import large_definitions
from tasks_app.workflows.large_definitions import TooManyLargeDefinitions, place_for
from tasks_app.workflows.rules.definition_files import read_definition
from tasks_app.workflows.rules.workflow_document import as_document
from tests.tasks_app.web.workflows.some_workflows import in_part

pytestmark = pytest.mark.django_db
Api = Callable[..., Client]
WORKFLOWS = "/api/v2/workflows/"
TEXT = """job pair
stage
line
binary A
run a.sh > a
out a
line
binary A
run a.sh > c
out c
stage
line
binary B
run b.sh
in a c
out b
"""
JSON = "application/json"


def submit(client: Client, **body: Any) -> Any:
    return client.post(WORKFLOWS, body, JSON)


def command(client: Client, number: int, **body: Any) -> Any:
    return client.post(f"{WORKFLOWS}{number}/commands/", body, JSON)


def test_a_package_has_its_failures_with_when_where_and_why(api: Api) -> None:
    workflow = in_part()
    workflow.definition["restarts"] = {"exit 65": 1, "any": 2}
    workflow.save()
    client = api()
    pk = workflow.packages.get(path="001/002/001").pk
    found = client.get(f"{WORKFLOWS}{workflow.pk}/packages/{pk}/").json()
    assert (found["path"], found["status"]) == ("001/002/001", "failed")
    assert [(one["job_id"], one["site"], one["reason"]) for one in found["history"]] == [
        (900_002, "FARM_1", "exit 65"),
        (900_003, "FARM_1", "exit 65"),
    ]
    assert found["history"][0]["error"] == "The payload ended with exit code 65."
    assert found["restarts"] == [
        {"reason": "any", "failures": 0, "restarts": 2},
        {"reason": "exit 65", "failures": 2, "restarts": 1},
    ]
    assert client.get(f"{WORKFLOWS}{workflow.pk}/packages/{10**9}/").status_code == 404


def test_the_list_of_packages_has_the_last_job_of_those_that_have_ended(api: Api) -> None:
    workflow = in_part()
    rows = api().get(f"{WORKFLOWS}{workflow.pk}/packages/?columns=path,job_id,site,since").json()["results"]
    assert [(row["path"], row["job_id"], row["site"]) for row in rows] == [
        ("001/001/001", 900_001, "FARM_1"),
        ("001/002/001", 900_003, "FARM_1"),
        ("002/001/001", None, ""),
    ]
    assert rows[0]["since"] and rows[2]["since"] is None


def test_a_definition_is_submitted_as_text_or_document_and_read_with_its_packages(api: Api) -> None:
    client = api()
    answer = submit(client, text=TEXT)
    assert answer.status_code == 201, answer.content
    made = answer.json()
    assert answer["Location"] == f"{WORKFLOWS}{made['id']}/"
    assert [(one["path"], one["status"]) for one in made["packages"]] == [
        ("001/001/001", "unscheduled"),
        ("001/002/001", "unscheduled"),
        ("002/001/001", "unscheduled"),
    ]
    assert client.get(answer["Location"]).json() == made
    assert made["container"] == f"user.ada.pair.{made['id']}/" and Task.objects.count() == 2
    other = submit(client, definition=as_document(read_definition(TEXT.replace("job pair", "job two"))[0])).json()
    assert other["definition"]["stages"] == made["definition"]["stages"]
    listed = client.get(WORKFLOWS).json()["results"]
    assert [row["name"] for row in listed] == ["two", "pair"]
    assert [row["id"] for row in client.get(f"{WORKFLOWS}?name=pair&owner=ada").json()["results"]] == [made["id"]]


def test_what_is_wrong_is_refused_with_every_fault(api: Api) -> None:
    answer = submit(api(), text=TEXT.replace("in a c", "in a d sam").replace("binary B", "binary B sam"))
    assert answer.status_code == 422
    assert {error["field"] for error in answer.json()["errors"]} == {"line 15"}
    answer = submit(api(), text=TEXT.replace("binary B", "binary B sam"))
    assert [error["field"] for error in answer.json()["errors"]] == ["line 13"]
    assert submit(api()).status_code == 422 and submit(api(), text="job j", definition={}).status_code == 422
    for given, field in (
        ({"definition": "job x"}, "definition"),
        ({"definition": [1]}, "definition"),
        ({"text": "[]"}, "text"),
    ):
        (error,) = submit(api(), **given).json()["errors"]
        assert error["field"] == field and "object" in error["message"], error
    assert not Workflow.objects.exists()


def test_a_command_is_previewed_and_then_given_and_stands_in_the_audit_trail(api: Api) -> None:
    client = api()
    number = submit(client, text=TEXT).json()["id"]
    tasks = list(Task.objects.order_by("id").values_list("id", flat=True))
    asked = command(client, number, command="hold")
    assert (asked.status_code, asked.json()["tasks"], asked.json()["preview"]) == (200, tasks, True)
    assert not AuditEntry.objects.filter(object_type="workflow", action="hold").exists()
    done = command(client, number, command="hold", stage=2, preview=False, reason="wait")
    assert (done.status_code, done.json()["tasks"]) == (202, tasks[1:])
    entry = AuditEntry.objects.get(object_type="workflow", action="hold")
    assert (entry.actor, entry.reason, entry.details) == ("ada", "wait", {"stage": 2})
    dropped = command(client, number, command="drop", line="001/002", preview=False)
    assert dropped.status_code == 202, dropped.content
    assert (dropped.json()["canceled"], dropped.json()["removed"]) == (["001/002/001"], {"002/001/001": ["c"]})
    states = {one["path"]: one["status"] for one in client.get(f"{WORKFLOWS}{number}/").json()["packages"]}
    assert states["001/002/001"] == "canceled"


def test_who_may_not_command_a_workflow_is_told_so(api: Api) -> None:
    number = submit(api(), text=TEXT).json()["id"]
    eve = api("user", name="eve")
    for body in ({"command": "drop", "line": "001/002"}, {"command": "kill", "preview": False}, {"command": "resume"}):
        refused = command(eve, number, **body)
        assert refused.status_code == 403 and "belongs to ada" in refused.json()["detail"]
    steered = command(api(), number, command="priority", priority=5, preview=False)
    assert steered.status_code == 403 and "right to steer" in steered.json()["detail"]
    assert command(api(), number, command="resume", preview=False).status_code == 409, "no task is on hold"
    assert command(eve, 99, command="kill").status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {"command": "drop"},
        {"command": "kill", "line": "001/002", "node": "n5"},
        {"command": "drop", "node": "n5"},
        {"command": "priority"},
        {"command": "hold", "priority": 5},
        {"command": "drop", "line": "001/002", "stage": 1},
        {"command": "drop", "line": "../x"},
        {"command": "explode"},
    ],
)
def test_commands_that_say_too_little_or_too_much_are_refused(api: Api, body: dict[str, Any]) -> None:
    number = submit(api(), text=TEXT).json()["id"]
    assert command(api(), number, **body).status_code == 422


def test_the_failed_packages_of_a_line_are_tried_again(api: Api) -> None:
    client, workflow = api(), in_part()
    asked = {"command": "retry", "line": "001/002", "reason": "again"}
    shown = command(client, workflow.pk, **asked)
    assert shown.status_code == 200 and len(shown.json()["tasks"]) == 1 and not Command.objects.exists()
    assert command(client, workflow.pk, **asked, preview=False).status_code == 202
    assert Command.objects.get().parameters == {"subjobs": "1"}
    for line, said in (("001/001", "None of these packages has failed"), ("009/009", "has no line or package 009/009")):
        refused = command(client, workflow.pk, **(asked | {"line": line}))
        assert refused.status_code == 409 and said in refused.json()["detail"]
    for body in (asked | {"node": "n5"}, asked | {"stage": 1}, {"command": "drop"}):
        assert command(client, workflow.pk, **body).status_code == 422
    held = command(client, workflow.pk, command="hold", line="001/002")
    assert (held.status_code, held.json()["packages"]) == (200, ["001/002/001"])


def test_a_workflow_that_is_sent_again_under_the_same_key_is_one_workflow(api: Api) -> None:
    client = api()

    def send(key: str, text: str = TEXT) -> Any:
        return client.post(WORKFLOWS, {"text": text}, JSON, headers={"idempotency-key": key})

    first, again = send("a"), send("a")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["id"] == again.json()["id"] and first["Location"] == again["Location"]
    assert Workflow.objects.count() == 1
    other = send("a", TEXT.replace("pair", "other"))
    assert other.status_code == 422 and other.json()["errors"][0]["field"] == "Idempotency-Key"
    assert send("b").json()["id"] != first.json()["id"]
    assert send("c", "job").status_code == 422 and send("c").status_code == 201, "what was refused has used no key"
    bob = api("user", name="bob").post(WORKFLOWS, {"text": TEXT}, JSON, headers={"idempotency-key": "a"})
    assert bob.status_code == 201 and bob.json()["owner"] == "bob"


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("000001.log.tgz", "Logs of jobs have names like '000001.log.tgz': choose another."),
        ("1.log.tgz", "Logs of jobs have names"),
        ("a%41", "'a%41' cannot be the name of an output: it has % in it."),
    ],
)
def test_outputs_that_no_job_could_store_are_refused_with_their_line(api: Api, output: str, said: str) -> None:
    answer = submit(api(), text=TEXT.replace("out b", f"out {output}"))
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["field"]) == (422, "line 16") and said in error["message"]
    assert not Workflow.objects.exists() and not Task.objects.exists()


def test_large_workflows_are_read_a_few_at_once_and_small_ones_always(
    api: Api, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow, bob = in_part(), api("user", name="bob")
    path = f"{WORKFLOWS}{workflow.pk}/"
    package = f"{path}packages/{workflow.packages.first().pk}/"
    hold = {"command": "hold", "preview": True}
    client.force_login(User.objects.get(username="bob"))
    pages = [f"/workflows/{workflow.pk}/{part}" for part in ("", "dagman/", "lines/001/001/", "do/hold/")]
    with place_for(50_001, "bob"):
        assert {bob.get(path).status_code, bob.get(package).status_code, client.get(pages[0]).status_code} == {200}
        monkeypatch.setattr(large_definitions, "MANY", 1)
        for answer in (bob.get(path), bob.get(package)):
            assert answer.status_code == 503 and "large workflow is being read for you" in answer.json()["detail"]
        for page in pages:
            answer = client.get(page)
            assert answer.status_code == 503 and answer["Retry-After"] == "10", page
        assert api().get(path).status_code == 200, "another account has its place"
        assert command(api(), workflow.pk, **hold).status_code == 200
    assert bob.get(path).status_code == 200


@pytest.mark.django_db
def test_large_definitions_are_read_a_few_at_once(api: Api) -> None:
    large = TEXT + "\n" + "#" * 50_001
    with place_for(50_001, "ada"):
        answer = submit(api(), text=large)
        assert answer.status_code == 503 and answer["Retry-After"] == "10"
        assert "Another large workflow is being read for you" in answer.json()["detail"]
        assert submit(api(), text=TEXT).status_code == 201
        with place_for(50_001, "bob"), pytest.raises(TooManyLargeDefinitions), place_for(50_001, "carol"):
            pass
    assert submit(api(), text=large).status_code == 201
