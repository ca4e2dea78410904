"""The story of a line: its packages in order, each with its inputs, the jobs that tried it, their failures, and its outputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from django.db.models import Q

from tasks_app.domain.failure_reasons import history_of, reasons_of
from tasks_app.domain.job_errors import ALL_FIELDS, JobError, error_of
from tasks_app.domain.states import JobStatus
from tasks_app.models import File, Job, JobArchive, JobFile, Workflow, WorkflowPackage
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.workflows.package_facts import PackageFact, package_facts
from tasks_app.workflows.rules.definition import Acquisition
from tasks_app.workflows.rules.implied_graph import Graph, Node
from tasks_app.workflows.rules.package_states import ENDED, PackageStatus
from tasks_app.workflows.submitting_workflows import definition_of, names_of

MOST_JOBS: Final = 500
"""Jobs of a line that are shown, the newest ones."""
MOST_FILES: Final = 200
"""Inputs, and outputs, of a package that are shown."""
_JOB: Final = (
    "id",
    "task_id",
    "status",
    "site",
    "worker_node",
    "creation_time",
    "start_time",
    "end_time",
    *(name for name in ALL_FIELDS),
)


@dataclass(frozen=True, slots=True)
class Try:
    """A job that had the package."""

    id: int
    status: str
    site: str
    node: str
    created: datetime
    started: datetime | None
    ended: datetime | None
    error: JobError | None

    @property
    def ran_s(self) -> float | None:
        if self.started is None or self.ended is None:
            return None
        return (self.ended - self.started).total_seconds()

    @property
    def reason(self) -> str:
        """The narrowest reason by which restarts may be limited; "" of a job that has not failed."""
        return reasons_of(self.error)[0] if self.status == JobStatus.FAILED else ""


@dataclass(frozen=True, slots=True)
class InputOf:
    """A file that a package reads: from the package `maker`, or from a dataset; `state` in words."""

    name: str
    maker: Node | None
    dataset: str
    state: str


@dataclass(frozen=True, slots=True)
class OutputOf:
    """A file that a package writes, what its last job has of it (`file_id`, `lfn`, `size`, `status`), and who reads it."""

    name: str
    made: Mapping[str, Any] | None
    readers: Sequence[Node]


class Limit(NamedTuple):
    """How many failures of a package count for a reason, and how many of them are restarted."""

    reason: str
    failures: int
    restarts: int


@dataclass(frozen=True, slots=True)
class PackageStory:
    """`waits_for`: packages that have not ended and that it waits for, with their states. `limits`: of each reason that
    its workflow restarts packages for."""

    node: Node
    fact: PackageFact
    inputs: Sequence[InputOf]
    more_inputs: int
    tries: Sequence[Try]
    outputs: Sequence[OutputOf]
    more_outputs: int
    waits_for: Sequence[tuple[Node, PackageStatus]]
    limits: Sequence[Limit]

    @property
    def failed_tries(self) -> list[Try]:
        return [job for job in self.tries if job.status == JobStatus.FAILED]


def story_of(
    workflow: Workflow, graph: Graph, facts: Sequence[PackageFact], nodes: Sequence[Node]
) -> list[PackageStory]:
    """The packages of a line. Five queries, however many packages and jobs there are."""
    tries = _tries(workflow, nodes)
    made = _made(workflow, tries)
    found = []
    for node in nodes:
        fact = facts[node.index]
        own = tries.get(node.path, [])
        inputs = [_input(graph, facts, node, at) for at in range(min(len(node.inputs), MOST_FILES))]
        outputs = [
            OutputOf(
                name,
                made.get((own[-1].id, name)) if own else None,
                [graph.nodes[at] for at in graph.consumers.get(name, ())],
            )
            for name in node.outputs[:MOST_FILES]
        ]
        waits = [(graph.nodes[at], facts[at].status) for at in graph.parents[node.index]]
        waits = [one for one in waits if one[1] not in ENDED]
        found.append(
            PackageStory(
                node,
                fact,
                inputs,
                max(len(node.inputs) - MOST_FILES, 0),
                own,
                outputs,
                max(len(node.outputs) - MOST_FILES, 0),
                waits,
                _limits(workflow, own),
            )
        )
    return found


def story_of_package(workflow: Workflow, path: str) -> PackageStory:
    """One package. Raises ParamErrors when the definition of its workflow is refused today."""
    _, graph = definition_of(workflow)
    node = next(node for node in graph.nodes if node.path == path)
    (story,) = story_of(workflow, graph, package_facts(workflow), [node])
    return story


def _limits(workflow: Workflow, tries: Sequence[Try]) -> list[Limit]:
    limits = workflow.definition.get("restarts", {})
    failures = [[job.error] if job.error else [] for job in tries if job.status == JobStatus.FAILED]
    counts = history_of(failures, limits)
    return [Limit(reason, counts.get(reason, 0), limit) for reason, limit in sorted(limits.items())]


def _input(graph: Graph, facts: Sequence[PackageFact], node: Node, at: int) -> InputOf:
    name = node.inputs[at]
    file = next(file for file in node.package.inputs() if file.name == name)
    maker = graph.producers.get(name)
    if maker is not None:
        state = facts[maker].status
        words = {
            PackageStatus.SUCCESSFUL: "written",
            PackageStatus.CANCELED: "not written: its package was dropped",
            PackageStatus.FAILED: "not written: its package has failed",
        }.get(state, "not written yet")
        return InputOf(name, graph.nodes[maker], "", words)
    if file.acquisition is Acquisition.SELF:
        return InputOf(name, None, "", "fetched by the package itself")
    fetched = " (fetched by the site before the job)" if file.acquisition is Acquisition.PREFETCH else ""
    return InputOf(name, None, file.dataset, f"in the dataset{fetched}")


def _tries(workflow: Workflow, nodes: Sequence[Node]) -> dict[str, list[Try]]:
    """Jobs by the path of the package that they had, oldest first. Four queries."""
    rows = WorkflowPackage.objects.filter(
        workflow=workflow, path__in=[node.path for node in nodes], task_id__isnull=False
    )
    path_of = {(row.task_id, row.boundary): row.path for row in rows}
    if not path_of:
        return {}
    groups = Q(pk__in=[])
    for task_id in {task for task, _ in path_of}:
        groups |= Q(task_id=task_id, boundary_id__in=[group for task, group in path_of if task == task_id])
    read = File.objects.filter(groups, type__in=INPUT_TYPES).values_list("id", "task_id", "boundary_id")
    package_of = {file: path_of[task, group] for file, task, group in read if (task, group) in path_of}
    uses = JobFile.objects.filter(file_id__in=list(package_of)).order_by("-job_id").values_list("job_id", "file_id")
    of_job: dict[int, str] = {}
    for job, file in uses:
        if file is not None and (job in of_job or len(of_job) < MOST_JOBS):
            of_job.setdefault(job, package_of[file])
    found: dict[str, list[Try]] = {}
    for row in sorted(_jobs(of_job), key=lambda job: int(job["id"])):
        found.setdefault(of_job[row["id"]], []).append(
            Try(
                row["id"],
                row["status"],
                row["site"] or "",
                row["worker_node"] or "",
                row["creation_time"],
                row["start_time"],
                row["end_time"],
                error_of(row),
            )
        )
    return found


def _jobs(ids: Collection[int]) -> list[dict[str, Any]]:
    return [row for model in (Job, JobArchive) for row in model._default_manager.filter(pk__in=list(ids)).values(*_JOB)]


def _made(workflow: Workflow, tries: Mapping[str, Sequence[Try]]) -> dict[tuple[int, str], dict[str, Any]]:
    """What the last job of each package wrote, by job and base name. One query."""
    last = [own[-1].id for own in tries.values()]
    written = JobFile.objects.filter(job_id__in=last, type="output").values(
        "job_id", "file_id", "lfn", "size", "status"
    )
    begin = len(names_of(workflow).prefix) + 1
    # The name of a file begins with that of its task's dataset, which ends with a number.
    return {(row["job_id"], row["lfn"][begin:].partition(".")[2]): {**row} for row in written}
