"""What a task of a workflow says of tasks that make its files: of those that make what its packages read, and of no other."""

from __future__ import annotations

import pytest

from tasks_app.models import Task
from tests.flow.driving import add_dataset, look_again
from tests.flow.pilot import Pilot, drive
from tests.flow.test_workflows import begin, failing_once_in_a_while, tasks

pytestmark = pytest.mark.usefixtures("books")
TWO = """
job two
stage
line
  binary A
    run a.sh
    in lab.raw.00000 from lab.raw
    out a
line
  binary B
    run b.sh
    in lab.raw.00001 from lab.raw
    out b
stage
line
  binary C
    run c.sh
    in a
    out c
line
  binary D
    run d.sh
    in b
    out d
line
  binary E
    run e.sh
    in lab.raw.00001 from lab.raw
    out e
"""


def test_a_task_of_a_workflow_names_those_that_make_its_files_and_no_others() -> None:
    add_dataset("lab.raw", 2)
    workflow = begin(TWO)
    drive(Pilot(failing_once_in_a_while("lab.raw.00001", 99)))
    look_again()
    drive(Pilot(failing_once_in_a_while("lab.raw.00001", 99)))
    one, two, three, four, five = tasks(workflow)
    rows = {task.id: task for task in Task.objects.filter(pk__in=tasks(workflow))}
    assert [rows[n].status for n in (one, three)] == ["done", "done"], "what they read is made"
    assert not rows[three].error_dialog and rows[five].status == "failed"
    said = rows[four].error_dialog or ""
    assert f"its groups wait for user.ada.two.{workflow.pk}.2.b; task {two}, which makes" in said, said
    assert "retry that one" in said and "no files yet" not in said and str(five) not in said
