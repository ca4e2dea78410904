"""Workflows as pages need them: whole ones, large ones, and jobs that tried their packages."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from jedisite.identity.callers import Caller, Role
from tasks_app.models import Dataset, File, Job, JobFile, Task, Workflow, WorkflowPackage
from tasks_app.workflows.rules.definition_files import read_definition
from tasks_app.workflows.rules.workflow_document import as_document
from tasks_app.workflows.submitting_workflows import submit_workflow

ADA = Caller("ada", frozenset({Role.USER}))
TWO_STAGES = """job pair
stage
line
binary A
run a.sh > a
out a
line
binary A
run a.sh > c
out c
stage
line
binary B
run b.sh
in a c
out b
"""
LARGE = """job large
stage
repeat i 1..1000
line
binary A
run a {i}
out a{i}
end
stage
repeat i 1..1000
line
binary B
run b {i}
in a{i}
out b{i}
end
"""


def submit(text: str = TWO_STAGES) -> Workflow:
    return submit_workflow(as_document(read_definition(text)[0]), ADA)


def stored(text: str, **more: Any) -> Workflow:
    """A workflow whose packages have no tasks, as one on hold."""
    definition, graph = read_definition(text)
    workflow = Workflow.objects.create(name=definition.name, owner="ada", definition=as_document(definition), **more)
    WorkflowPackage.objects.bulk_create(
        WorkflowPackage(workflow=workflow, path=node.path, software=node.package.software) for node in graph.nodes
    )
    return workflow


def tried(workflow: Workflow, path: str, number: int, status: str, *, spent: bool = False, **more: Any) -> Job:
    """A job that had or has a package, with the file of its group, which may have no attempt left."""
    row = WorkflowPackage.objects.get(workflow=workflow, path=path)
    dataset, _ = Dataset.objects.get_or_create(
        task_id=row.task_id, type="pseudo_input", defaults={"name": "seq_number", "status": "ready", "files": 1}
    )
    file, _ = File.objects.get_or_create(
        task_id=row.task_id,
        boundary_id=row.boundary,
        type="pseudo_input",
        defaults={"dataset_id": dataset.id, "lfn": str(row.boundary), "max_attempt": 1, "keep_track": 1},
    )
    job = Job.objects.create(
        id=number, task_id=row.task_id, status=status, site="FARM_1", user="ada", creation_time=timezone.now(), **more
    )
    JobFile.objects.create(job_id=number, task_id=row.task_id, file_id=file.id, type="pseudo_input", lfn=file.lfn)
    if status == "finished":
        Job.objects.filter(pk=number).update(end_time=job.creation_time + timedelta(minutes=10))
    is_open = status in ("running", "activated")
    state = "finished" if status == "finished" else "running" if is_open else "ready"
    File.objects.filter(pk=file.id).update(status=state, job_id=number, attempt=int(spent))
    if spent:
        Dataset.objects.filter(pk=dataset.id).update(files_failed=1)
    return job


def in_part() -> Workflow:
    """A workflow of which one package has succeeded, and one has failed after two tries."""
    workflow = submit()
    tried(workflow, "001/001/001", 900_001, "finished")
    for number in (900_002, 900_003):
        tried(workflow, "001/002/001", number, "failed", spent=True, exe_error_code=65, exe_error_diag="no beam file")
    Task.objects.filter(pk__in=workflow.packages.values("task_id")).update(status="running")
    return workflow
