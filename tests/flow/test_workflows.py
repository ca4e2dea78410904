"""Whole workflows: definitions become tasks, packages run as their files come, and what fails makes others wait."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jedisite.identity.callers import Caller, Role
from tasks_app.models import CatalogueFile, Task, Workflow
from tasks_app.params.faults import ParamErrors
from tasks_app.submission import command_queue
from tasks_app.workflows.package_facts import package_facts
from tasks_app.workflows.rules.definition_files import read_definition
from tasks_app.workflows.rules.workflow_document import as_document
from tasks_app.workflows.submitting_workflows import submit_workflow
from tests.flow.driving import add_dataset, inputs, jobs, status
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
    restart looping 1
    stage
    line
      binary A sam cpu 20
        in x pre-fetch
        in y from lab.raw size 3
        out a store deletable size 1
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
        "looping",
        "early_start",
        "run",
        "sam",
        "cpu_percent",
        "size_mb",
        "dataset",
        "store",
        "keep",
    }
    with pytest.raises(ParamErrors, match=r"Did you mean lab\.raw"):
        begin("job j\nstage\nline\nbinary A\nrun a\nin x from lab.rwa\nout a")
    assert not Workflow.objects.exists() and not Task.objects.exists()
