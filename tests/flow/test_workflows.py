"""Whole workflows: definitions become tasks, packages run as their files come, and what fails makes others wait."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jedisite.identity.callers import Caller, Role
from jedisite.models import AuditEntry
from tasks_app.agents import workflows
from tasks_app.inputs.registering import register_container
from tasks_app.models import CatalogueFile, Task, Workflow
from tasks_app.params.faults import ParamErrors
from tasks_app.submission import command_queue
from tasks_app.workflows.dropping import CannotDropError, drop_line
from tasks_app.workflows.package_facts import package_facts
from tasks_app.workflows.rules.definition_files import read_definition
from tasks_app.workflows.rules.workflow_document import as_document
from tasks_app.workflows.submitting_workflows import submit_workflow
from tasks_app.workflows.workflow_acts import CannotActError, act_on_workflow
from tests.flow.driving import add_dataset, agents_turn, inputs, jobs, status
from tests.flow.pilot import Job, Pilot, drive

pytestmark = pytest.mark.usefixtures("books")
ADA = Caller("ada", frozenset({Role.USER}))
CASE_IV = """
job reco001
restart any 1
stage 1
repeat i 0..2
line
  binary reco version p10
    run reco.sh {i}
    in lab.raw.0000{i} from lab.raw
    out reco{i}_1 reco{i}_2 filt{i} retain
end
stage 2
repeat i 0..2
line
  binary recoA
    run recoanalyze.sh {i}
    in reco{i}_1 reco{i}_2
    out all{i}.root
line
  binary store
    run store.sh {i}
    in reco{i}_1 reco{i}_2
line
  binary recoA
    run recoanalyze.sh {i}
    in filt{i} retain
    out filt{i}.root
end
"""


def failing_once_in_a_while(path: str, times: int) -> Callable[[Job], str]:
    """Jobs that read this file fail so many times."""
    left = [times]

    def outcome(job: Job) -> str:
        if path in job["inFiles"].split(",") and left[0]:
            left[0] -= 1
            return "failed"
        return "finished"

    return outcome


def begin(text: str) -> Workflow:
    return submit_workflow(as_document(read_definition(text)[0]), ADA)


def states(workflow: Workflow) -> dict[str, str]:
    return {fact.path: fact.status.value for fact in package_facts(workflow)}


def tasks(workflow: Workflow) -> list[int]:
    return sorted({fact.task_id for fact in package_facts(workflow) if fact.task_id is not None})


def test_case_iv_for_three_files_is_four_tasks_of_twelve_jobs() -> None:
    add_dataset("lab.raw", 3)
    workflow = begin(CASE_IV)
    assert set(states(workflow).values()) == {"unscheduled"} and len(states(workflow)) == 12
    drive(Pilot())
    assert set(states(workflow).values()) == {"successful"}
    made = tasks(workflow)
    assert [status(one) for one in made] == ["done"] * len(made)
    assert sorted(len(jobs(one)) for one in made) == [3, 3, 3, 3]
    prefix = f"user.ada.reco001.{workflow.pk}"
    read = {tuple(sorted(inputs(job.id))) for one in made for job in jobs(one)}
    assert (f"{prefix}.1.reco0_1", f"{prefix}.1.reco0_2") in read and (f"{prefix}.1.filt2",) in read
    assert CatalogueFile.objects.filter(lfn=f"{prefix}.2.all1.root").exists()


def test_what_waits_for_a_package_that_failed_goes_on_waiting_and_runs_when_it_is_restarted() -> None:
    add_dataset("lab.raw", 3)
    workflow = begin(CASE_IV)
    pilot = Pilot(failing_once_in_a_while("lab.raw.00001", 2))
    drive(pilot)
    found = states(workflow)
    assert found["001/002/001"] == "failed"
    assert {path for path, state in found.items() if state == "unscheduled"} == {f"002/00{n}/001" for n in (4, 5, 6)}
    assert list(found.values()).count("successful") == 8, "nothing else waits"
    failed = next(fact for fact in package_facts(workflow) if fact.path == "001/002/001")
    assert failed.failures == {"the payload ended with 65": 2}, "restarts any 1"
    assert all(status(one) not in ("failed", "broken", "aborted") for one in tasks(workflow))
    command_queue.give_command(tasks(workflow)[0], "retry", by="ada")
    drive(pilot)
    assert set(states(workflow).values()) == {"successful"}


def test_packages_of_a_line_wait_for_each_other_also_without_a_file() -> None:
    workflow = begin("job chain\nstage\nline\npackage\nbinary A\nrun a.sh\nout a\npackage\nbinary B\nrun b.sh\nout b")
    drive(Pilot())
    assert set(states(workflow).values()) == {"successful"}
    _, second = tasks(workflow)
    assert [inputs(job.id) for job in jobs(second)] == [[f"user.ada.chain.{workflow.pk}.1.001-001-001.ended"]]


def test_a_package_may_read_of_several_tasks_and_of_its_own_kind() -> None:
    add_dataset("lab.raw", 1)
    text = """
    job several
    stage
    line
      binary A
        run a.sh
        in lab.raw.00000 from lab.raw
        out a
    line
      binary B
        run b.sh
        out b
    stage
    line
      binary C
        run c.sh
        in a b
        out c1
    line
      binary C
        run c.sh
        in c1 lab.raw.00000 from lab.raw
        out c2
    """
    text = text.replace("in c1 lab.raw.00000 from lab.raw", "in c1\n in lab.raw.00000 from lab.raw")
    workflow = begin(text)
    drive(Pilot())
    assert set(states(workflow).values()) == {"successful"}
    prefix = f"user.ada.several.{workflow.pk}"
    assert [sorted(inputs(job.id)) for job in jobs(tasks(workflow)[-1])] == [
        [f"{prefix}.1.a", f"{prefix}.2.b"],
        ["lab.raw.00000", f"{prefix}.3.c1"],
    ]


def test_what_cannot_be_done_here_is_refused_at_once_and_writes_nothing() -> None:
    add_dataset("lab.raw", 1)
    text = """
    job wishes
    originator eve
    restart loops 1
    stage
    line
      binary A sam cpu 20
        in x pre-fetch
        in y from lab.raw size 3
        out a store temporary size 1
      binary B
        run b
    stage
    line early-start
      binary C
        run c
        in a
    """
    with pytest.raises(ParamErrors) as caught:
        begin(text.replace("      binary B", "    line\n      binary B"))
    fields = {error.field.rpartition(".")[2] for error in caught.value.errors}
    assert fields == {
        "originator",
        "loops",
        "early_start",
        "run",
        "sam",
        "cpu_percent",
        "size_mb",
        "dataset",
        "store",
        "keep",
        "name",
    }
    with pytest.raises(ParamErrors, match=r"Did you mean lab\.raw"):
        begin("job j\nstage\nline\nbinary A\nrun a\nin x from lab.rwa\nout a")
    one = "job j\nstage\nline\nbinary A\nrun a\nin {} from {}\nout a"
    with pytest.raises(ParamErrors, match=r"lab\.raw\.00007 is not in the dataset lab\.raw, which is closed"):
        begin(one.format("lab.raw.00007", "lab.raw"))
    register_container("lab.all/", ["lab.raw"])
    for name in ("lab.all", "lab.all/"):
        with pytest.raises(ParamErrors, match="is a container"):
            begin(one.format("lab.raw.00000", name))
    assert not Workflow.objects.exists() and not Task.objects.exists()


def test_a_dropped_line_takes_its_files_out_of_everything_below_and_the_rest_goes_on() -> None:
    add_dataset("lab.raw", 3)
    workflow = begin(CASE_IV)
    pilot = Pilot(failing_once_in_a_while("lab.raw.00001", 2))
    drive(pilot)
    asked = drop_line(workflow.pk, "001/002", caller=ADA, preview=True)
    assert asked.canceled == ("001/002/001", "002/004/001", "002/005/001", "002/006/001") and not asked.removed
    assert states(workflow)["001/002/001"] == "failed", "a preview changes nothing"
    assert drop_line(workflow.pk, "001/002", caller=ADA, reason="bad file") == asked
    drive(pilot)
    found = states(workflow)
    assert {path for path, state in found.items() if state == "canceled"} == set(asked.canceled)
    assert list(found.values()).count("successful") == 8
    assert [status(one) for one in tasks(workflow)] == ["finished", "done", "done", "done"], (
        "the first had ended before"
    )
    with pytest.raises(CannotDropError, match="nothing is left"):
        drop_line(workflow.pk, "001/002", caller=ADA)
    with pytest.raises(CannotDropError, match="no line 009/001"):
        drop_line(workflow.pk, "009/001", caller=ADA)
    entry = AuditEntry.objects.get(object_type="workflow", action="drop")
    assert (entry.actor, entry.reason, entry.details["line"]) == ("ada", "bad file", "001/002")


MERGE = """
job merged
stage
repeat i 0..2
line
  binary A
    run a.sh
    in lab.raw.0000{i} from lab.raw
    out a{i}
end
stage
line
  binary M
    run m.sh
    in a0 a1 a2
    out all
"""


def test_what_a_dropped_line_runs_is_killed_and_those_who_waited_for_it_go_on_without_it() -> None:
    add_dataset("lab.raw", 3)
    workflow = begin(MERGE)
    pilot = Pilot()
    agents_turn()
    running = pilot.fetch(3)
    for job in running:
        pilot.start(job)
    assert {states(workflow)[f"001/00{n}/001"] for n in (1, 2, 3)} == {"launched"}
    hit = next(job for job in running if job["inFiles"] == "lab.raw.00001")
    found = drop_line(workflow.pk, "001/002", caller=ADA)
    assert (found.removed, found.jobs) == ({"002/001/001": ("a1",)}, (hit["PandaID"],))
    for job in running:
        pilot.end(job, "failed" if job is hit else "finished")
    drive(pilot)
    workflows.run()
    drive(pilot)
    assert states(workflow) == {
        "001/001/001": "successful",
        "001/002/001": "canceled",
        "001/003/001": "successful",
        "002/001/001": "successful",
    }
    merged = jobs(tasks(workflow)[-1])
    assert [name.rpartition(".")[2] for job in merged for name in inputs(job.id)] == ["a0", "a2"]
    assert [status(one) for one in tasks(workflow)] == ["finished", "done"] and len(jobs(tasks(workflow)[0])) == 3


def test_a_dropped_package_that_waits_for_its_pilot_never_runs() -> None:
    add_dataset("lab.raw", 3)
    workflow = begin(MERGE)
    agents_turn()
    assert states(workflow)["001/002/001"] == "scheduled"
    drop_line(workflow.pk, "001/002", caller=ADA)
    pilot = Pilot()
    for _ in range(3):
        workflows.run()
        drive(pilot)
    assert states(workflow)["001/002/001"] == "canceled" and states(workflow)["002/001/001"] == "successful"
    assert "lab.raw.00001" not in {job["inFiles"] for job in pilot.ran}


def test_a_workflow_on_hold_has_no_tasks_until_it_is_resumed() -> None:
    add_dataset("lab.raw", 3)
    workflow = begin(MERGE.replace("job merged", "job merged\nhold"))
    assert set(states(workflow).values()) == {"unscheduled"} and not Task.objects.exists()
    with pytest.raises(CannotActError, match="resume or kill it"):
        act_on_workflow(workflow.pk, "retry", caller=ADA, reason="")
    assert act_on_workflow(workflow.pk, "resume", caller=ADA, reason="", preview=True).begins
    assert not Task.objects.exists()
    act_on_workflow(workflow.pk, "resume", caller=ADA, reason="now")
    drive(Pilot())
    assert set(states(workflow).values()) == {"successful"}
    other = begin(MERGE.replace("job merged", "job merged\nhold"))
    act_on_workflow(other.pk, "kill", caller=ADA, reason="no")
    assert set(states(other).values()) == {"canceled"}
    with pytest.raises(CannotActError, match="was killed before it began"):
        act_on_workflow(other.pk, "resume", caller=ADA, reason="")


def test_a_whole_workflow_and_a_stage_are_held_resumed_retried_and_killed() -> None:
    add_dataset("lab.raw", 3)
    workflow = begin(MERGE)
    agents_turn()
    first, second = tasks(workflow)
    assert act_on_workflow(workflow.pk, "hold", caller=ADA, reason="", stage=2).tasks == (second,)
    with pytest.raises(CannotActError, match="no stage 3"):
        act_on_workflow(workflow.pk, "hold", caller=ADA, reason="", stage=3)
    drive(Pilot(failing_once_in_a_while("lab.raw.00001", 1)))
    assert status(second) == "paused"
    assert act_on_workflow(workflow.pk, "resume", caller=ADA, reason="").tasks == (second,)
    eve = Caller("eve", frozenset({Role.USER}))
    assert act_on_workflow(workflow.pk, "kill", caller=eve, reason="").tasks == ()
    drive(Pilot())
    assert states(workflow)["001/002/001"] == "failed"
    asked = act_on_workflow(workflow.pk, "retry", caller=ADA, reason="", preview=True)
    assert asked.tasks == (first,) and status(first) == "finished"
    act_on_workflow(workflow.pk, "retry", caller=ADA, reason="again", stage=1)
    drive(Pilot())
    assert set(states(workflow).values()) == {"successful"}
    other = begin(MERGE)
    act_on_workflow(other.pk, "kill", caller=ADA, reason="enough")
    drive(Pilot())
    assert set(states(other).values()) == {"canceled"}
