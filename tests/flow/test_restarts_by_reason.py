"""Packages of workflows are restarted as often as their workflow allows for the reason of each failure."""

from __future__ import annotations

import pytest

from tasks_app.dispatch.reports import update_job
from tasks_app.models import RetryNote, Workflow
from tasks_app.workflows.package_acts import act_on_packages
from tasks_app.workflows.package_facts import package_facts
from tests.flow.driving import add_dataset, settle
from tests.flow.pilot import Pilot, drive, report
from tests.flow.test_workflows import ADA, MERGE, begin, states

pytestmark = pytest.mark.usefixtures("books")
LOOPING = {"pilot_error_code": 1150, "pilot_error_diag": "no output"}
MEMORY = {"pilot_error_code": 1212, "pilot_error_diag": "out of memory"}
COMMAND = {"exe_error_code": 14, "exe_error_diag": "no calibration", "pilot_error_code": 1305}
SITE_END = {"pilot_error_code": 1201, "pilot_error_diag": "told to end"}
FIRST = "001/001/001"


def limited(*limits: str) -> Workflow:
    add_dataset("lab.raw", 3)
    return begin(MERGE.replace("job merged", "\n".join(["job merged", *(f"restart {limit}" for limit in limits)])))


def fail(workflow: Workflow, *errors: dict[str, object]) -> str:
    """The job of the first package fails once with each of these errors. Returns its state after the last one."""
    for one in errors:
        settle()
        pilot = Pilot()
        for job in pilot.fetch(9):
            if job["inFiles"] == "lab.raw.00000":
                update_job(report(job, "starting"))
                update_job(report(job, "running"))
                update_job(report(job, "failed", errors=dict(one)))
            else:
                pilot.start(job)
                pilot.end(job, "finished")
        settle()
    return states(workflow)[FIRST]


def test_each_reason_has_its_own_count_and_the_others_share_any() -> None:
    workflow = limited("looping 1", "exit 14 2", "any 1")
    assert fail(workflow, LOOPING, COMMAND, COMMAND, MEMORY) in ("scheduled", "unscheduled"), (
        "every limit is just reached"
    )
    assert fail(workflow, LOOPING) == "failed"
    note = RetryNote.objects.get(detail__contains="package")
    assert note.detail == "the package has failed 2 times (looping), and its workflow allows 1 restart for that"
    assert states(workflow)["002/001/001"] == "unscheduled", "what reads its files waits"


def test_a_reason_without_a_limit_is_not_restarted_when_there_is_no_any() -> None:
    workflow = limited("memory 3")
    assert fail(workflow, MEMORY, MEMORY) != "failed"
    assert fail(workflow, COMMAND) == "failed"


def test_what_the_site_has_ended_counts_for_no_reason() -> None:
    workflow = limited("killed 0", "looping 1")
    assert fail(workflow, SITE_END, SITE_END, LOOPING) != "failed"
    assert fail(workflow, LOOPING) == "failed"


def test_a_package_whose_limit_is_used_up_gets_one_try_from_each_restart_by_hand() -> None:
    workflow = limited("looping 0")
    assert fail(workflow, LOOPING) == "failed"
    act_on_packages(workflow.pk, "retry", caller=ADA, reason="", line=FIRST)
    assert fail(workflow, LOOPING) == "failed"
    act_on_packages(workflow.pk, "retry", caller=ADA, reason="", line=FIRST)
    drive(Pilot())
    assert set(states(workflow).values()) == {"successful"}
    assert sum(package_facts(workflow)[0].failures.values()) == 2
