"""What refining takes and gives: plain values only. A move stores them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from tasks_app.params.schema import TaskParams
from tasks_app.refining.policy import Policy


class CannotRefine(Exception):
    """The task can never run as it was submitted, so it is broken. The message is a sentence for its owner."""


class NothingThere(CannotRefine):
    """Inputs do not exist or hold nothing; `names` are those of them."""

    def __init__(self, sentence: str, names: Sequence[str]) -> None:
        super().__init__(sentence)
        self.names = tuple(names)


class NotYet(Exception):
    """The task cannot be refined now, but later: it waits, with this sentence as the reason."""


@dataclass(frozen=True, slots=True)
class ParentView:
    """The task whose outputs this one reads. `status` None means that there is no such task."""

    task_id: int
    status: str | None
    output_datasets: frozenset[str] = frozenset()

    @property
    def progress(self) -> Literal["completed", "corrupted", "running"]:
        if self.status in ("done", "finished"):
            return "completed"
        return "corrupted" if self.status in ("broken", "aborted", "failed", None) else "running"


@dataclass(frozen=True, slots=True)
class Defaults:
    """What this installation fills in where a task says nothing."""

    vo: str = "local"
    trans_path: str = "run_command"
    core_count: int = 1
    ram_count: int = 2000
    ram_unit: str = "MBPerCore"
    analysis_priority: int = 1000
    production_priority: int = 100
    cpu_efficiency_percent: int = 90
    base_walltime_s: int = 600
    push_status_changes: bool = False


@dataclass(frozen=True, slots=True)
class DatasetSpec:
    """One dataset of the task. `master` and `provenance` are places in `Refined.datasets`, to be turned into ids.

    `attributes` is the comma text of the column. Master datasets have no master.
    """

    datasetname: str
    type: str
    streamname: str | None = None
    master: int | None = None
    provenance: int | None = None
    attributes: str = ""
    containername: str | None = None
    storagetoken: str | None = None
    destination: str | None = None


@dataclass(frozen=True, slots=True)
class OutputTemplate:
    """How the files of one output stream are named. `dataset` is a place in `Refined.datasets`.

    `serialnr` is the number that the next file gets.
    """

    dataset: int
    filenametemplate: str
    serialnr: int
    streamname: str
    outtype: str


@dataclass(frozen=True, slots=True)
class Refined:
    """A task ready to be stored.

    `task` has the lower-case column names of jedi_tasks as keys. `job_params_template` is the text for
    `placeholders.compile_template`. `params` is the dictionary to be stored back when the refiner completed it.
    `transient` names outputs of the parent that may be deleted when this task has read them.
    """

    task: Mapping[str, object]
    datasets: tuple[DatasetSpec, ...]
    templates: tuple[OutputTemplate, ...]
    job_params_template: str
    params: Mapping[str, object] | None = None
    transient: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """Everything that a refiner may read.

    `constituents` holds the datasets of each container that was looked up before (`containers_of` names them).
    `preprocessed` holds what the preprocessing step found, by name; None before it ran.
    """

    params: TaskParams
    task_id: int
    user: str
    now: datetime
    parent: ParentView | None = None
    defaults: Defaults = field(default_factory=Defaults)
    constituents: Mapping[str, Sequence[str]] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)
    preprocessed: Mapping[str, str] | None = None


class Refiner(Protocol):
    """A plug-in: turns a request into a refined task, or raises CannotRefine or NotYet."""

    def __call__(self, request: Request) -> Refined: ...
