"""What the grid offers at one moment, as values: queues, storage, nuclei, links.

A snapshot is loaded once for a pass of an agent and is never changed: jobs that the pass makes are counted on a copy of
the one queue (`SiteView.with_jobs`). Names of JSON keys and units of the source are in the JEDI brokerage documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from brokerage_app.vocabulary.resource_types import DEFAULT_TABLE, ResourceType
from brokerage_app.vocabulary.site_view import ONLINE, SiteView

SILENT_AFTER: Final = timedelta(minutes=5)
"""When no pilot has asked for a job for so long, pilots do not ask now: those that are free ask several times a minute."""


DOWN: Final = frozenset({"OFF", "TEST"})
BLOCKED: Final = -1
"""Closeness of a link that is not to be used."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A storage endpoint. Space in GB, None where it is not known.

    states: ON, OFF, TEST by activity (read_lan, write_lan, read_wan, write_wan, delete); a missing one is usable
    closed: why nothing is written there for a while, as a sentence; "" when it is
    is_away: nothing is read there either, since its folder is away
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
    closed: str = ""
    is_away: bool = False

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

    def why_away(self, names: Iterable[str]) -> str:
        """What is said of the first of these endpoints whose folder is away, to follow a sentence; "" when none is."""
        known = (self.endpoints[name] for name in names if name in self.endpoints)
        return next((f": {one.closed}" for one in known if one.is_away), "")

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
