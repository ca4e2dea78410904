"""What was dropped stays out, whatever is tried again afterwards, and the workflow succeeds without it."""

from __future__ import annotations

import pytest

from tasks_app.agents import workflows
from tasks_app.models import Dataset, Workflow
from tasks_app.workflows.dropping import drop_line, with_canceled_files
from tasks_app.workflows.package_acts import act_on_packages
from tasks_app.workflows.package_facts import package_facts
from tasks_app.workflows.workflow_acts import act_on_workflow
from tasks_app.workflows.workflow_states import with_states
from tests.flow.driving import add_dataset, agents_turn, inputs, jobs
from tests.flow.pilot import Pilot, drive
from tests.flow.test_workflows import ADA, MERGE, begin, failing_once_in_a_while, states, tasks

pytestmark = pytest.mark.usefixtures("books")


def state(workflow: Workflow) -> str:
    return str(with_states(Workflow.objects.all()).values_list("state", flat=True).get(pk=workflow.pk))


def merged_from(workflow: Workflow) -> list[str]:
    return sorted(name.rpartition(".")[2] for job in jobs(tasks(workflow)[-1]) for name in inputs(job.id))


def test_a_package_that_is_dropped_while_its_job_waits_does_not_come_back_with_retries() -> None:
    add_dataset("lab.raw", 3)
    workflow = begin(MERGE)
    agents_turn()
    act_on_workflow(workflow.pk, "hold", caller=ADA, reason="")
    act_on_packages(workflow.pk, "kill", caller=ADA, reason="", line="001/001")
    dropped = drop_line(workflow.pk, "001/002", caller=ADA)
    assert len(dropped.jobs) == 1 and not with_canceled_files(9), "its files have left at once"
    act_on_workflow(workflow.pk, "resume", caller=ADA, reason="")
    pilot = Pilot()
    drive(pilot)
    assert states(workflow)["001/001/001"] == "failed" and state(workflow) == "failed"
    act_on_packages(workflow.pk, "retry", caller=ADA, reason="", line="001/001")
    act_on_workflow(workflow.pk, "retry", caller=ADA, reason="")
    drive(pilot)
    assert states(workflow) == {
        "001/001/001": "successful",
        "001/002/001": "canceled",
        "001/003/001": "successful",
        "002/001/001": "successful",
    }
    assert "lab.raw.00001" not in {job["inFiles"] for job in pilot.ran} and merged_from(workflow) == ["a0", "a2"]
    assert state(workflow) == "successful"


@pytest.mark.parametrize("others", ["run still", "have ended"])
def test_a_package_that_is_dropped_while_it_runs_does_not_come_back_with_retries(others: str) -> None:
    add_dataset("lab.raw", 3)
    workflow = begin(MERGE.replace("job merged", "job merged\nrestart any 5"))
    pilot = Pilot()
    agents_turn()
    running = pilot.fetch(3)
    for job in running:
        pilot.start(job)
    hit = next(job for job in running if job["inFiles"] == "lab.raw.00001")
    drop_line(workflow.pk, "001/002", caller=ADA)
    pilot.end(hit, "failed")
    if others == "have ended":
        drive(pilot)
    agents_turn()
    act_on_workflow(workflow.pk, "retry", caller=ADA, reason="")
    for job in running:
        if job is not hit:
            pilot.end(job, "finished")
    drive(pilot)
    assert [job["inFiles"] for job in pilot.ran].count("lab.raw.00001") == 1, "before the agent has looked"
    workflows.run()
    assert not with_canceled_files(9)
    drive(pilot)
    act_on_workflow(workflow.pk, "retry", caller=ADA, reason="")
    drive(pilot)
    assert [job["inFiles"] for job in pilot.ran].count("lab.raw.00001") == 1
    assert states(workflow)["001/002/001"] == "canceled" and merged_from(workflow) == ["a0", "a2"]
    assert state(workflow) == "successful"


def test_a_workflow_of_which_all_that_failed_was_dropped_has_succeeded() -> None:
    add_dataset("lab.raw", 3)
    alone = "line\nbinary Z\nrun z.sh\nout z\n"
    workflow = begin(MERGE.replace("stage\nline", f"{alone}stage\nline"))
    failing = failing_once_in_a_while("lab.raw.00001", 1)
    drive(Pilot(lambda job: "failed" if ".z," in job["outFiles"] + "," else failing(job)))
    assert state(workflow) == "failed"
    before = {fact.path: fact.failures for fact in package_facts(workflow)}
    for path, status in states(workflow).items():
        if status == "failed":
            drop_line(workflow.pk, path.rpartition("/")[0], caller=ADA)
    drive(Pilot())
    assert set(states(workflow).values()) == {"successful", "canceled"}
    assert state(workflow) == "successful"
    assert not Dataset.objects.filter(files_failed__gt=0, type="input").exists()
    assert {fact.path: fact.failures for fact in package_facts(workflow)} == before, "what failed has failed"
