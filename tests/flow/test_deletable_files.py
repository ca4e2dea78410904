"""Files of workflows that nobody wishes to keep are deleted when their workflow has ended, and no others."""

from __future__ import annotations

import pytest

from jedisite.models import AuditEntry
from tasks_app.agents import workflows
from tasks_app.models import CatalogueFile, Workflow
from tasks_app.params.faults import ParamErrors
from tasks_app.workflows.workflow_acts import act_on_workflow
from tests.flow.driving import add_dataset, parameters, reads, submit
from tests.flow.pilot import Pilot, drive
from tests.flow.test_workflows import ADA, begin, failing_once_in_a_while, states

pytestmark = pytest.mark.usefixtures("books")
TEXT = """
job {name}
stage
line
  binary A
    run a.sh
    in lab.raw.00000 from lab.raw
    out x{name} z{name} deletable
line
  binary A
    run a.sh
    in lab.raw.00000 from lab.raw
    out y{name} deletable
line
  binary K
    run k.sh
    out kept{name}
stage
line
  binary B
    run b.sh
    in x{name} y{name}
    out last{name}
line
  binary C
    run c.sh
    in y{name} retain
    in lab.raw.00001 from lab.raw
    out c{name}
"""


def there(workflow: Workflow) -> set[str]:
    found = CatalogueFile.objects.filter(lfn__startswith=f"user.ada.{workflow.name}.{workflow.pk}.")
    return {lfn.rpartition(".")[2] for lfn in found.exclude(lfn__contains="log").values_list("lfn", flat=True)}


def test_what_nobody_wishes_to_keep_goes_when_the_workflow_has_ended_and_nobody_reads_it() -> None:
    add_dataset("lab.raw", 2)
    one, two = begin(TEXT.format(name="one")), begin(TEXT.format(name="two"))
    pilot = Pilot(failing_once_in_a_while("lab.raw.00001", 2))
    drive(pilot)
    workflows.run()
    for workflow in (one, two):
        assert "failed" in states(workflow).values()
        assert {f"x{workflow.name}", f"y{workflow.name}"} <= there(workflow), "its package may be tried again"
        act_on_workflow(workflow.pk, "retry", caller=ADA, reason="again")
    drive(pilot)
    for workflow in (one, two):
        assert set(states(workflow).values()) == {"successful"}
    reader = submit(parameters("user.ada.reads", reads(f"user.ada.one.{one.pk}/"), userName="ada"))
    assert reader
    drive_nothing_and_clean()
    n = one.name
    assert there(one) == {f"{w}{n}" for w in ("x", "y", "z", "kept", "last", "c")}, "a task reads the container"
    n = two.name
    assert there(two) == {f"{w}{n}" for w in ("y", "kept", "last", "c")}, "who reads y retains it"
    entry = AuditEntry.objects.get(object_type="workflow", action="delete files")
    assert (entry.actor, entry.object_id, entry.details["datasets"]) == (
        "workflows",
        str(two.pk),
        [f"user.ada.two.{two.pk}.1"],
    )
    drive(pilot)
    drive_nothing_and_clean()
    assert "xone" not in there(one) and "yone" in there(one)
    assert not Workflow.objects.filter(deletes_files=True).exists()
    assert set(states(one).values()) == {"successful"}, "the books know that they were read"


def test_files_of_one_package_go_together_or_not_at_all() -> None:
    text = "job j\nstage\nline\nbinary A\nrun a\nout x deletable\nout y{}\nstage\nline\nbinary B\nrun b\nin x{}\nout z"
    for kept, read, said in (
        ("", "", "are deleted together"),
        (" deletable", " retain", "are deleted together"),
        (" deletable", " temporary", "space is short"),
    ):
        with pytest.raises(ParamErrors, match=said):
            begin(text.format(kept, read))
    assert not Workflow.objects.exists()
    assert begin(text.format(" deletable", "")).deletes_files and not begin(text.format("", " retain")).deletes_files


def drive_nothing_and_clean() -> None:
    """Twice: the second pass finds nothing to do."""
    workflows.run()
    workflows.run()
