"""What the manager of a working group may do to tasks and jobs of others, over PanDA's calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from tasks_app.models import Command, Job, Task

pytestmark = pytest.mark.django_db


def test_a_group_manager_commands_tasks_and_jobs_of_the_group_only(
    api: Callable[..., Client], make_task: Callable[..., Task], make_job: Callable[..., Job]
) -> None:
    groups = ("phys-higgs", "phys-top", None)
    tasks = [make_task(working_group=group) for group in groups]
    jobs = [make_job(task_id=task.id, working_group=task.working_group, status="activated") for task in tasks]
    manager = api("group manager")

    def call(name: str, **given: Any) -> Any:
        return manager.post(f"/api/v1/{name}", given, "application/json").json()

    assert [call("task/kill", task_id=task.id)["success"] for task in tasks] == [True, False, False]
    assert [c.task_id for c in Command.objects.all()] == [tasks[0].id]
    assert [call("job/set_debug_mode", job_id=job.id, mode=True)["success"] for job in jobs] == [True, False, False]
    assert call("job/kill", job_ids=[job.id for job in jobs])["data"] == [True, False, False]
    url = f"/api/v2/tasks/{tasks[1].id}/commands/"
    assert manager.post(url, {"command": "kill"}, "application/json").status_code == 403
