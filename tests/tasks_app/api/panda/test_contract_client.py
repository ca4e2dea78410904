"""What panda-client sent to another server, sent to ours: the answers have the keys, types and encodings that it read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from brokerage_app.models import Queue
from tasks_app.models import (
    CatalogueDataset,
    Command,
    Dataset,
    File,
    Job,
    JobFile,
    JobMetadata,
    JobParams,
    Sandbox,
    Task,
)
from tasks_app.params.buildstep import archives_of
from tests.contract import Exchange, compare, exchanges, send
from tests.flow.driving import give_sandbox

pytestmark = pytest.mark.django_db

NO_WORKFLOWS = "no workflows are run here; the sentence stands where pchain and pbook print it"
EXPLAINED: dict[str, tuple[str, list[str]]] = {
    "/server/panda/put_workflow_request": (NO_WORKFLOWS, ["[1]: object there, text here"]),
    "/server/panda/relay_idds_command": (NO_WORKFLOWS, ["[1]: object there, text here"]),
    "/server/panda/execute_idds_workflow_command": (NO_WORKFLOWS, ["[1]: list there, text here"]),
    "/api/v1/workflow/submit_workflow_raw_request": (
        NO_WORKFLOWS,
        ["data: object there, null here", "success: refused"],
    ),
    "/api/v1/workflow/get_workflow_details": (NO_WORKFLOWS, ["data: object there, null here", "success: refused"]),
    "client_api 6": ("the stand-in took a task without jobs' parameters", ["success: refused"]),
    "client_prun 10": ("the site does not offer what --containerImage asks for", ["success: refused"]),
    "/api/v1/job/submit": ("tasks make their jobs themselves", ["data: list there, null here", "success: refused"]),
}
"""Where our answers differ on purpose: by address or name of the exchange, why and how."""

ELSEWHERE = ("/api/v1/file_server/validate", "/api/v1/file_server/upload_cache", "/cache/", "/api/v1/event/")
"""Sandboxes and events have tests of their own."""

STATES = {
    "kill": "running",
    "finish": "running",
    "retry": "finished",
    "pause": "running",
    "resume": "paused",
    "reactivate": "failed",
    "increase_attempts": "running",
    "reload_input": "done",
}
"""In which state a task takes a command, by its name; the stand-in took every command in every state."""


class Scene:
    """A user whose tasks get jobs, files and reports as soon as they are submitted, as those of the stand-in did."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.ids: dict[Any, Any] = {}
        self.jobs = iter(range(6_000_000_000, 6_000_001_000))

    def replay(self, exchange: Exchange) -> list[str]:
        """Send a request in the situation in which it was recorded. Returns how our answer differs."""
        Command.objects.all().delete()
        state = STATES.get(exchange.path.rsplit("/", 1)[-1])
        if state:
            Task.objects.filter(status__in=["registered", *STATES.values()]).update(
                status=state, prod_source_label="user"
            )
        if "/job/" in exchange.path:
            Job.objects.filter(status="cancelled").update(status="activated")  # killed before
        raw = exchange.body.get("task_parameters") or {}
        for name in archives_of(raw, " ".join(str(item.get("value")) for item in raw.get("jobParameters", ()))):
            if not Sandbox.objects.filter(name=name).exists():
                give_sandbox(name, "jdoe")
        answer = send(self.client, exchange, self.ids)
        found = compare(exchange, answer)
        if exchange.path.endswith("task/submit") and exchange.response["success"] and not found:
            self.learn(exchange.response["data"], answer.json()["data"])
        return found

    def learn(self, recorded: int, task_id: int) -> None:
        self.ids |= {recorded: task_id, str(recorded): str(task_id)}
        Task.objects.filter(pk=task_id).update(req_id=recorded - 9_999_900)
        task = Task.objects.get(pk=task_id)
        for kind, state in (("pseudo_input", "finished"), ("output", "defined")):
            counts = {"files": 1, "files_failed": 1}
            dataset = Dataset.objects.create(task=task, name=f"{task.name}_{kind}", type=kind, status="ready", **counts)
            File.objects.create(task_id=task_id, dataset_id=dataset.id, lfn=f"1:{kind}", type=kind, status=state)
        for number, status in ((500001, "activated"), (500002, "running"), (None, "finished"), (None, "failed")):
            job = Job.objects.create(
                id=next(self.jobs),
                task_id=task_id,
                status=status,
                user=task.user,
                name=task.name,
                site="LOCAL_Q",
                attempt=1,
            )
            JobParams.objects.create(id=job.id, params="")
            JobFile.objects.create(job_id=job.id, task_id=task_id, type="output", lfn=f"1:{job.id}")
            if status == "finished":
                JobMetadata.objects.create(id=job.id, metadata={"user": {"m": 1}})
            if number:
                self.ids.setdefault(number, job.id)


@pytest.fixture
def scene(api: Callable[..., Client], settings: Any, tmp_path: Path) -> Scene:
    settings.JEDI_SANDBOXES = tmp_path
    # The stand-in took any name of a queue, and of an input.
    CatalogueDataset.objects.bulk_create(
        CatalogueDataset(name=f"user.jdoe.{name}", scope="x") for name in ("in1", "sec1")
    )
    Queue.objects.bulk_create(Queue(name=name, site_name=name) for name in ("Q1", "Q2", "BAD", "A", "B"))
    return Scene(api("production", name="jdoe"))


def expected(exchange: Exchange, found: list[str]) -> bool:
    """Whether the differences are those that the table tells of, or none where it tells of none."""
    _, told = EXPLAINED.get(exchange.name) or EXPLAINED.get(exchange.path, ("", []))
    return len(found) == len(told) and all(
        difference.startswith("success: True there, False here") if known == "success: refused" else difference == known
        for known, difference in zip(told, found, strict=True)
    )


@pytest.mark.parametrize("recording", ["client_prun", "client_pbook", "client_api"])
def test_answers_are_of_the_shape_that_the_client_read(scene: Scene, recording: str) -> None:
    wrong, compared = [], 0
    for exchange in exchanges(recording):
        if exchange.path.startswith(ELSEWHERE):
            continue
        found = scene.replay(exchange)
        compared += 1
        if not expected(exchange, found):
            wrong.append((exchange.name, exchange.method, exchange.path, found))
    assert not wrong, json.dumps(wrong, indent=1)
    assert compared >= {"client_prun": 6, "client_pbook": 28, "client_api": 45}[recording]


REFUSALS = {
    2: ("bad token", None),
    3: ("somebody else's", None),
    4: ("done", 4),
    6: ("not there", 2),
    7: ("not there", 2),
    8: ("broken", 4),
    9: ("somebody else's", None),
    27: ("finished under the same name", "jediTaskID="),
}
"""Recorded refusals that can be had here: by number, the situation, and the code (or what the message says)."""


def test_refusals_are_those_that_the_client_understood(
    api: Callable[..., Client], make_task: Callable[..., Task]
) -> None:
    recorded = {int(exchange.name.split()[-1]): exchange for exchange in exchanges("client_errors")}
    for number, (situation, code) in REFUSALS.items():
        exchange, client = recorded[number], api("user", name="jdoe")
        name = str(exchange.body.get("task_parameters", {}).get("taskName", "user.jdoe.x/"))
        state = situation if situation in ("done", "broken") else "finished"
        owner = "eve" if situation.startswith("somebody") else "jdoe"
        task = make_task(user=owner, status=state, name=name, vo="atlas", prod_source_label="user")
        ids = {} if situation == "not there" else {exchange.body.get("task_id"): task.id}
        if situation == "bad token":
            answer = send(Client(headers={"authorization": "Bearer no.such.token"}), exchange, ids)
            # The client prints the text of any status but 200; 401 is HTTP's word for it.
            assert answer.status_code == 401 and answer["Content-Type"] == "text/plain" and exchange.status == 403
            continue
        answer = send(client, exchange, ids)
        assert not compare(exchange, answer), (exchange.name, answer.content)
        said = answer.json()
        assert code in said["message"] if isinstance(code, str) else said["data"] == code, (exchange.name, said)
