"""The jobs of one site as values, and their rows as text for COPY. Pure but for the identifiers of log files."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from brokerage_app.formulas.memory import COMPENSATION_PERCENT
from brokerage_app.formulas.resource_type_of import type_of_job
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from jedisite.database.sql import copy_text
from tasks_app.domain.jumbo_use import WAITING_QUEUE
from tasks_app.domain.priorities import GivenPriorities, SerialPriority
from tasks_app.domain.range_jobs import CLONE
from tasks_app.domain.source_labels import ANALYSIS_LABELS
from tasks_app.generation.input_copies import CopyPlace
from tasks_app.generation.rules.common_facts import LOCAL, OutputStream, TaskFacts
from tasks_app.generation.rules.consumers import Consumers
from tasks_app.generation.rules.input_names import input_names
from tasks_app.lifecycle.job_hooks import Slot
from tasks_app.models.dataset import LOG_TYPES
from tasks_app.params.buildstep import Library
from tasks_app.params.job_groups import JobGroup, JobGroups
from tasks_app.params.naming import middle_name
from tasks_app.params.placeholders import JobParamsTemplate
from tasks_app.splitting.chunk import Group
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
CONSUMER_COLUMNS = ("jobsetid", *("eventservice" if name == "jobsetid" else name for name in JOB_COLUMNS))
"""The same for jobs of event service: each has a jobset of its own, and all are of one kind."""
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
class Numbers:
    """What the database has given for a bunch: ids of jobs, and ids and serial numbers of outputs, one list a stream.

    `jobsets` are those of jobs of event service, each the first of its jobset.
    """

    jobs: Sequence[int]
    output_ids: Sequence[Sequence[int]]
    serials: Sequence[Sequence[int]]
    seeds: Sequence[int] = field(default=())
    jobsets: Sequence[int] = field(default=())


def _field(value: str | int | None) -> str:
    if value is None or value == "":
        return NULL
    return str(value) if isinstance(value, int) else copy_text(value)


@dataclass(frozen=True)
class SiteJobs:
    """The jobs of one task at one site, with all that their rows say but for the numbers that the database gives.

    task, needs     what they have in common, and what they want of the site
    groups          the input of each
    inputs          name and stream of the dataset of the master's files, then of each secondary in order
    streams         what each writes
    template        their command line
    library         what they read that a build job makes; until it is ready they wait for it
    priorities      of jobs whose number counts; without, all have the task's
    job_groups      what the groups of `loadXML` run and write, by the boundary of their files
    copies          where inputs are copied to that are not at the queue; they are assigned until then
    consumers       what jobs of event service are; None for all others
    elsewhere       slots where their input could be processed as well, the best first
    """

    task: TaskFacts
    needs: TaskNeeds
    site: SiteView
    limits: SplitLimits
    groups: Sequence[Group]
    inputs: Sequence[tuple[str, str]]
    streams: Sequence[OutputStream]
    template: JobParamsTemplate
    now: datetime
    library: Library | None = None
    priorities: SerialPriority | GivenPriorities | None = None
    job_groups: JobGroups | None = None
    copies: CopyPlace | None = None
    consumers: Consumers | None = None
    elsewhere: Sequence[Slot] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """What each line of `jobs` has."""
        return JOB_COLUMNS if self.consumers is None else CONSUMER_COLUMNS

    @cached_property
    def _moment(self) -> str:
        return self.now.isoformat()

    @cached_property
    def _dataset_middle(self) -> str:
        if not self.inputs or self.task.names_of_files:
            return ""
        return middle_name(self.inputs[0][0], self.task.name_fields)

    def memory_mb(self) -> int:
        """What the jobs ask for: nine tenths of the declared memory, since sites allow a little more than they state."""
        declared = self.needs.memory_at(self.site)
        return declared * COMPENSATION_PERCENT // 100 if declared else self.site.max_memory_mb

    @property
    def slot(self) -> Slot:
        """The queue of the jobs, and what they ask of it."""
        task, cores, memory_mb = self.task, self.needs.cores_at(self.site), self.memory_mb()
        log = next((stream for stream in self.streams if stream.type in LOG_TYPES), None)
        return Slot(
            self.site.queue,
            self._endpoint_of(log) if log is not None else None,
            cores,
            memory_mb or None,
            type_of_job(cores, memory_mb, task.resource_types) if self.needs.memory_mb else task.resource_type,
        )

    @property
    def slots(self) -> Sequence[Slot]:
        """Where the consumers of a jobset run, its own first; none of one that waits for jumbo jobs."""
        if self.consumers is None or self.status == "waiting":
            return ()
        return [self.slot, *(slot for slot in self.elsewhere if slot.queue != self.site.queue)][: self.consumers.sites]

    @property
    def status(self) -> str:
        """What the jobs are stored as."""
        if self.library is not None and not self.library.ready:
            return "defined"
        usual = "waiting" if self.site.name == WAITING_QUEUE else "activated"
        return "assigned" if self.copies is not None else usual

    def _constant_columns(self) -> str:
        task, slot, now = self.task, self.slot, self._moment
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
            slot.queue,
            task.cloud,
            task.nucleus,
            destination,
            task.req_id,
            task.req_id if self.consumers is None else self.consumers.kind,
            task.priority,
            task.work_queue_id,
            task.gshare,
            slot.resource_type,
            slot.cores,
            slot.memory_mb,
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

    def jobs(self, numbers: Numbers, failures: Mapping[int, int]) -> Iterator[str]:
        head, tail = copy_text(self.task.name), self._constant_columns()
        limits, per_mb = self.limits, self.task.cpu_limit_s_per_mb
        priority, serial = self.task.priority, self.priorities
        consumers = self.consumers
        more_attempts = consumers.more_attempts if consumers is not None else 0
        for index, (group, job_id) in enumerate(zip(self.groups, numbers.jobs, strict=True)):
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
            events = group.events or NULL if consumers is None or consumers.kind == CLONE else NULL
            jobset = f"{numbers.jobsets[index]}\t" if consumers is not None else ""
            yield (
                f"{jobset}{job_id}\t{head}.{job_id}\t{attempt}\t{attempt + more_attempts}\t{failed}\t{len(files)}\t"
                f"{group.input_bytes}\t{events}\t{disk_mb}\t{NULL if walltime is None else walltime}\t{cpu_s}\t{priority}\t"
                f"{tail}"
            )

    def log(self, numbers: Numbers, by: str) -> Iterator[str]:
        reason = copy_text(self.library.waits) if self.library is not None else ""
        tail = f"\t{self.status}\t{self._moment}\t{_field(self.site.queue)}\t{by}\t{reason}\n"
        return (f"{job_id}{tail}" for job_id in numbers.jobs)

    def middle(self, group: Group) -> str:
        """What `${MIDDLENAME}` becomes in a job."""
        if not self.task.names_of_files:
            return self._dataset_middle
        return middle_name(group.files[0].lfn, self.task.name_fields)

    def output_names(self, numbers: Numbers) -> list[list[str]]:
        """Names by stream, each in the order of the jobs."""
        middles = [self.middle(group) for group in self.groups] if self.task.name_fields else ()
        found = []
        for stream, serials in zip(self.streams, numbers.serials, strict=True):
            names = stream.names.names(serials, numbers.jobs, middles)
            if self.job_groups is not None and stream.part is not None:
                endings = (self._own(group).endings[stream.part] for group in self.groups)
                names = [f"{name}{ending}" for name, ending in zip(names, endings, strict=True)]
            found.append(names)
        return found

    def _own(self, group: Group) -> JobGroup:
        """What the group of `loadXML` says whose files a job has."""
        assert self.job_groups is not None
        return self.job_groups.groups[group.files[0].boundary or 0]

    def output_contents(self, names: Sequence[Sequence[str]], numbers: Numbers) -> Iterator[str]:
        for stream, ids, lfns in zip(self.streams, numbers.output_ids, names, strict=True):
            middle = f"\t{stream.dataset_id}\t{stream.type}\t"
            tail = f"\t{self.task.id}\tdefined\t{_field(stream.scope)}\t0\t1\t{self._moment}\t0\t0\n"
            for file_id, lfn, job_id in zip(ids, lfns, numbers.jobs, strict=True):
                yield f"{file_id}\t{copy_text(lfn)}{middle}{job_id}\t{job_id}{tail}"

    def output_files(self, names: Sequence[Sequence[str]], numbers: Numbers) -> Iterator[str]:
        for stream, ids, lfns in zip(self.streams, numbers.output_ids, names, strict=True):
            middle = f"\t{stream.dataset_id}\t{stream.type}\t"
            dataset, endpoint = _field(stream.dataset), _field(self._endpoint_of(stream))
            tail = f"\t{self.task.id}\tdefined\t{_field(stream.scope)}\t{dataset}\t{dataset}\t{endpoint}\t0\n"
            is_log = stream.type in LOG_TYPES
            for file_id, lfn, job_id in zip(ids, lfns, numbers.jobs, strict=True):
                guid = str(uuid.uuid4()) if is_log else NULL
                yield f"{file_id}\t{copy_text(lfn)}{middle}{job_id}\t{guid}{tail}"

    def _endpoint_of(self, stream: OutputStream) -> str:
        """Where files of an output go: to its own place; without one, or when they are to stay, where the queue writes first."""
        own = "" if self.task.stays else stream.endpoint
        return own or self.site.written(analysis=self.task.label in ANALYSIS_LABELS) or stream.endpoint or LOCAL

    def params(self, names: Sequence[Sequence[str]], numbers: Numbers) -> Iterator[str]:
        render = self.template.render
        made = [stream.stream for stream in self.streams]
        serials, inputs = _largest(numbers.serials), [stream for _, stream in self.inputs]
        for index, (group, job_id) in enumerate(zip(self.groups, numbers.jobs, strict=True)):
            streams = input_names(inputs, group)
            if self.task.addresses:
                first = inputs[0]
                streams[first] = [self.task.addresses[int(lfn.partition(":")[0])] for lfn in streams[first]]
            values = self._values(group, serials[index] if serials else 0, index, numbers)
            if self.job_groups is None:
                for stream, lfns in zip(made, names, strict=True):
                    streams[stream] = (lfns[index],)
            else:
                self._add_own(group, streams, values, [lfns[index] for lfns in names])
            text = render(streams, values)
            yield f"{job_id}\t{copy_text(text)}\n"

    def _add_own(
        self, group: Group, streams: dict[str, Sequence[str]], values: dict[str, str | int], names: Sequence[str]
    ) -> None:
        """The outputs of a job of a group, and the command of that."""
        own, outputs = self._own(group), {}
        for stream, lfn in zip(self.streams, names, strict=True):
            streams[stream.stream] = [*streams.get(stream.stream, ()), lfn]
            if stream.part is not None:
                outputs[own.outputs[stream.part]] = lfn
        values["XML_OUTMAP"] = str(outputs)
        values["XML_EXESTR"] = own.exec_text

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
