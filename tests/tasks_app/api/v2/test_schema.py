"""What the schema of the API says of each resource: words, examples, forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator

from brokerage_app.models import GlobalShare, Queue
from tasks_app.api.v2.examples import ANSWERS, JSON
from tasks_app.models import AttentionItem, Workflow, WorkflowPackage
from tasks_app.params import command_parameters

Api = Callable[..., Client]
FILLED = {"task_id": "5", "job_id": "5", "id": "5", "name": "SITE_A"}
WITHOUT_BODY = {"DELETE"}
NOT_JSON = {"/api/v2/files/{id}/content", "/api/v2/tasks/{task_id}/outputs.zip"}


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    found: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return found


def operations(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in schema["paths"].items():
        if path.startswith("/api/v2/"):
            for method, operation in methods.items():
                yield method.upper(), path, operation


def test_resources_come_before_the_calls_of_panda(schema: dict[str, Any]) -> None:
    ours = [path.startswith("/api/v2/") for path in schema["paths"]]
    assert ours == sorted(ours, reverse=True) and set(ours) == {True, False}


def test_the_body_of_a_command_has_each_parameter_in_the_words_of_its_key(schema: dict[str, Any]) -> None:
    fields = schema["components"]["schemas"]["NewCommand"]["properties"]
    assert fields.keys() == {"command", "reason", *command_parameters.NAMES}
    for command, keys in command_parameters.PARAMETERS.items():
        for key in keys:
            said = fields[key.name]["description"]
            assert command.value in said and key.meaning in said


def test_every_operation_is_told_in_words_and_by_examples(schema: dict[str, Any]) -> None:
    missing, names = [], []
    for method, path, operation in operations(schema):
        names.append(operation["operationId"])
        told = [operation.get("summary"), operation.get("description")]
        if method == "POST":
            told.append(operation["requestBody"]["content"][JSON].get("example"))
        good = [
            answer["content"][JSON]
            for code, answer in operation["responses"].items()
            if code[0] == "2" and JSON in answer.get("content", ())
        ]
        told += [answer.get("example") for answer in good]
        shown = good or path in NOT_JSON or method in WITHOUT_BODY
        if not (all(told) and shown) or "4XX" not in operation["responses"]:
            missing.append((method, path, told))
    assert not missing
    assert len(set(names)) == len(names) > 40
    assert schema["components"]["schemas"]["Problem"]["example"]["errors"]


def test_lists_say_which_forms_they_have(schema: dict[str, Any]) -> None:
    listed = schema["paths"]["/api/v2/jobs/"]["get"]
    assert listed["responses"]["200"]["content"]["text/csv"]["example"].startswith("id,task_id,name,")
    assert "format" in [p["name"] for p in listed["parameters"]] and "ordering" in [
        p["name"] for p in listed["parameters"]
    ]
    one = schema["paths"]["/api/v2/jobs/{id}/"]["get"]
    assert set(one["responses"]["200"]["content"]) == {JSON}


@pytest.mark.django_db
def test_the_examples_of_requests_are_taken_by_the_site(
    schema: dict[str, Any], api: Api, make_task: Callable[..., Any]
) -> None:
    make_task(id=5, user="administrator")
    Queue.objects.create(name="SITE_A", site_name="A")
    GlobalShare.objects.create(name="User", value=1)
    with connection.cursor() as cursor:
        # The one that is submitted here gets another number than 5, however many there were.
        cursor.execute("SELECT setval('workflows_id_seq', greatest(nextval('workflows_id_seq'), 5))")
    workflow = Workflow.objects.create(id=5, name="reco001", owner="administrator", definition={}, container="c/")
    WorkflowPackage.objects.create(workflow=workflow, path="001/001/001", software="reco", task_id=5, boundary=0)
    AttentionItem.objects.create(id=5, key="stuck:5", kind="stuck", tone="bad", since=timezone.now(), path="/tasks/5/")
    ada, administrator, seen = api(), api("administrator"), {}
    for method, path, operation in operations(schema):
        if method == "POST":
            example = operation["requestBody"]["content"][JSON]["example"]
            # The task of the example makes datasets of ada's, which nobody else may.
            client = ada if path == "/api/v2/tasks/" else administrator
            answer = client.post(path.format(**FILLED), example, JSON)
            seen[path.removeprefix("/api/v2/")] = answer.status_code
            told = [code for code in operation["responses"] if code[0] == "2"]
            assert str(answer.status_code) in told or answer.status_code == 409, (path, answer.content)
    assert {path for path, code in seen.items() if code == 409} <= {
        "tasks/{task_id}/lost-files/",
        "tasks/{task_id}/subjobs/",
        "tasks/{task_id}/what-if/",
    }


@pytest.mark.django_db
def test_examples_have_the_fields_of_real_answers(
    schema: dict[str, Any], api: Api, make_task: Callable[..., Any], make_job: Callable[..., Any]
) -> None:
    make_job(id=5, task_id=make_task(id=5, gshare="SITE_A").id)
    Queue.objects.create(name="SITE_A", site_name="SITE_A")
    client, compared = api(), set()
    for method, path, operation in operations(schema):
        if method != "GET" or "_id}" in path.replace("{task_id}", "").replace("{job_id}", ""):
            continue
        answer = client.get(path.format(**FILLED))
        if answer.status_code == 200 and isinstance(answer.json(), dict) and not path.endswith("/params/"):
            example = operation["responses"]["200"]["content"][JSON]["example"]
            assert set(answer.json()) == set(example), path
            compared.add(path)
    assert set(ANSWERS) - compared == {"/api/v2/tasks/{task_id}/params/", "/api/v2/tasks/{task_id}/what-if/"}
