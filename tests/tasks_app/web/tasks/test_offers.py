"""What pages offer for a task, and what they advise, is what the API takes for the same task."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from brokerage_app.models import Queue
from jedisite.identity.callers import Caller, Role
from tasks_app.commands import bulk
from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.domain.task_commands import COMMANDS, TaskCommand
from tasks_app.explaining.queries import facts_of
from tasks_app.explaining.rules.answers import first_no
from tasks_app.explaining.rules.gates import walk
from tasks_app.models import Command, Dataset, Task, TaskParams
from tasks_app.params.acts import ACTS
from tasks_app.params.command_parameters import PARAMETERS
from tasks_app.web.commands import command_buttons
from tests.tasks_app.params.dictionaries import smallest

pytestmark = pytest.mark.django_db
Make = Callable[..., Any]
INPUTS: dict[str, dict[str, Any] | None] = {
    "no input": None,
    "no file yet": {"files": 0},
    "unprocessed": {"files": 4, "files_finished": 1, "files_used": 2},
    "failed": {"files": 4, "files_finished": 1, "files_failed": 3, "files_used": 4},
    "all processed": {"files": 4, "files_finished": 4, "files_used": 4},
    "all lost": {"files": 0, "files_missing": 2},
    "made up, failed": {"type": "pseudo_input", "files": 4, "files_failed": 4, "files_used": 4},
    "growing": {"files": 4, "files_finished": 4, "files_used": 4, "state": "mutable"},
}
OF_PRODUCTION = ("unprocessed",)
WITH_PARENTS = ("no input", "all processed", "failed")
PARENTS = (None, "running", "done", "failed")
REST = sorted({*TASK_FINAL, TaskStatus.EXHAUSTED})


def tasks_of(make_task: Make, status: str) -> Iterator[tuple[str, Task]]:
    """A task in a state with each kind of input and, where it has come to rest, with each kind of parent."""
    for name, numbers in INPUTS.items():
        label = "managed" if name in OF_PRODUCTION else "user"
        for parent in PARENTS if status in REST and name in WITH_PARENTS else (None,):
            above = make_task(status=parent) if parent else None
            old = "registered" if status == "pending" and numbers is None else "running"
            task = make_task(
                status=status,
                old_status=old,
                prod_source_label=label,
                parent_id=above and above.id,
                split_rule="",
                vo="lab",
            )
            TaskParams.objects.create(task=task, params=smallest())
            if numbers is not None:
                Dataset.objects.create(
                    **{"task": task, "name": f"d{task.id}", "type": "input", "status": "ready", **numbers}
                )
            yield f"a task that is {status}, {label}, {name}, parent {parent}", task


OF_OTHERS = "[Rr]etry the parent|once the parent task is done.*"
"""Advice on another task, or on what to do at another time."""
AGAIN = ("retry", "incexec", "increase_attempts")
ELSEWHERE = (b"nothing runs", b"reads no file")
"""Why what is offered is refused all the same: on account of what is given with it."""
VALUES: dict[str, Any] = {"text": "A", "integer": 1, "number": 1.0, "flag": True, "object": {"ramCount": 1}}
"""What is given for a parameter without which there is no command."""


def give(client: Client, task: Task, command: str) -> Any:
    needed = {key.name: VALUES[key.kind] for key in PARAMETERS.get(TaskCommand(command), ()) if key.required}
    body = {"command": command, "reason": "why", **needed, **({"site": "CERN"} if command == "reassign" else {})}
    answer = client.post(f"/api/v2/tasks/{task.id}/commands/", body, content_type="application/json")
    Command.objects.all().delete()
    return answer


@pytest.mark.parametrize("status", sorted(TaskStatus))
def test_what_is_offered_for_a_task_or_for_many_is_what_the_api_takes(api: Make, make_task: Make, status: str) -> None:
    client, boss = api("administrator"), Caller("administrator", frozenset({Role.ADMINISTRATOR}))
    wrong = []
    Queue.objects.create(name="CERN")
    tasks = list(tasks_of(make_task, status))
    all_of_them = bulk.Selection(tuple(task for _, task in tasks))
    commands = [act for act in ACTS.values() if act.is_command]
    for_many = {act.name: bulk.preview(act, all_of_them, boss).ids for act in commands}
    for name, task in tasks:
        offered = {act.name for act in command_buttons.buttons(task, boss).possible if act.is_command}
        for act in commands:
            if (task.id in for_many[act.name]) != (act.name in offered):
                wrong.append(f"{act.name} of {name}: offered for many: {task.id in for_many[act.name]}")
            if act.name in offered or act.name in AGAIN:
                answer = give(client, task, act.name)
                # Run again is offered with parameters to change; without any, a task that is done refuses it.
                if (answer.status_code == 202) != (act.name in offered) and not any(
                    one in answer.content for one in ELSEWHERE
                ):
                    wrong.append(f"{act.name} of {name}: {answer.status_code} {answer.content!r}")
    assert not wrong


@pytest.mark.parametrize("status", [*REST, "paused", "pending"])
def test_a_command_that_advice_names_is_taken(api: Make, make_task: Make, status: str) -> None:
    client, wrong = api("administrator"), []
    for name, task in tasks_of(make_task, status):
        blocked = first_no(walk(facts_of(task, timezone.now(), {}, None)))
        advice = re.sub(OF_OTHERS, "", blocked.advice if blocked else "")
        for command in COMMANDS:
            if re.search(rf"\b{command}\b", advice, re.IGNORECASE) and give(client, task, command).status_code != 202:
                wrong.append(f"{name}: {advice}")
    assert not wrong


def test_the_page_of_many_refuses_more_attempts_to_those_that_lack_none(reader: Client, make_task: Make) -> None:
    tasks = [make_task(prod_source_label="user") for _ in range(3)]
    Dataset.objects.create(task=tasks[1], name="d", type="input", files=2, files_failed=1)
    for command in ("increase_attempts", "retry"):
        form = {"command": command, "ids": [task.id for task in tasks]}
        plan = reader.post("/tasks/bulk/", form).context["plan"]
        assert plan.ids == [tasks[1].id] and [(group.ids, group.words) for group in plan.refused] == [
            (
                (tasks[0].id, tasks[2].id),
                "has no file that has used up its attempts: all that failed are tried again without a retry",
            )
        ]
        reader.post("/tasks/bulk/", {**form, "confirm": "1", "reason": "the disk is back"})
        assert [row.task_id for row in Command.objects.filter(name=command)] == [tasks[1].id]
        Command.objects.all().delete()


def test_a_finish_says_beforehand_which_tasks_will_end_failed(reader: Client, make_task: Make) -> None:
    tasks = [make_task(), make_task(split_rule="AE=1"), make_task()]
    Dataset.objects.create(task=tasks[2], name="d", type="input", files=2, files_finished=1)
    says = "No input has been processed yet: the task will end <strong>failed</strong> unless one of its jobs still finishes."
    shown = [says in reader.get(f"/tasks/{task.id}/do/finish/").content.decode() for task in tasks]
    assert shown == [True, False, False]
    assert says not in reader.get(f"/tasks/{tasks[0].id}/do/kill/").content.decode()
    many = reader.post("/tasks/bulk/", {"command": "finish", "ids": [task.id for task in tasks]}).content.decode()
    assert "1 of the tasks has processed no input yet: it will end <strong>failed</strong> unless" in many
