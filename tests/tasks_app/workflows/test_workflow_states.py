"""The state of whole workflows, as lists filter and count by it."""

from __future__ import annotations

import pytest

from tasks_app.models import Dataset, Job, Task, Workflow, WorkflowPackage
from tasks_app.workflows.workflow_states import with_states
from tests.tasks_app.web.workflows.some_workflows import TWO_STAGES, stored, submit, tried

pytestmark = pytest.mark.django_db


def state(workflow: Workflow) -> str:
    return str(with_states(Workflow.objects.all()).values_list("state", flat=True).get(pk=workflow.pk))


def test_a_workflow_waits_runs_fails_and_succeeds() -> None:
    workflow, other = submit(), submit(TWO_STAGES.replace("job pair", "job other"))
    assert state(workflow) == "waiting"
    tried(workflow, "001/001/001", 1, "running")
    assert state(workflow) == "running" and state(other) == "waiting", "jobs of others do not count"
    Job.objects.all().update(status="finished")
    assert state(workflow) == "running", "between two jobs"
    tried(workflow, "001/002/001", 2, "failed", spent=True)
    assert state(workflow) == "failed"
    tried(workflow, "001/001/001", 3, "activated")
    assert state(workflow) == "running", "something else of it goes on"
    Job.objects.all().update(status="finished")
    Dataset.objects.update(files_failed=0)
    Task.objects.update(status="done")
    assert state(workflow) == "successful"
    Dataset.objects.update(files_failed=1)
    assert state(workflow) == "failed"
    Task.objects.update(status="broken")
    assert state(workflow) == "failed"


def test_a_workflow_is_held_or_canceled() -> None:
    on_hold, workflow = stored(TWO_STAGES), submit()
    assert state(on_hold) == "held"
    Task.objects.update(status="paused")
    assert state(workflow) == "held"
    tried(workflow, "001/001/001", 1, "running")
    assert state(workflow) == "held", "a job that runs goes on, and yet somebody has to resume the others"
    Task.objects.update(status="running")
    packages = WorkflowPackage.objects.filter(workflow=workflow)
    packages.filter(path="001/002/001").update(is_held=True)
    assert state(workflow) == "running", "one line is on hold, and another one runs"
    Job.objects.all().update(status="finished")
    assert state(workflow) == "held", "nothing runs, and somebody has to resume the line"
    packages.update(is_held=False)
    assert state(workflow) == "running"
    Task.objects.update(status="aborted")
    assert state(workflow) == "canceled"
    WorkflowPackage.objects.filter(workflow=on_hold).update(is_canceled=True)
    assert state(on_hold) == "canceled"
