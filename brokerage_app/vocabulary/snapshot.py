"""What the grid offers at one moment, as values: queues, storage, nuclei, links.

A snapshot is loaded once for a pass of an agent and is never changed: jobs that the pass makes are counted on a copy of
the one queue (`SiteView.with_jobs`). Names of JSON keys and units of the source are in the JEDI brokerage documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from brokerage_app.vocabulary.gpus import GpuRow
from brokerage_app.vocabulary.resource_types import DEFAULT_TABLE, ResourceType

ONLINE: Final = "online"
STANDBY: Final = "standby"
OFFLINE: Final = "offline"
TEST: Final = "test"
BROKEROFF: Final = "brokeroff"
PAUSED: Final = "paused"

SILENT_AFTER: Final = timedelta(minutes=5)
"""When no pilot has asked for a job for so long, pilots do not ask now: those that are free ask several times a minute."""

CUT_TO_SIZE: Final = "ucore"
"""The capability of queues that cut their slots to the size of each job."""

DOWN: Final = frozenset({"OFF", "TEST"})
BLOCKED: Final = -1
"""Closeness of a link that is not to be used."""


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
    tier: str = ""
    grid_type: str = "GRID"
    max_input_mb: int = 0
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
    workflow: str = ""
    bare_nucleus: str = ""
    secondary_nucleus: str = ""
    only_local_data: bool = False
    jumbo: bool = False
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


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A storage endpoint. Space in GB, None where it is not known.

    states: ON, OFF, TEST by activity (read_lan, write_lan, read_wan, write_wan, delete); a missing one is usable
    """

    name: str
    site: str = ""
    type: str = "DATADISK"
    is_tape: bool = False
    space_total_gb: float | None = None
    space_free_gb: float | None = None
    space_expired_gb: float = 0.0
    space_min_free_gb: float = 0.0
    space_unavailable_gb: float = 0.0
    states: Mapping[str, str] = field(default_factory=dict)
    over_quota: bool = False

    @property
    def usable_gb(self) -> float | None:
        """free + expired - what must stay free - what cannot be used; None when the free space is not known."""
        if self.space_free_gb is None:
            return None
        return self.space_free_gb + self.space_expired_gb - self.space_min_free_gb - self.space_unavailable_gb

    def is_up(self, activity: str) -> bool:
        return self.states.get(activity) not in DOWN


@dataclass(frozen=True, slots=True)
class Nucleus:
    """A site at which outputs are gathered.

    queues            names of its queues, pseudo queues included
    outputs, inputs   names of its endpoints; `outputs` are local ones
    default_output    where its first queue writes
    bare              "only" or "allow" when whole chains of tasks may stay there
    secondary         the nucleus to which outputs of whole chains go
    is_satellite      it gathers outputs of whole chains only
    """

    name: str
    state: str = "ACTIVE"
    queues: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    default_output: str = ""
    bare: str = ""
    secondary: str = ""
    is_satellite: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """The network from one site to another. Throughput in MB/s: the mean of the last hour, day, week; None is not measured.

    closeness   0 (best) to 11, -1 is blocked, None is not known
    queued      files that wait for transfer, by activity
    """

    closeness: int | None = None
    queued: Mapping[str, int] = field(default_factory=dict)
    mbps_1h: float | None = None
    mbps_1d: float | None = None
    mbps_1w: float | None = None


NO_LINK: Final = Link()


@dataclass(frozen=True, slots=True)
class Sharing:
    """The queues of a nucleus, and the storage that others may share with it."""

    queues: frozenset[str]
    readable: frozenset[str]

    def owns(self, site: SiteView) -> bool:
        return site.name in self.queues or site.parent in self.queues

    def has(self, site: SiteView) -> bool:
        """Whether it is one of the queues, or an online one that writes to the storage."""
        if site.name in self.queues or site.parent in self.queues:
            return True
        return site.status == ONLINE and bool(site.outputs) and site.outputs[0] in self.readable


@dataclass(frozen=True, slots=True)
class Grid:
    """All that brokers read of the grid at one moment.

    links      by source site, then by destination site
    to_nucleus files that wait for transfer to a site, from everywhere, by activity
    all_tags   the global list of software tags, by which logical names of containers are resolved
    types      the resource types by which queues that cut their slots to size have pseudo queues
    gone       queues that were deleted lately, with what is said of that
    derived    what was worked out of descriptions of queues and endpoints, kept for the next decision; copies that differ
               in counts of jobs go on using it
    """

    sites: Mapping[str, SiteView] = field(default_factory=dict)
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    nuclei: Mapping[str, Nucleus] = field(default_factory=dict)
    links: Mapping[str, Mapping[str, Link]] = field(default_factory=dict)
    to_nucleus: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    all_tags: tuple[Any, ...] = ()
    taken_at: datetime = datetime(2000, 1, 1, tzinfo=UTC)
    types: tuple[ResourceType, ...] = DEFAULT_TABLE
    gone: Mapping[str, str] = field(default_factory=dict)
    derived: dict[Any, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def queues(self) -> dict[str, SiteView]:
        """The queues as pilots know them, without pseudo queues: for whoever asks nothing of resource types."""
        return {name: site for name, site in self.sites.items() if not site.parent}

    def link(self, source: str, destination: str) -> Link:
        return self.links.get(source, {}).get(destination, NO_LINK)

    def storage_site(self, site: SiteView) -> str:
        """The site of the endpoint to which a queue writes; its own where it has none."""
        endpoint = self.endpoints.get(site.outputs[0]) if site.outputs else None
        return (endpoint.site if endpoint is not None else "") or site.site

    def with_jobs(
        self, name: str, count: int, *, share: str = "", resource_type: str = "", activated: bool = True, user: str = ""
    ) -> Grid:
        """The same grid with so many more jobs at a queue. The pseudo queues of one parent have its counts, so all change.

        Raises KeyError for a queue that is not there.
        """
        sites = dict(self.sites)
        for one in self._one_queue(sites[name].queue):
            sites[one] = sites[one].with_jobs(
                count, share=share, resource_type=resource_type, activated=activated, user=user
            )
        return replace(self, sites=sites).deriving_from(self)

    def deriving_from(self, other: Grid) -> Grid:
        """This grid with what was worked out for another of the same queues, endpoints and nuclei."""
        object.__setattr__(self, "derived", other.derived)
        return self

    def _one_queue(self, queue: str) -> list[str]:
        """Names of the views that show one queue's jobs."""
        known: dict[str, list[str]] | None = self.derived.get("queues")
        if known is None:
            known = {}
            for site in self.sites.values():
                known.setdefault(site.queue, []).append(site.name)
            self.derived["queues"] = known
        return known[queue]

    def nucleus_sharing(self, nucleus: str) -> Sharing:
        """The queues of a nucleus, worked out once; none of one that is not known."""
        known: dict[str, Sharing] = self.derived.setdefault("sharing", {})
        if nucleus not in known:
            queues = self.nuclei[nucleus].queues if nucleus in self.nuclei else ()
            first = next((self.sites[queue] for queue in queues if queue in self.sites), None)
            known[nucleus] = Sharing(frozenset(queues), frozenset(first.inputs if first is not None else ()))
        return known[nucleus]
