"""Super users: their tasks of analysis come before those of others."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from tasks_app.agents import refiner
from tasks_app.lifecycle import task_moves
from tests.flow.driving import parameters, task

pytestmark = pytest.mark.usefixtures("books")


def refined(vo: str = "lab", label: str = "user", task_type: str = "anal", **more: Any) -> int | None:
    """The current priority of a task of ada."""
    params = parameters("lab.t", noInput=True, nEvents=3, nEventsPerJob=1, userName="ada", vo=vo, **more)
    params |= {"prodSourceLabel": label, "taskType": task_type}
    made = task_moves.submit(
        params, name="lab.t", user="ada", vo=vo, label=label, task_type=task_type, priority=500, parent_id=None
    )
    refiner.run()
    return task(made).current_priority


@pytest.mark.parametrize(
    ("group", "more", "priority"),
    [
        ("super", {}, 1500),
        ("super", {"vo": "atlas"}, 1500),
        ("super", {"currentPriority": 1700}, 1700),
        ("super group", {}, 500),
        ("super group", {"workingGroup": "phys-top"}, 1500),
        ("shift", {"workingGroup": "phys-top"}, 500),
        ("super", {"label": "managed", "task_type": "prod"}, 500),
    ],
)
def test_tasks_of_super_users_have_a_high_priority(group: str, more: dict[str, Any], priority: int) -> None:
    ada = User.objects.create_user("ada", password="engine-of-1843")
    ada.groups.add(Group.objects.create(name=group))
    assert refined(taskPriority=500, **more) == priority


def test_a_disabled_account_is_no_super_user() -> None:
    ada = User.objects.create_user("ada", password="engine-of-1843", is_active=False)
    ada.groups.add(Group.objects.create(name="super"))
    assert refined(taskPriority=500) == 500
