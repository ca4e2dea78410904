"""One queue as brokers see it: what it offers, and the jobs that it has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Final

from brokerage_app.vocabulary.gpus import GpuRow

ONLINE: Final = "online"
STANDBY: Final = "standby"
TEST: Final = "test"
BROKEROFF: Final = "brokeroff"
PAUSED: Final = "paused"
CUT_TO_SIZE: Final = "ucore"
"""The capability of queues that cut their slots to the size of each job."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Jobs by state. `starting` includes those that were sent to a pilot; `waiting`: pending, waiting, throttled, holding.

    `throttled` are those of the waiting that are held back for their user.
    """

    running: int = 0
    starting: int = 0
    activated: int = 0
    assigned: int = 0
    defined: int = 0
    transferring: int = 0
    waiting: int = 0
    running_cores: int = 0
    throttled: int = 0

    @property
    def queued(self) -> int:
        """defined + assigned + activated + starting."""
        return self.defined + self.assigned + self.activated + self.starting

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.running + other.running,
            self.starting + other.starting,
            self.activated + other.activated,
            self.assigned + other.assigned,
            self.defined + other.defined,
            self.transferring + other.transferring,
            self.waiting + other.waiting,
            self.running_cores + other.running_cores,
            self.throttled + other.throttled,
        )


NO_JOBS: Final = Counts()


@dataclass(frozen=True, slots=True)
class Slots:
    """The number of slots that a queue is told to have for a share and a resource type; None is any of them."""

    share: str | None
    resource_type: str | None
    slots: int


@dataclass(frozen=True, slots=True)
class UserJobs:
    """Jobs of one user at a queue, of one share."""

    queued: int = 0
    running: int = 0


@dataclass(frozen=True, slots=True)
class SiteView:
    """One queue. A limit of 0 is no limit; None is not known or not set.

    site            the place that the queue belongs to: key of nuclei and links
    parent          the queue whose slots a pseudo queue of one resource type is part of; `is_parent` marks such a queue
    type            production, analysis or unified (both)
    cores           of one job slot; 0 or -1 is any number; the largest number when capability is `ucore`
    *_memory_mb     for the whole slot
    work_dir_mb     scratch space of a slot
    running, queued, defined
                    counts of jobs of all shares; `queued` is assigned + activated + sent + starting
    jobs            counts by share and then by resource type; the share is "" for jobs without one
    resource_queue_jobs
                    those of them that belong to work queues of function Resource, by name of the work queue
    core_power      HS06 per core; 0 is not known
    space_gb        free space for outputs; None is not known
    status_reason   why the status is what it is, as whoever set it wrote
    status_until    when the status ends (UTC); None: when somebody changes it
    portion         jobs that the site takes at a time; 0 is any number
    direct_io       whether jobs may read their inputs over the local network; `direct_io_only`: they must
    direct_io_wan   whether they may read them from other sites
    jumbo           the queue is for jumbo jobs only, which begin where `min_events_for_jumbo` wait
    pledged_cores   -1 marks an opportunistic queue; above 0 its pledge
    releases        names of releases; ANY accepts all, AUTO uses what `software` publishes
    software        the published JSON on software and hardware of the queue, parsed by whoever asks
    gpus, cpu_levels
                    what monitoring saw on worker nodes: GPUs, and pairs of CPU level and percentage of the queue's cores
    policy          zero-share rules (`fairsharepolicy`)
    connectivity    `network#stack` of the worker nodes
    switches        further switches of the queue: catchall and params, values as text; a flag has ""
    inputs, outputs names of storage endpoints by order; the first is the default; `analysis_*` for analysis jobs where
                    they differ
    last_start_s    seconds since a job started there; None when that is not known
    pilots_3h       calls of pilots in the last 3 hours; None where it is not counted
    batch_jobs      workers that run or are submitted to the batch system
    silent_s        seconds for which jobs have waited there with no pilot asking for one, none running and no batch job on its
                    way; None where that is not so
    quiet_s         seconds for which no pilot has asked for a job there, whether any waits, while none runs and no harvester
                    reports on the queue; None where that is not so, or not known
    disk_io_kbps    mean over running jobs, per core
    transferring_to transferring jobs by nucleus
    started_per_h   jobs that got from queued to running in an hour
    users           jobs by share and then by user
    """

    name: str
    status: str = ONLINE
    cores: int = 0
    max_memory_mb: int = 0
    min_memory_mb: int = 0
    max_walltime_s: int = 0
    min_walltime_s: int = 0
    work_dir_mb: int = 0
    running: int = 0
    queued: int = 0
    defined: int = 0
    core_power: float = 0.0
    capability: str = ""
    portion: int = 0
    direct_io: bool = False
    direct_io_only: bool = False
    direct_io_wan: bool = False
    site: str = ""
    parent: str = ""
    is_parent: bool = False
    type: str = "unified"
    cloud: str = ""
    grid_type: str = "GRID"
    pledged_cores: int = 0
    transferring_limit: int = 0
    max_disk_io_kbps: float = 0.0
    max_io_intensity: float = 0.0
    releases: tuple[str, ...] = ()
    software: Any = None
    gpus: tuple[GpuRow, ...] = ()
    cpu_levels: tuple[tuple[str, float], ...] = ()
    policy: str = ""
    connectivity: str = ""
    job_seed: str = ""
    no_channel: str = ""
    bare_nucleus: str = ""
    secondary_nucleus: str = ""
    only_local_data: bool = False
    jumbo: bool = False
    min_events_for_jumbo: int = 0
    switches: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    analysis_inputs: tuple[str, ...] = ()
    analysis_outputs: tuple[str, ...] = ()
    jobs: Mapping[str, Mapping[str, Counts]] = field(default_factory=dict)
    slots: tuple[Slots, ...] = ()
    transferring_to: Mapping[str, int] = field(default_factory=dict)
    users: Mapping[str, Mapping[str, UserJobs]] = field(default_factory=dict)
    last_start_s: float | None = None
    pilots_3h: int | None = None
    silent_s: float | None = None
    quiet_s: float | None = None
    batch_jobs: int = 0
    disk_io_kbps: float | None = None
    started_per_h: float = 0.0
    space_gb: float | None = None
    resource_queue_jobs: Mapping[str, Mapping[str, Counts]] = field(default_factory=dict)
    status_reason: str = ""
    status_until: datetime | None = None

    @property
    def any_size(self) -> bool:
        """Whether jobs of any number of cores (up to `cores`, when that is set) are taken; pseudo queues have one size."""
        return self.cores <= 0 or (self.capability == CUT_TO_SIZE and not self.parent)

    @property
    def queue(self) -> str:
        """The queue as pilots and statistics know it: that of a pseudo queue is its parent."""
        return self.parent or self.name

    def written(self, *, analysis: bool) -> str:
        """The storage to which jobs write what has no destination of its own; "" where the queue has none."""
        own = (analysis and self.analysis_outputs) or self.outputs
        return own[0] if own else ""

    def counts(self, share: str | None = None, resource_type: str | None = None) -> Counts:
        """Jobs of a share and a resource type; None is all of them."""
        return _total(self.jobs.values() if share is None else (self.jobs.get(share, {}),), resource_type)

    def queue_counts(self, work_queue: str) -> Counts:
        """Jobs of a work queue of function Resource."""
        return _total((self.resource_queue_jobs.get(work_queue, {}),), None)

    def slots_for(self, share: str, resource_type: str | None = None) -> int | None:
        """How many slots the queue is told to have: the share's own, else those for any share; None when not told."""
        found = [row for row in self.slots if row.share == share] or [row for row in self.slots if row.share is None]
        if not found:
            return None
        if resource_type is None:
            return sum(row.slots for row in found)
        own = [row.slots for row in found if row.resource_type == resource_type]
        return next(iter(own or [row.slots for row in found if row.resource_type is None]), None)

    def changed(self, **values: Any) -> SiteView:
        """The same queue with other values. For this many fields it takes a tenth of the time of `dataclasses.replace`."""
        other = object.__new__(SiteView)
        for name in _SITE_FIELDS:
            object.__setattr__(other, name, values[name] if name in values else getattr(self, name))
        return other

    def with_jobs(
        self, count: int, *, share: str = "", resource_type: str = "", activated: bool = True, user: str = ""
    ) -> SiteView:
        """The same queue with so many more jobs, which wait for a pilot, or are defined unless `activated`.

        They count as jobs of the user if one is given.
        """
        more = Counts(activated=count) if activated else Counts(defined=count)
        by_type = dict(self.jobs.get(share) or {})
        by_type[resource_type] = by_type.get(resource_type, NO_JOBS) + more
        return self.changed(
            jobs={**self.jobs, share: by_type},
            queued=self.queued + more.activated,
            defined=self.defined + more.defined,
            users=self._users_with(count, share, user) if user else self.users,
        )

    def _users_with(self, count: int, share: str, user: str) -> Mapping[str, Mapping[str, UserJobs]]:
        of_share = self.users.get(share, {})
        had = of_share.get(user, UserJobs())
        return {**self.users, share: {**of_share, user: UserJobs(had.queued + count, had.running)}}


_SITE_FIELDS: Final = tuple(one.name for one in fields(SiteView))


def _total(groups: Iterable[Mapping[str, Counts]], resource_type: str | None) -> Counts:
    found = [
        one for by_type in groups for type_, one in by_type.items() if resource_type is None or type_ == resource_type
    ]
    if len(found) == 1:
        return found[0]
    # Written out: this is asked for each queue, and adding pairs of frozen values is four times slower.
    running = starting = activated = assigned = defined = transferring = waiting = cores = throttled = 0
    for one in found:
        running += one.running
        starting += one.starting
        activated += one.activated
        assigned += one.assigned
        defined += one.defined
        transferring += one.transferring
        waiting += one.waiting
        cores += one.running_cores
        throttled += one.throttled
    return Counts(running, starting, activated, assigned, defined, transferring, waiting, cores, throttled)
