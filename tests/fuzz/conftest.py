"""What a fuzz test starts from: one of each thing under one number, a client of each kind of caller, the schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
import schemathesis
from django.test import Client
from schemathesis.schemas import BaseSchema

from brokerage_app.models import Queue
from jedisite.models import Agent
from tasks_app.models import Dataset, File, Job, JobParams, Task
from tests.fuzz.sending import NUMBER, Fuzz

CALLERS = ("anonymous", "user", "production", "pilot", "worker")


@pytest.fixture
def things(make_task: Callable[..., Task], make_job: Callable[..., Job], make_dataset: Callable[..., Dataset]) -> None:
    """One of each thing that a request can name, all called by the same number; the task is ada's."""
    name = str(NUMBER)
    Agent.objects.create(name=name, period_s=60)
    Queue.objects.create(name=name, site_name=name, status="online")
    task = make_task(id=NUMBER, site=name)
    dataset = make_dataset(task, id=NUMBER)
    File.objects.create(id=NUMBER, task_id=task.id, dataset_id=dataset.id, lfn="file", type="input", status="ready")
    for number, status in ((NUMBER, "running"), (NUMBER + 1, "activated")):
        make_job(id=number, task_id=task.id, site=name, status=status, prod_source_label="user")
        JobParams.objects.create(id=number, params="echo")


@pytest.fixture
def schema(client: Client) -> BaseSchema:
    """What the site says of its interfaces."""
    answer = client.get("/api/v2/schema/", headers={"accept": "application/vnd.oai.openapi+json"})
    return schemathesis.openapi.from_dict(json.loads(answer.content))


@pytest.fixture
def fuzz(
    things: None, schema: BaseSchema, api: Callable[..., Client], rows_stored: Callable[[], dict[str, int]]
) -> Iterator[Callable[..., Fuzz]]:
    yield lambda belongs, judge: Fuzz(schema, {kind: api(kind) for kind in CALLERS}, rows_stored, belongs, judge)
