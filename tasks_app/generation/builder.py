"""From groups of files to the rows of jobs, as text for COPY. Pure but for the log files' identifiers."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from brokerage_app.formulas.memory import COMPENSATION_PERCENT
from brokerage_app.formulas.resource_type_of import type_of_job
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.resource_types import DEFAULT_TABLE, ResourceType
from brokerage_app.vocabulary.site_view import SiteView
from jedisite.database.sql import copy_text
from tasks_app.domain.priorities import SerialPriority
from tasks_app.models.dataset import LOG_TYPES
from tasks_app.params.buildstep import Library
from tasks_app.params.naming import NameTemplate, middle_name
from tasks_app.params.placeholders import JobParamsTemplate
from tasks_app.splitting.chunk import Group, InputFile
from tasks_app.splitting.limits import MB, SplitLimits

NULL = "\\N"
LEAST_WALLTIME_S = 600
"""No payload is ended before, however little time was expected: start and end of a short job say nothing."""

JOB_COLUMNS = (
    "pandaid",
    "jobname",
    "attemptnr",
    "maxattempt",
    "failedattempt",
    "ninputdatafiles",
    "inputfilebytes",
    "nevents",
    "maxdiskcount",
    "maxwalltime",
    "maxcpucount",
    "currentpriority",
    # the same for all jobs of one task at one site
    "jeditaskid",
    "jobstatus",
    "creationtime",
    "modificationtime",
    "statechangetime",
    "transformation",
    "processingtype",
    "prodsourcelabel",
    "produsername",
    "workinggroup",
    "vo",
    "computingsite",
    "cloud",
    "nucleus",
    "destinationdblock",
    "reqid",
    "jobsetid",
    "assignedpriority",
    "workqueue_id",
    "gshare",
    "resource_type",
    "corecount",
    "minramcount",
    "noutputdatafiles",
    "atlasrelease",
    "homepackage",
    "cmtconfig",
    "container_name",
    "transfertype",
    "specialhandling",
    "fence",
)
OUTPUT_CONTENT_COLUMNS = (
    "fileid",
    "lfn",
    "datasetid",
    "type",
    "outpandaid",
    "pandaid",
    "jeditaskid",
    "status",
    "scope",
    "attemptnr",
    "keeptrack",
    "creationdate",
    "failedattempt",
    "ramcount",
)
OUTPUT_FILE_COLUMNS = (
    "fileid",
    "lfn",
    "datasetid",
    "type",
    "pandaid",
    "guid",
    "jeditaskid",
    "status",
    "scope",
    "dataset",
    "destinationdblock",
    "destinationse",
    "attemptnr",
)
PARAM_COLUMNS = ("pandaid", "jobparameters")
LOG_COLUMNS = ("pandaid", "jobstatus", "modificationtime", "computingsite", "actor", "reason")


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
    nucleus: str | None = None
    """Where outputs are gathered."""
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
    """One output or log of each job: its stream (OUTPUT0), dataset and the maker of names."""

    template_id: int
    dataset_id: int
    dataset: str
    type: str
    stream: str
    scope: str
    endpoint: str
    names: NameTemplate


@dataclass(frozen=True, slots=True)
class Numbers:
    """What the database has given for a bunch: ids of jobs, and ids and serial numbers of outputs, one list a stream."""

    jobs: Sequence[int]
    output_ids: Sequence[Sequence[int]]
    serials: Sequence[Sequence[int]]
    seeds: Sequence[int] = field(default=())


def _field(value: str | int | None) -> str:
    if value is None or value == "":
        return NULL
    return str(value) if isinstance(value, int) else copy_text(value)


class Builder:
    """Makes the rows of the jobs of one task at one site."""

    def __init__(
        self,
        task: TaskFacts,
        needs: TaskNeeds,
        site: SiteView,
        limits: SplitLimits,
        streams: Sequence[OutputStream],
        template: JobParamsTemplate,
        inputs: Sequence[tuple[str, str]],
        now: datetime,
        priorities: SerialPriority | None = None,
    ) -> None:
        """`inputs`: dataset name and stream of the master's files, then those of the secondaries in order.

        `priorities` are those of jobs whose number counts; without, all have the task's.
        """
        self.task, self.needs, self.site, self.limits = task, needs, site, limits
        self.streams, self.template, self.priorities = streams, template, priorities
        self.input_streams = [stream for _, stream in inputs]
        self.moment = now.isoformat()
        self._middle = middle_name(inputs[0][0], task.name_fields) if inputs and not task.names_of_files else ""
        self.library: Library | None = None
        self._tail = self._constant_columns()

    def memory_mb(self) -> int:
        """What the jobs ask for: nine tenths of the declared memory, since sites allow a little more than they state."""
        declared = self.needs.memory_at(self.site)
        return declared * COMPENSATION_PERCENT // 100 if declared else self.site.max_memory_mb

    def use_library(self, library: Library) -> None:
        """The jobs from now on read this library; until it is ready they wait for it."""
        self.library = library
        self._tail = self._constant_columns()

    @property
    def status(self) -> str:
        """What the jobs are stored as."""
        return "defined" if self.library is not None and not self.library.ready else "activated"

    def _constant_columns(self) -> str:
        task, site, now = self.task, self.site, self.moment
        cores, memory_mb = self.needs.cores_at(site), self.memory_mb()
        destination = next((s.dataset for s in self.streams if s.type in ("output", "trn_output")), None)
        values: list[str | int | None] = [
            task.id,
            self.status,
            now,
            now,
            now,
            task.transformation,
            task.processing_type,
            task.label,
            task.user,
            task.working_group,
            task.vo,
            site.queue,
            None,
            task.nucleus,
            destination,
            task.req_id,
            task.req_id,
            task.priority,
            task.work_queue_id,
            task.gshare,
            type_of_job(cores, memory_mb, task.resource_types) if self.needs.memory_mb else task.resource_type,
            cores,
            memory_mb or None,
            len(self.streams),
            task.release,
            task.home_package,
            task.cmt_config,
            task.container,
            task.transfer_type if self.limits.direct_io else None,
            task.special_handling,
            0,
        ]
        return "\t".join(map(_field, values)) + "\n"

    def max_walltime(self, group: Group) -> int | None:
        """Seconds after which the pilot ends the payload: what is expected of the job if its CPU time is known, and no
        more than task and queue allow."""
        most = self.limits.max_walltime_s or self.site.max_walltime_s or None
        if not self.limits.walltime_s_per_event or not group.events:
            return most
        expected = max(math.ceil(group.walltime_s), LEAST_WALLTIME_S)
        return min(expected, most) if most else expected

    def jobs(self, groups: Sequence[Group], numbers: Numbers, failures: Mapping[int, int]) -> Iterator[str]:
        head = copy_text(self.task.name)
        limits, per_mb = self.limits, self.task.cpu_limit_s_per_mb
        priority, serial = self.task.priority, self.priorities
        for index, (group, job_id) in enumerate(zip(groups, numbers.jobs, strict=True)):
            files = group.files
            attempt = 1 + (files[0].attempt if len(files) == 1 else max(f.attempt for f in files))
            failed = max((failures.get(f.file_id, 0) for f in files), default=0) if failures else 0
            copied = 0 if limits.direct_io else group.input_bytes
            disk_mb = (limits.work_bytes + copied + group.output_bytes) // MB + 1
            if self.site.work_dir_mb:
                disk_mb = min(disk_mb, self.site.work_dir_mb)
            walltime = self.max_walltime(group)
            cpu_s = per_mb * (group.input_bytes // MB + 1) if per_mb else NULL
            if serial is not None:
                priority = serial.at(index)
            yield (
                f"{job_id}\t{head}.{job_id}\t{attempt}\t{attempt}\t{failed}\t{len(files)}\t{group.input_bytes}\t"
                f"{group.events or NULL}\t{disk_mb}\t{NULL if walltime is None else walltime}\t{cpu_s}\t{priority}\t"
                f"{self._tail}"
            )

    def log(self, numbers: Numbers, by: str) -> Iterator[str]:
        reason = copy_text(self.library.waits) if self.library is not None else ""
        tail = f"\t{self.status}\t{self.moment}\t{_field(self.site.queue)}\t{by}\t{reason}\n"
        return (f"{job_id}{tail}" for job_id in numbers.jobs)

    def middle(self, group: Group) -> str:
        """What `${MIDDLENAME}` becomes in a job."""
        if not self.task.names_of_files:
            return self._middle
        return middle_name(group.files[0].lfn, self.task.name_fields)

    def output_names(self, groups: Sequence[Group], numbers: Numbers) -> list[list[str]]:
        """Names by stream, each in the order of the jobs."""
        middles = [self.middle(group) for group in groups] if self.task.name_fields else ()
        return [
            stream.names.names(serials, numbers.jobs, middles)
            for stream, serials in zip(self.streams, numbers.serials, strict=True)
        ]

    def output_contents(self, names: Sequence[Sequence[str]], numbers: Numbers) -> Iterator[str]:
        for stream, ids, lfns in zip(self.streams, numbers.output_ids, names, strict=True):
            middle = f"\t{stream.dataset_id}\t{stream.type}\t"
            tail = f"\t{self.task.id}\tdefined\t{_field(stream.scope)}\t0\t1\t{self.moment}\t0\t0\n"
            for file_id, lfn, job_id in zip(ids, lfns, numbers.jobs, strict=True):
                yield f"{file_id}\t{copy_text(lfn)}{middle}{job_id}\t{job_id}{tail}"

    def output_files(self, names: Sequence[Sequence[str]], numbers: Numbers) -> Iterator[str]:
        for stream, ids, lfns in zip(self.streams, numbers.output_ids, names, strict=True):
            middle = f"\t{stream.dataset_id}\t{stream.type}\t"
            dataset = _field(stream.dataset)
            tail = f"\t{self.task.id}\tdefined\t{_field(stream.scope)}\t{dataset}\t{dataset}\t{_field(stream.endpoint)}\t0\n"
            is_log = stream.type in LOG_TYPES
            for file_id, lfn, job_id in zip(ids, lfns, numbers.jobs, strict=True):
                guid = str(uuid.uuid4()) if is_log else NULL
                yield f"{file_id}\t{copy_text(lfn)}{middle}{job_id}\t{guid}{tail}"

    def params(self, groups: Sequence[Group], names: Sequence[Sequence[str]], numbers: Numbers) -> Iterator[str]:
        render = self.template.render
        made = [stream.stream for stream in self.streams]
        serials = _largest(numbers.serials)
        for index, (group, job_id) in enumerate(zip(groups, numbers.jobs, strict=True)):
            streams = _input_names(self.input_streams, group)
            if self.task.addresses:
                first = self.input_streams[0]
                streams[first] = [self.task.addresses[int(lfn.partition(":")[0])] for lfn in streams[first]]
            for stream, lfns in zip(made, names, strict=True):
                streams[stream] = (lfns[index],)
            text = render(streams, self._values(group, serials[index] if serials else 0, index, numbers))
            yield f"{job_id}\t{copy_text(text)}\n"

    def _values(self, group: Group, serial: int, index: int, numbers: Numbers) -> dict[str, str | int]:
        first = group.files[0]
        values: dict[str, str | int] = {
            "SN": serial,
            "JEDITASKID": self.task.id,
            "JOBSETID": self.task.id if self.task.req_id is None else self.task.req_id,
            "PANDAID": numbers.jobs[index],
            "MAXEVENTS": group.events or -1,
            "SKIPEVENTS": first.start_event or 0,
            "ATTEMPTNR": first.attempt + 1,
            "SURL": self.task.source_url,
            "MIDDLENAME": self.middle(group),
        }
        if self.library is not None:
            values["LIB"] = self.library.lfn
        if first.first_event is not None:
            values["FIRSTEVENT"] = first.first_event
        if numbers.seeds:
            values["RNDMSEED"] = numbers.seeds[index] + self.task.seed_offset
        return values


def _largest(serials: Sequence[Sequence[int]]) -> Sequence[int]:
    if not serials:
        return ()
    return serials[0] if len(serials) == 1 else [max(row) for row in zip(*serials, strict=True)]


def _input_names(streams: Sequence[str], group: Group) -> dict[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = {}
    for stream, files in zip(streams, (group.files, *group.secondaries), strict=True):
        names = _distinct(files)
        found[stream] = [*found[stream], *names] if stream in found else names
    return found


def _distinct(files: Sequence[InputFile]) -> Sequence[str]:
    """Names in order; several ranges of one file name it once."""
    if len(files) == 1:
        return (files[0].lfn,)
    if files and files[0].start_event is None:
        return [f.lfn for f in files]
    return list(dict.fromkeys(f.lfn for f in files))
