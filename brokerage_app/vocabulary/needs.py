"""What a task needs of a site, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from brokerage_app.vocabulary.site_view import SiteView

EXPRESS_PRIORITY: Final = 1000


@dataclass(frozen=True, slots=True)
class Replica:
    """The replica of a dataset at an endpoint. `complete` comes from data management; the numbers may differ slightly."""

    files: int
    size_mb: float
    complete: bool = True
    is_tape: bool = False


@dataclass(frozen=True, slots=True)
class InputData:
    """One input dataset with its replicas by endpoint.

    distributed   its files lie at several sites by intention: each site is used for what it has
    is_primary    the dataset by which the work is cut
    """

    name: str
    files: int = 0
    size_mb: float = 0.0
    is_primary: bool = False
    distributed: bool = False
    replicas: Mapping[str, Replica] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskNeeds:
    """The requirements of one job of a task. Zero means "nothing is asked" wherever it is the default.

    An atom is the smallest piece of input that a job can take; the brokers ask for the largest atom of the work at hand.

    cores            per job; 0 is any number, None is not stated
    max_cores        most cores that a slot may have; 0 is any
    memory_mb        of the job, or of each core when `memory_per_core`; then `base_memory_mb` is added once a job
    memory_raised    whether that is the memory of files whose jobs had too little, and not what the task states
    walltime_s       expected walltime wherever the job runs; used when `cpu_hs06s` is not known
    walltime_s_per_mb  the same for each MB of input, for tasks that state no CPU time
    walltime_known   False for tasks that say nothing of their walltime
    cpu_hs06s        CPU time of the atom in HS06 seconds, scaled to each site by its cores and core power
    least_cpu_hs06s  CPU time of the smallest part of it that a job may take; 0 where it cannot be divided
    disk_mb          scratch space of one job: work, output, and input unless it is read directly; used by the generic broker
    files_a_job, events_a_job
                     as the task fixes them (nFilesPerJob; nEventsPerJob where the atom is that); 0 where it does not
    job_size_mb      size that jobs are to have altogether (nGBPerJob); asked by the broker of analysis
    atom_mb, file_mb, atom_events
                     size of the atom as it is read, and of its largest file; `effective_mb` is the part of the atom that is
                     processed (1 at least)
    out_disk, out_disk_unit, work_disk, work_disk_unit
                     as the task states them: per MB of input, or per event where the unit ends in PerEvent
    label            prodSourceLabel; `test` opens sites in status test
    included_sites   names or patterns with `*` and `?`; empty is every site
    excluded_sites   the same, wins over `included_sites`
    preassigned_site the one site to which this work is bound; its status is then asked less
    listed_sites     the sites that the task names when they are several: they are asked less, and none other is asked
    share, work_queue  names; "" is none. `resource_queue`: the work queue keeps its own job counts
    merging          the work is to merge what other jobs have made; `merges_output`: it will have to be merged
    jumbo            the jobs take ranges of events of the whole task, of which `ready_events` wait
    scouting         the work is of the task's first jobs, or the task is not measured yet
    architecture     the text in which the task asks for platform, CPU and GPU
    trans_home, trans_uses, container, container_tags_only
                     software: transformation home, release, container image
    io_intensity     kB/s per core; None is not known
    disk_io_kbps     kB/s of a job
    direct_io        0 no, 1 where the site can, 2 nowhere else (splitRule IL); `local_io`: never
    direct_io_wan    also from storage of other sites, where the site can (splitRule IW)
    network, ip_stack  connectivity of worker nodes that is asked for: full, http, none; IPv4, IPv6
    nucleus          where outputs are gathered; "" is nowhere in particular
    t1_weight        splitRule TW; None is not set
    full_chain       "", only, require, capable
    frozen_s         seconds since the task was put aside; `unchanged_s`: since its primary dataset changed. None: never
    inputs           the input datasets and where they are; `incomplete_input`: files that are at no storage are not waited for
    outputs          names of the endpoints to which outputs go, where that is known before a site is chosen
    unplaced_outputs the endpoint to which other outputs go from queues without storage; "" when there are none
    jobs_wanted      how many jobs the work would make now, roughly
    used_sites       sites that have had jobs of the task
    avoided_sites    sites from which this work was taken back
    failing_builds   queues at which the task's sources cannot be built, and how many builds have failed there
    """

    cores: int | None = 1
    memory_mb: int = 0
    memory_per_core: bool = False
    base_memory_mb: int = 0
    memory_raised: bool = False
    walltime_s: int = 0
    cpu_hs06s: float = 0.0
    cpu_efficiency_percent: int = 90
    base_walltime_s: int = 0
    disk_mb: int = 0
    label: str = "user"
    included_sites: tuple[str, ...] = field(default=())
    excluded_sites: tuple[str, ...] = field(default=())
    preassigned_site: str = ""
    resource_type: str = ""
    priority: int = 0
    task_id: int = 0
    vo: str = ""
    cloud: str = ""
    share: str = ""
    work_queue: str = ""
    resource_queue: bool = False
    user: str = ""
    working_group: str = ""
    processing_type: str = ""
    listed_sites: tuple[str, ...] = ()
    merging: bool = False
    merges_output: bool = False
    scouting: bool = False
    max_cores: int = 0
    walltime_s_per_mb: float = 0.0
    walltime_known: bool = True
    least_cpu_hs06s: float = 0.0
    atom_mb: float = 0.0
    file_mb: float = 0.0
    effective_mb: float = 1.0
    atom_events: int = 0
    files_a_job: int = 0
    job_size_mb: int = 0
    events_a_job: int = 0
    out_disk: int = 0
    out_disk_unit: str = "kB"
    work_disk: int = 0
    work_disk_unit: str = "MB"
    architecture: str = ""
    trans_home: str = ""
    trans_uses: str = ""
    container: str = ""
    container_tags_only: bool = False
    io_intensity: float | None = None
    disk_io_kbps: float | None = None
    direct_io: int = 0
    local_io: bool = False
    direct_io_wan: bool = False
    network: str = ""
    ip_stack: str = ""
    nucleus: str = ""
    t1_weight: int | None = None
    full_chain: str = ""
    avoid_vp: bool = False
    prestaging: bool = False
    incomplete_input: bool = False
    event_service: bool = False
    jumbo: bool = False
    ready_events: int = 0
    frozen_s: float | None = None
    unchanged_s: float | None = None
    inputs: tuple[InputData, ...] = ()
    outputs: tuple[str, ...] = ()
    unplaced_outputs: str = ""
    jobs_wanted: int = 0
    used_sites: tuple[str, ...] = ()
    avoided_sites: tuple[str, ...] = ()
    failing_builds: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_express(self) -> bool:
        """Urgent work: it goes beyond the caps on running jobs, but only where the network is good."""
        return self.processing_type == "urgent" or self.priority >= EXPRESS_PRIORITY

    def cores_at(self, site: SiteView) -> int:
        """How many cores a job would use at a site: the site's slot, unless it cuts slots to the job's size."""
        if site.cores > 0 and not site.any_size:
            return site.cores
        return self.cores or 1

    def memory_at(self, site: SiteView) -> int:
        """Memory (MB) of the whole job at a site; 0 when the task asks for none."""
        if not self.memory_per_core:
            return self.memory_mb
        return self.memory_mb * self.cores_at(site) + self.base_memory_mb

    def reads_directly(self, site: SiteView) -> bool:
        """Whether a job reads its input from the storage: as the site has it, or where task and site both can."""
        if self.merging:
            return False
        return (
            site.direct_io_only
            or (site.direct_io and self.direct_io > 0 and not self.local_io)
            or self.reads_afar(site)
        )

    def reads_afar(self, site: SiteView) -> bool:
        """Whether a job at a site reads its input where it lies, at whatever site, so that nothing has to be moved."""
        return self.direct_io_wan and site.direct_io_wan and not (self.local_io or self.merging)

    def is_bound_to(self, site: SiteView) -> bool:
        return self.preassigned_site == site.name


def names(patterns: tuple[str, ...], site: str) -> bool:
    """Whether a site's name is among patterns (`*`, `?`, `[…]`; case matters)."""
    return any(fnmatchcase(site, pattern) for pattern in patterns)


def names_queue(patterns: tuple[str, ...], site: SiteView) -> bool:
    """Whether a queue's name is among patterns; a pseudo queue goes by that of its queue too."""
    return names(patterns, site.name) or bool(site.parent and names(patterns, site.parent))
