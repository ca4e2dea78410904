"""Single lines of workflows are held, resumed and given a priority, while other lines of the same tasks go on."""

from __future__ import annotations

import pytest

from jedisite.identity.callers import Caller, Role
from jedisite.models import AuditEntry
from tasks_app.models import File, Job, Workflow, WorkflowPackage
from tasks_app.workflows.package_acts import act_on_packages
from tasks_app.workflows.package_facts import package_facts
from tasks_app.workflows.workflow_acts import CannotActError, act_on_workflow
from tasks_app.workflows.workflow_states import with_states
from tests.flow.driving import add_dataset, agents_turn, jobs, status
from tests.flow.pilot import Pilot, drive
from tests.flow.test_workflows import ADA, MERGE, begin, states, tasks

pytestmark = pytest.mark.usefixtures("books")
STEERS = Caller("ada", frozenset({Role.USER, Role.PRODUCTION}))
EVE = Caller("eve", frozenset({Role.USER}))
SECOND, LAST = "001/002/001", "002/001/001"


def test_a_held_line_gets_no_job_until_it_is_resumed_and_the_others_go_on() -> None:
    add_dataset("lab.raw", 3)
    workflow = begin(MERGE)
    hold = {"caller": ADA, "reason": "bad beam", "line": "001/002"}
    asked = act_on_packages(workflow.pk, "hold", **hold, preview=True)  # type: ignore[arg-type]
    assert asked.packages == (SECOND,) and not WorkflowPackage.objects.filter(is_held=True).exists()
    with pytest.raises(CannotActError, match="belongs to ada"):
        act_on_packages(workflow.pk, "hold", caller=EVE, reason="", line="001/002")
    assert act_on_packages(workflow.pk, "hold", **hold) == asked  # type: ignore[arg-type]
    drive(Pilot())
    found = states(workflow)
    assert (found["001/001/001"], found[SECOND], found["001/003/001"]) == ("successful", "held", "successful")
    assert found[LAST] == "unscheduled", "it waits for the held one"
    first = tasks(workflow)[0]
    assert status(first) not in ("done", "finished", "failed"), "the task stays open"
    with pytest.raises(CannotActError, match="on hold already"):
        act_on_packages(workflow.pk, "hold", caller=ADA, reason="", line="001/002")
    act_on_packages(workflow.pk, "resume", caller=ADA, reason="", line=SECOND)
    with pytest.raises(CannotActError, match="No package of them is on hold"):
        act_on_packages(workflow.pk, "resume", caller=ADA, reason="", line="001/002")
    drive(Pilot())
    assert set(states(workflow).values()) == {"successful"} and status(first) == "done"
    entries = AuditEntry.objects.filter(object_type="workflow", action__in=["hold", "resume"]).order_by("pk")
    assert [(one.action, one.reason, one.details) for one in entries] == [
        ("hold", "bad beam", {"line": "001/002", "packages": [SECOND]}),
        ("resume", "", {"line": SECOND, "packages": [SECOND]}),
    ]


def test_a_job_that_no_pilot_has_is_taken_back_and_one_that_runs_goes_on() -> None:
    add_dataset("lab.raw", 3)
    workflow = begin(MERGE)
    agents_turn()
    pilot = Pilot()
    running = pilot.fetch(1)[0]
    pilot.start(running)
    at_work = next(fact.path for fact in package_facts(workflow) if fact.job_id == running["PandaID"])
    queued = next(fact for fact in package_facts(workflow) if fact.status == "scheduled")
    held = act_on_packages(workflow.pk, "hold", caller=ADA, reason="", paths=[at_work, queued.path])
    assert held.jobs == (queued.job_id,)
    assert (states(workflow)[at_work], states(workflow)[queued.path]) == ("launched", "held")
    assert Job.objects.get(pk=queued.job_id).status == "closed"
    file = File.objects.get(task_id=queued.task_id, boundary_id=queued.boundary, type="input")
    assert (file.status, file.max_attempt - file.attempt) == ("ready", 1), "no attempt is used up"
    pilot.end(running, "finished")
    drive(pilot)
    assert (states(workflow)[at_work], states(workflow)[queued.path]) == ("successful", "held")
    act_on_packages(workflow.pk, "resume", caller=ADA, reason="", paths=[at_work, queued.path])
    drive(Pilot())
    assert set(states(workflow).values()) == {"successful"}


def test_a_resume_of_the_whole_workflow_is_one_of_its_lines_too() -> None:
    add_dataset("lab.raw", 3)
    workflow = begin(MERGE)
    act_on_packages(workflow.pk, "hold", caller=ADA, reason="", line="001/002")
    drive(Pilot())
    assert with_states(Workflow.objects.all()).get().state == "held"  # type: ignore[attr-defined]
    assert act_on_workflow(workflow.pk, "resume", caller=EVE, reason="").packages == ()
    assert act_on_workflow(workflow.pk, "resume", caller=ADA, reason="", stage=2).packages == ()
    asked = act_on_workflow(workflow.pk, "resume", caller=ADA, reason="", preview=True)
    assert asked.packages == (SECOND,) and states(workflow)[SECOND] == "held"
    assert act_on_workflow(workflow.pk, "resume", caller=ADA, reason="on") == asked
    drive(Pilot())
    assert set(states(workflow).values()) == {"successful"}
    entry = AuditEntry.objects.get(object_type="workflow", action="resume")
    assert (entry.reason, entry.details) == ("on", {"packages": [SECOND]})


def test_a_line_that_reads_nothing_is_held_and_one_on_hold_can_be_killed_and_dropped() -> None:
    workflow = begin("job two\nstage\nline\nbinary A\nrun a.sh\nout a\nline\nbinary A\nrun b.sh\nout b")
    act_on_packages(workflow.pk, "hold", caller=ADA, reason="", line="001/002")
    drive(Pilot())
    assert states(workflow) == {"001/001/001": "successful", SECOND: "held"}
    act_on_packages(workflow.pk, "kill", caller=ADA, reason="", line="001/002")
    assert states(workflow)[SECOND] == "failed"


def test_a_line_has_a_priority_of_its_own_until_its_task_gets_another() -> None:
    add_dataset("lab.raw", 3)
    workflow = begin(MERGE)
    with pytest.raises(CannotActError, match="right to steer"):
        act_on_packages(workflow.pk, "priority", caller=ADA, reason="", line="001/002", priority=1900)
    act_on_packages(workflow.pk, "priority", caller=STEERS, reason="soon", line="001/002", priority=1900)
    agents_turn()
    first = tasks(workflow)[0]

    def of_jobs() -> dict[str, int]:
        found = {fact.job_id: fact.path for fact in package_facts(workflow)}
        return {found[job.id]: job.current_priority or 0 for job in jobs(first)}

    assert of_jobs()[SECOND] == 1900 and of_jobs()["001/001/001"] < 1900
    act_on_packages(workflow.pk, "priority", caller=STEERS, reason="", line="001/001", priority=1950)
    assert of_jobs()["001/001/001"] == 1950
    pilot = Pilot()
    assert [job["inFiles"] for job in pilot.fetch(2)] == ["lab.raw.00000", "lab.raw.00001"]
    act_on_workflow(workflow.pk, "priority", caller=STEERS, reason="", priority=100)
    assert of_jobs()["001/003/001"] == 100
    assert not WorkflowPackage.objects.filter(priority__isnull=False).exists()
