"""Retries beyond the site's limits are refused at every door, in the same sentence, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from brokerage_app.grid.configuring import set_value
from tasks_app.audit import flow_invariants
from tasks_app.models import Command
from tasks_app.submission import command_queue, limited_retries
from tests.flow.driving import status, task
from tests.flow.pilot import Pilot, drive
from tests.flow.test_again import finished_task
from tests.flow.test_commands import command
from tests.flow.test_subjobs import act, numbered, without

pytestmark = pytest.mark.usefixtures("books")
Make = Callable[..., Client]


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("TASK_MAX_ATTEMPT_user", "it was tried 1 time, and 1 is allowed"),
        ("JOB_MAX_ATTEMPT_user", "an input file has 2 attempts already, and 1 is allowed"),
    ],
)
def test_a_retry_beyond_the_limits_is_refused_at_every_door(
    api: Make, make_user: Any, client: Client, key: str, why: str
) -> None:
    made = finished_task("lab.t.in.00001")
    command(made, "retry")
    drive(Pilot(lambda job: "failed"))
    assert status(made) == "finished"
    before = Command.objects.count()
    set_value("retry_task", key, "1", by="ada")
    said = f"task {made} is not tried again: {why}"
    ada, boss, json = api(name="ada"), api("production"), {"content_type": "application/json"}
    answer = ada.post(f"/api/v2/tasks/{made}/commands/", {"command": "retry"}, **json)
    assert (answer.status_code, answer.json()["detail"]) == (409, f"T{said[1:]}.")
    panda = ada.post("/api/v1/task/retry", {"task_id": made}, **json).json()
    assert (panda["data"], panda["message"]) == (4, said)
    client.force_login(make_user("ada"))
    page = client.post(f"/tasks/{made}/do/retry/", {"reason": "again"})
    assert (page.status_code, said[1:] in page.content.decode()) == (409, True)
    many = ada.post("/api/v2/tasks/bulk-commands/", {"command": "retry", "ids": [made], "reason": "x"}, **json).json()
    assert (many["ids"], [one["words"] for one in many["refused"]]) == ([], [f"is not tried again: {why}"])
    with pytest.raises(command_queue.CommandRefusedError, match=why):
        command_queue.give_command(made, "retry", by="ada")
    assert (Command.objects.count(), status(made)) == (before, "finished")
    answer = boss.post(f"/api/v2/tasks/{made}/commands/", {"command": "retry", "transcend": True}, **json)
    assert answer.status_code == 202
    drive(Pilot())
    assert status(made) == "done"
    assert flow_invariants.find() == []


def test_subjobs_are_not_resubmitted_beyond_the_limits(api: Make) -> None:
    """By this call Ganga's interface resubmits."""
    made = numbered(2)
    drive(Pilot(without(1)))
    set_value("retry_task", "MAX_JOB_FAILURE_RATE_user", "0.4", by="ada")
    said = f"Task {made} is not tried again: 50 % of the jobs failed, and 40 % are allowed."
    assert act(api(name="ada"), made, "resubmit", "1", 409) == said
    assert not Command.objects.exists()


def test_limits_of_many_tasks_cost_two_statements(django_assert_num_queries: Any) -> None:
    tasks = [task(finished_task(f"{name}.in.00001", name=name)) for name in ("lab.t", "lab.u", "lab.v")]
    with django_assert_num_queries(0):
        assert limited_retries.reached(tasks) == {}
    set_value("retry_task", "MAX_JOB_FAILURE_RATE_user", "0.1", by="ada")
    limited_retries.limits_of("lab", "user")
    with django_assert_num_queries(2):
        assert sorted(limited_retries.reached(tasks)) == [one.id for one in tasks]
