"""A node dies: the packages of all workflows that have a job there are found and restarted in one act."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from jedisite.identity.callers import Caller, Role
from jedisite.models import AuditEntry
from tasks_app.models import Job, Workflow
from tasks_app.workflows.package_facts import package_facts
from tasks_app.workflows.rules.definition_files import read_definition
from tasks_app.workflows.rules.workflow_document import as_document
from tasks_app.workflows.submitting_workflows import submit_workflow
from tests.flow.driving import add_dataset, agents_turn
from tests.flow.pilot import Pilot, drive
from tests.flow.test_workflows import ADA, MERGE, states

pytestmark = pytest.mark.usefixtures("books")
EVE = Caller("eve", frozenset({Role.USER}))
COMMANDS = "/api/v2/workflows/node-commands/"


def begin(caller: Caller) -> Workflow:
    return submit_workflow(as_document(read_definition(MERGE)[0]), caller)


def at_work() -> tuple[Workflow, Workflow, Workflow]:
    """Two workflows of ada and one of eve, each with three packages whose jobs are on `node`."""
    add_dataset("lab.raw", 3)
    found = begin(ADA), begin(ADA), begin(EVE)
    agents_turn()
    pilot = Pilot()
    for job in pilot.fetch(9):
        pilot.start(job)
    return found


def launched(workflow: Workflow) -> int:
    return list(states(workflow).values()).count("launched")


def test_packages_of_a_dead_node_are_restarted_in_all_workflows_that_one_may_command(
    api: Callable[..., Client],
) -> None:
    first, second, of_eve = at_work()
    client = api()

    def ask(**more: Any) -> Any:
        return client.post(COMMANDS, {"node": "node", "command": "retry", **more}, "application/json")

    shown = ask()
    assert shown.status_code == 200
    found = {one["workflow"]: one for one in shown.json()["workflows"]}
    paths = ["001/001/001", "001/002/001", "001/003/001"]
    assert list(found) == [first.pk, second.pk, of_eve.pk]
    assert [(one["packages"], len(one["jobs"])) for one in found.values()] == [(paths, 3)] * 3
    assert (
        found[of_eve.pk]["refused"] == "It belongs to eve; you may not command it." and not found[first.pk]["refused"]
    )
    assert [launched(one) for one in (first, second, of_eve)] == [3, 3, 3], "it was a preview"
    done = ask(preview=False, reason="burnt")
    assert done.status_code == 202 and done.json()["workflows"] == shown.json()["workflows"]
    assert [launched(one) for one in (first, second, of_eve)] == [0, 0, 3]
    told = AuditEntry.objects.filter(object_type="workflow", action="retry").order_by("pk")
    assert [(one.object_id, one.reason, one.details["packages"]) for one in told] == [
        (str(first.pk), "burnt", paths),
        (str(second.pk), "burnt", paths),
    ]
    assert all("platform failure" in next(iter(fact.failures)) for fact in package_facts(first) if fact.path in paths)
    drive(Pilot())
    assert set(states(first).values()) == set(states(second).values()) == {"successful"}
    again = ask(preview=False)
    assert again.status_code == 409 and "You may command none of the workflows" in again.json()["detail"]
    nobody = client.post(COMMANDS, {"node": "n9", "command": "kill", "preview": False}, "application/json")
    assert nobody.status_code == 409 and "has a job on the node n9" in nobody.json()["detail"]
    for body in ({"node": "node", "command": "hold"}, {"node": "", "command": "kill"}, {"command": "kill"}):
        assert client.post(COMMANDS, body, "application/json").status_code == 422
    assert api("pilot").post(COMMANDS, {"node": "node", "command": "kill"}, "application/json").status_code == 403


def test_the_page_shows_them_and_asks_for_a_reason(client: Client, make_user: Callable[..., User]) -> None:
    first, *_ = at_work()
    client.force_login(make_user("ada"))
    text = client.get("/workflows/node/").content.decode()
    assert "Packages of a node" in text and "Retry elsewhere" not in text
    assert "No package of a workflow has a job on this node." in client.get("/workflows/node/?node=n9").content.decode()
    text = client.get("/workflows/node/?node=node").content.decode()
    assert "9 packages of 3 workflows" in text and "It belongs to eve; you may not command it." in text
    posted = {"node": "node", "command": "kill"}
    refused = client.post("/workflows/node/", posted)
    assert refused.status_code == 409 and "give a reason" in refused.content.decode() and launched(first) == 3
    assert "choose retry or kill" in client.post("/workflows/node/", {"node": "node", "reason": "x"}).content.decode()
    done = client.post("/workflows/node/", {**posted, "reason": "burnt"}, follow=True).content.decode()
    assert "Kill: accepted for 6 packages on node." in done
    told = Job.objects.filter(command_to_pilot="tobekilled").values_list("user", flat=True)
    assert list(told) == ["ada"] * 6


def test_the_command_lists_and_restarts_them(make_user: Callable[..., User]) -> None:
    first, second, _ = at_work()
    make_user("ada")
    out = StringIO()
    call_command("workflow", "node", "node", "--user", "ada", stdout=out)
    assert out.getvalue().endswith("9 packages of 3 workflows\n") and "001/002/001 (job " in out.getvalue()
    assert launched(first) == 3
    call_command("workflow", "node", "node", "--user", "ada", "--do", "retry", "--reason", "burnt", stdout=out)
    assert launched(first) == launched(second) == 0
    with pytest.raises(CommandError, match="has a job on the node n9"):
        call_command("workflow", "node", "n9", "--user", "ada", "--do", "kill")
