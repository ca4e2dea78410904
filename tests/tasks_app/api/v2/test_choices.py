"""Values that are one of several, names with wildcards, sizes of pages, and OPTIONS: what a caller is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client

from brokerage_app.models import Queue
from jedisite.vocabulary.words import sentence
from jedisite.web.choices import no_choice
from tasks_app.api.v2.urls import urlpatterns
from tasks_app.models import Task

pytestmark = pytest.mark.django_db
Api = Callable[..., Client]
Make = Callable[..., Any]


def fault(answer: Any) -> tuple[str, str]:
    assert answer.status_code == 422, answer.content
    (found,) = answer.json()["errors"]
    return found["field"], found["message"]


@pytest.mark.parametrize(
    ("path", "field", "meant"),
    [
        ("tasks/?status=donne", "status", "done"),
        ("tasks/?status=running,donne", "status", "done"),
        ("tasks/?window=12hh", "window", "12h"),
        ("jobs/?status=finnished", "status", "finished"),
        ("queues/?status=onlin", "status", "online"),
        ("queues/?type=analisys", "type", "analysis"),
        ("errors/?category=paylod", "category", "payload"),
        ("datasets/?type=inputt", "type", "input"),
        ("attention/?state=opn", "state", "open"),
        ("samples/?of=site", "of", "sites"),
        ("messages/?topic=jedi.task", "topic", "jedi.tasks"),
    ],
)
def test_a_filter_says_which_values_there_are_and_which_may_be_meant(
    api: Api, path: str, field: str, meant: str
) -> None:
    named, message = fault(api("administrator").get(f"/api/v2/{path}"))
    assert named == field
    assert "is not one of the choices: " in message and message.endswith(f" Did you mean {meant}?")


@pytest.mark.parametrize("value", ["%25", "100%25s", "%25(value)s", "%7B0%7D"])
@pytest.mark.parametrize("path", ["tasks/?status=", "queues/?type=", "tasks/?status=running,", "attention/?kind="])
def test_a_value_may_look_like_a_format(api: Api, path: str, value: str) -> None:
    assert "is not one of the choices" in fault(api("administrator").get(f"/api/v2/{path}{value}"))[1]


def filters_of_lists() -> Iterator[tuple[str, str]]:
    """The address of each list of the interface that no parameter is part of, with each of its filters."""
    for address in urlpatterns:
        view = getattr(getattr(address, "callback", None), "cls", None)
        if hasattr(view, "filterset_class") and "<" not in str(address.pattern):
            for name in view.filterset_class.base_filters:
                yield f"/{address.pattern}", name


def test_any_filter_may_look_like_a_format(api: Api) -> None:
    client, found = api("administrator"), list(filters_of_lists())
    assert len(found) > 100
    answers = {(path, name): client.get(path, {name: "%s%(x)d%"}).status_code for path, name in found}
    assert {key: status for key, status in answers.items() if status not in (200, 422)} == {}


def test_a_body_with_a_list_for_an_object_is_told_what_is_wanted(api: Api, make_task: Make) -> None:
    make_task(id=20000001)
    incexec = {"command": "incexec", "changes": "x"}
    for path, body, field in (("changes", {"split_rule": [1]}, "split_rule"), ("commands", incexec, "changes")):
        answer = api().post(f"/api/v2/tasks/20000001/{path}/", {**body, "reason": "x"}, "application/json")
        assert answer.status_code == 422
        assert [(e["field"], e["message"]) for e in answer.json()["errors"]] == [(field, "Expected an object.")]


@pytest.mark.parametrize(
    ("path", "body", "field", "meant"),
    [
        ("tasks/20000001/commands/", {"command": "kil"}, "command", "kill"),
        ("tasks/bulk-commands/", {"command": "kil", "ids": [1], "reason": "x"}, "command", "kill"),
        ("tokens/", {"name": "x", "scope": "raed"}, "scope", "read"),
    ],
)
def test_a_body_is_told_the_choices_too(
    api: Api, make_task: Make, path: str, body: dict[str, Any], field: str, meant: str
) -> None:
    make_task(id=20000001)
    named, message = fault(api("administrator").post(f"/api/v2/{path}", body, content_type="application/json"))
    assert named == field and f"{meant}" in message and message.endswith(f"Did you mean {meant}?")


def test_what_is_near_nothing_is_told_the_choices_alone() -> None:
    assert no_choice("x" * 100, ["a", "b"]) == f"{'x' * 60!r} is not one of the choices: a, b."
    assert no_choice(None, ["kill"]).startswith("'None' is not one of")


@pytest.mark.parametrize("size", ["1001", "5000", "0"])
@pytest.mark.parametrize("path", ["tasks", "jobs", "queues", "datasets", "audit"])
def test_a_page_that_is_too_large_is_refused_with_the_limit(api: Api, path: str, size: str) -> None:
    assert fault(api("administrator").get(f"/api/v2/{path}/?page_size={size}")) == (
        "page_size",
        "A page has 1 to 1000 rows.",
    )
    assert api("administrator").get(f"/api/v2/{path}/?page_size=1000").status_code == 200


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("ada.*", []),
        ("user.ada.*", ["user.ada.cells", "user.ada.cells.2"]),
        ("USER.ADA.*", ["user.ada.cells", "user.ada.cells.2"]),
        ("*.cells", ["user.ada.cells", "user.eve.cells"]),
        ("user.*.cells", ["user.ada.cells", "user.eve.cells"]),
        ("**cells**", ["user.ada.cells", "user.ada.cells.2", "user.eve.cells"]),
        ("user?ada*", []),
        ("cells", ["user.ada.cells", "user.ada.cells.2", "user.eve.cells"]),
        ("user.ada.cells.[12]*", []),
    ],
)
def test_a_star_stands_for_any_text_of_a_name(api: Api, make_task: Make, pattern: str, found: list[str]) -> None:
    for name in ("user.ada.cells", "user.ada.cells.2", "user.eve.cells"):
        make_task(name=name)
        Queue.objects.create(name=name, site_name="S")
    for path in ("tasks", "queues"):
        answer = api().get(f"/api/v2/{path}/", {"name": pattern}).json()
        assert sorted(row["name"] for row in answer["results"]) == found


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"name": "user.ada.*"}, ["user.ada.cells", "user.ada.cells.2"]),
        ({"name": "user.ada.cells"}, ["user.ada.cells"]),
        ({"name": "user.ada"}, []),
        ({"contains": "ada"}, ["user.ada.cells", "user.ada.cells.2"]),
    ],
)
def test_the_name_of_a_dataset_is_a_whole_one(
    api: Api, make_task: Make, make_dataset: Make, given: dict[str, str], found: list[str]
) -> None:
    for name in ("user.ada.cells", "user.ada.cells.2", "user.eve.cells"):
        make_dataset(make_task(), name=name)
    answer = api().get("/api/v2/datasets/", given).json()
    assert sorted(row["name"] for row in answer["results"]) == found


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/api/v2/tasks/", {"GET", "POST", "HEAD", "OPTIONS"}),
        ("/api/v2/tasks/20000001/", {"GET", "HEAD", "OPTIONS"}),
        ("/api/v2/tasks/20000001/commands/", {"GET", "POST", "HEAD", "OPTIONS"}),
        ("/api/v2/task-parameters/", {"GET", "HEAD", "OPTIONS"}),
        ("/api/v2/schema/", {"GET", "HEAD", "OPTIONS"}),
        ("/api/v1/task/kill", {"POST", "OPTIONS"}),
    ],
)
@pytest.mark.parametrize("role", ["user", "anonymous"])
def test_options_says_which_methods_an_address_takes(api: Api, path: str, methods: set[str], role: str) -> None:
    answer = api(role).options(path)
    assert answer.status_code == 200
    assert set(answer["Allow"].split(", ")) == methods == {*answer.json()["methods"]}
    assert not Task.objects.exists()


@pytest.mark.parametrize(
    ("said", "wanted"),
    [("it waits", "It waits."), ("it waits.", "It waits."), ("why?", "Why?"), ("", ""), ("and so on…", "And so on…")],
)
def test_a_sentence_has_one_full_stop(said: str, wanted: str) -> None:
    assert sentence(said) == sentence(ValueError(said)) == wanted


def test_a_name_that_waits_is_refused_in_one_sentence(api: Api, make_task: Make, task_params: Make) -> None:
    first = make_task(name="user.ada.test", status="registered", vo="local", prod_source_label="user").id
    body = task_params(uniqueTaskName=True)
    answer = api().post("/api/v2/tasks/", body, content_type="application/json")
    assert answer.json()["detail"].endswith(f"was submitted already and waits. jediTaskID={first}.")
