"""Single lines and packages of workflows: killed and tried again, by their places or by the node of their jobs."""

from __future__ import annotations

import pytest

from jedisite.identity.callers import Caller, Role
from jedisite.models import AuditEntry
from tasks_app.workflows.package_acts import act_on_packages, on_node
from tasks_app.workflows.package_facts import package_facts
from tasks_app.workflows.workflow_acts import CannotActError, act_on_workflow
from tests.flow.driving import add_dataset, agents_turn
from tests.flow.pilot import Pilot, drive
from tests.flow.test_workflows import ADA, MERGE, begin, failing_once_in_a_while, states

pytestmark = pytest.mark.usefixtures("books")
EVE = Caller("eve", frozenset({Role.USER}))


def entries() -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(object_type="workflow").exclude(action="submit").order_by("pk"))


def test_a_line_that_failed_is_tried_again_alone() -> None:
    add_dataset("lab.raw", 3)
    workflow = begin(MERGE)
    plan = failing_once_in_a_while("lab.raw.00001", 1)
    other = failing_once_in_a_while("lab.raw.00002", 1)
    drive(Pilot(lambda job: "failed" if "failed" in (plan(job), other(job)) else "finished"))
    assert [path for path, state in states(workflow).items() if state == "failed"] == ["001/002/001", "001/003/001"]
    asked = act_on_packages(workflow.pk, "retry", caller=ADA, reason="", line="001/002", preview=True)
    assert asked.packages == ("001/002/001",) and not entries()
    assert act_on_packages(workflow.pk, "retry", caller=ADA, reason="again", line="001/002") == asked
    drive(Pilot())
    found = states(workflow)
    assert (found["001/002/001"], found["001/003/001"], found["002/001/001"]) == ("successful", "failed", "unscheduled")
    (entry,) = entries()
    assert (entry.action, entry.reason) == ("retry", "again")
    assert entry.details == {"packages": ["001/002/001"]}
    act_on_packages(workflow.pk, "retry", caller=ADA, reason="", line="001/003/001")
    drive(Pilot())
    assert set(states(workflow).values()) == {"successful"}
    with pytest.raises(CannotActError, match="None of these packages has failed"):
        act_on_packages(workflow.pk, "retry", caller=ADA, reason="", line="001/003")


def test_a_line_is_killed_and_those_who_wait_for_it_wait_until_it_is_tried_again() -> None:
    add_dataset("lab.raw", 3)
    workflow = begin(MERGE.replace("job merged", "job merged\nrestart any 3"))
    agents_turn()
    found = act_on_packages(workflow.pk, "kill", caller=ADA, reason="wrong", line="001/002")
    assert found.packages == ("001/002/001",) and len(found.jobs) == 1
    drive(Pilot())
    now = states(workflow)
    assert (now["001/002/001"], now["001/001/001"], now["002/001/001"]) == ("failed", "successful", "unscheduled")
    with pytest.raises(CannotActError, match="dropped with its line"):
        act_on_packages(workflow.pk, "kill", caller=ADA, reason="", line="002/001")
    act_on_packages(workflow.pk, "retry", caller=ADA, reason="", line="001/002")
    drive(Pilot())
    assert set(states(workflow).values()) == {"successful"}


def test_all_packages_of_a_dead_node_are_found_and_started_again_without_using_up_attempts() -> None:
    add_dataset("lab.raw", 3)
    workflow = begin(MERGE)
    agents_turn()
    lost = Pilot()
    for job in lost.fetch(2):
        lost.start(job)
    there = [fact.path for fact in on_node(package_facts(workflow), "node")]
    assert len(there) == 2
    with pytest.raises(CannotActError, match="has a job on the node n9"):
        act_on_packages(workflow.pk, "retry", caller=ADA, reason="", node="n9")
    done = act_on_packages(workflow.pk, "retry", caller=ADA, reason="burnt", node="node")
    assert list(done.packages) == there and len(done.jobs) == 2
    facts = {fact.path: fact for fact in package_facts(workflow)}
    assert {facts[path].status.value for path in there} == {"unscheduled"}
    assert all("platform failure" in next(iter(facts[path].failures)) for path in there)
    drive(Pilot())
    assert set(states(workflow).values()) == {"successful"}
    assert entries()[-1].details == {"node": "node", "packages": there}


def test_what_cannot_be_done_to_a_line_is_refused_with_a_sentence_and_leaves_no_entry() -> None:
    add_dataset("lab.raw", 3)
    workflow = begin(MERGE)
    agents_turn()
    for name in ("priority", "hold", "resume"):
        with pytest.raises(CannotActError, match="hold, resume and priority are for lines and packages"):
            act_on_packages(workflow.pk, name, caller=ADA, reason="", node="node")
    with pytest.raises(CannotActError, match="no line or package 001/009"):
        act_on_packages(workflow.pk, "kill", caller=ADA, reason="", line="001/009")
    with pytest.raises(CannotActError, match="belongs to ada"):
        act_on_packages(workflow.pk, "kill", caller=EVE, reason="", line="001/002")
    assert act_on_workflow(workflow.pk, "kill", caller=EVE, reason="").tasks == ()
    assert not entries()
