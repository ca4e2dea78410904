"""What the jobs of one task have in common, and the outputs that each of them writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from brokerage_app.vocabulary.resource_types import DEFAULT_TABLE, ResourceType
from brokerage_app.vocabulary.site_view import SiteView
from tasks_app.params.naming import NameTemplate

LOCAL: Final = "LOCAL_SE"
"""The site's own storage: outputs without a destination go there from queues without storage."""


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """What all jobs of a task share."""

    id: int
    name: str
    user: str
    vo: str | None
    label: str | None
    task_type: str | None
    working_group: str | None
    processing_type: str | None
    transformation: str | None
    priority: int
    req_id: int | None
    work_queue_id: int | None
    gshare: str | None
    resource_type: str | None
    release: str | None
    home_package: str | None
    cmt_config: str | None
    container: str | None
    source_url: str
    seed_offset: int
    transfer_type: str = "direct"
    """How inputs are read at sites that do not copy them."""
    cpu_limit_s_per_mb: int = 0
    base_walltime_s: int = 0
    special_handling: str = ""
    """Tags of the jobs, with commas; `sj` is a scout."""
    name_fields: tuple[int, ...] = ()
    """Fields of an input's name, counted from 1, that go into the names of outputs; of the dataset's name, or of the
    file's with `names_of_files`."""
    names_of_files: bool = False
    resource_types: tuple[ResourceType, ...] = DEFAULT_TABLE
    push: bool = False
    """Whether each change of a job is told (PC of the split rule)."""
    cloud: str | None = None
    """What its jobs give as their cloud (CV of the split rule)."""
    nucleus: str | None = None
    """Where outputs are gathered."""
    stays: bool = False
    """Whether outputs stay at the storage of the queue at which they are made (SO of the split rule)."""
    addresses: tuple[str, ...] = ()
    """The user's own list of inputs, which nobody stages: a record `000007:name` stands for the eighth."""


def job_walltime_s(configured_h: float | None, base_s: int | None, site: SiteView) -> int | None:
    """Longest run of a job of a kind that has a limit of its own (hours, besides the task's base), else the queue's.

    Never more than the queue allows; None is no limit.
    """
    most = site.max_walltime_s or None
    if configured_h is None:
        return most
    own = round(configured_h * 3600) + (base_s or 0)
    return min(own, most) if most else own


@dataclass(frozen=True, slots=True)
class OutputStream:
    """One output or log of each job: its stream (OUTPUT0), dataset and the maker of names. `endpoint`: where it is to go; ""
    without a destination."""

    template_id: int
    dataset_id: int
    dataset: str
    type: str
    stream: str
    scope: str
    endpoint: str
    names: NameTemplate
    part: int | None = None
    """Which of the outputs that the group of a job names itself, behind the name of the stream."""
