"""Which packages of which workflow a task has, and which one a job has."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Exists, Max, Min, OuterRef, Subquery

from jedisite.vocabulary.words import plural
from tasks_app.models import File, JobFile, WorkflowPackage
from tasks_app.models.dataset import INPUT_TYPES


@dataclass(frozen=True, slots=True)
class PlaceOfTask:
    """A workflow by number and name, the stage of the task in it, and the packages of the task: the first one and the last."""

    workflow: int
    name: str
    stage: int
    packages: int
    first: str
    last: str

    @property
    def line(self) -> str:
        """The line of its only package, such as 001/002; "" when the task has several packages."""
        return self.first.rpartition("/")[0] if self.packages == 1 else ""

    @property
    def words(self) -> str:
        """`stage 2, line 003` or `stage 2, 12 packages from 002/001/001 to 002/012/001`."""
        if self.packages == 1:
            return f"stage {self.stage}, line {self.first.split('/')[1]}"
        return f"stage {self.stage}, {plural(self.packages, 'package')} from {self.first} to {self.last}"


@dataclass(frozen=True, slots=True)
class PlaceOfJob:
    """A workflow by number and name, and the path of the package that a job has or had, such as 001/002/003."""

    workflow: int
    name: str
    path: str

    @property
    def line(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def anchor(self) -> str:
        """Of the package, on the page of its line."""
        return f"p-{self.path[-3:]}"


def place_of_job(job_id: int, task_id: int | None) -> PlaceOfJob | None:
    """The package of a job; None for a job of no workflow. One query."""
    if task_id is None:
        return None
    read = JobFile.objects.filter(job_id=job_id, type__in=INPUT_TYPES, file_id__isnull=False).values("file_id")[:1]
    # A job of a package reads files of its group only.
    group = File.objects.filter(task_id=task_id, pk__in=read).values("boundary_id")[:1]
    rows = WorkflowPackage.objects.filter(task_id=task_id, boundary=Subquery(group))
    found = rows.values_list("workflow_id", "workflow__name", "path").first()
    return PlaceOfJob(*found) if found is not None else None


def is_of_workflow() -> Exists:
    """Whether a task, of a queryset of tasks, belongs to a workflow."""
    return Exists(WorkflowPackage.objects.filter(task_id=OuterRef("pk")))


def place_of_task(task_id: int) -> PlaceOfTask | None:
    """Where the packages of a task stand; None for a task of no workflow. One query."""
    rows = WorkflowPackage.objects.filter(task_id=task_id).values_list("workflow_id", "workflow__name")
    found = rows.annotate(number=Count("id"), first=Min("path"), last=Max("path")).order_by("workflow_id").first()
    if found is None:
        return None
    workflow, name, number, first, last = found
    return PlaceOfTask(workflow, name, int(first.split("/")[0]), number, first, last)
