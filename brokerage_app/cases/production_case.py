"""The facts that the broker of production jobs has before the first queue, and the weight of a queue."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from brokerage_app.cases import weights
from brokerage_app.cases.case import GridCase
from brokerage_app.formulas import network, software
from brokerage_app.formulas.hardware import platform_preference
from brokerage_app.formulas.locality import NOTHING, Here, input_in_words, reach
from brokerage_app.formulas.queue_room import queue_cap
from brokerage_app.policy.configuration import Configuration
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.snapshot import NO_LINK, Grid, Link

COMPONENT: Final = "jobbroker"
OUTPUT: Final = "Production Output"
EXPRESS: Final = "Express"
"""Activities under which transfers of outputs wait."""
NOBODY: Final[Mapping[str, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ProductionSettings:
    """Parameters of the configuration, component jobbroker, of the same names in capitals; `queue_floor` is NQUEUELIMITSITE."""

    nw_active: bool = True
    nw_queue_importance: float = 0.5
    nw_threshold: float = 1.7
    nw_weight_multiplier: float = 1.0
    nqueued_sat_cap: int = 150
    nqueued_nuc_cap_for_jobs: int = 10_000
    io_intensity_cutoff: float = 200.0
    size_cutoff_to_move_input: float = 10.0
    num_cutoff_to_move_input: int = 100
    max_diskio_default: float | None = None
    storage_min_free_size: float = 200.0
    max_prio_to_bootstrap: int = 150
    max_missing_input_files: int = 10
    min_input_completeness: float = 90.0
    queue_floor: int = 20
    min_weight: float = 0.0
    work_shortage: bool = False

    @classmethod
    def from_configuration(
        cls, configuration: Configuration, *, vo: str = "", label: str = "", share: str = ""
    ) -> ProductionSettings:
        """The values for tasks of a VO, a label and a share."""
        plain: dict[str, Any] = {
            one.name: configuration.get(COMPONENT, one.name.upper(), vo=vo)
            for one in fields(cls)
            if one.name not in _OTHERS
        }
        return cls(
            **plain,
            queue_floor=configuration.get(COMPONENT, "NQUEUELIMITSITE", share, vo=vo),
            min_weight=configuration.get(COMPONENT, "MIN_WEIGHT", label, share, vo=vo),
            work_shortage=configuration.get("core", "WORK_SHORTAGE", vo=vo),
        )


_OTHERS: Final = ("queue_floor", "min_weight", "work_shortage")


class Weighed(NamedTuple):
    """One queue's numbers.

    running    by which it is weighed, see `weights.running_number`
    queued     activated, starting and, unless the input is there, assigned jobs
    defined    jobs that are not activated yet
    cap        so many jobs may be queued
    here       input that is there; `is_local`: all of it
    network    weight of the link to the nucleus; None where it is not asked
    factors    (name, value) pairs; their product is the weight
    """

    running: int
    queued: int
    defined: int
    cap: int
    here: Here
    is_local: bool
    network: float | None
    factors: tuple[tuple[str, float], ...]
    weight: float


class ProductionCase(GridCase):
    """One decision on production jobs.

    activity           under which files wait on links
    queued_to_nucleus  files that wait for the nucleus from everywhere
    nucleus_down       name of the nucleus's default output endpoint while it cannot be written from outside; else ""
    nucleus_factor     by how much its queues are preferred
    stays_in_chain     the task is of a chain that stays at its nucleus
    reach              where the datasets are complete; `unsent`: the first that no storage can send
    """

    __slots__ = (
        "_links",
        "_weighed",
        "activity",
        "locked",
        "made",
        "nucleus_down",
        "nucleus_factor",
        "queued_to_nucleus",
        "reach",
        "settings",
        "stays_in_chain",
        "unsent",
    )

    def __init__(
        self,
        needs: TaskNeeds,
        grid: Grid,
        settings: ProductionSettings,
        *,
        is_single: bool = False,
        is_bound: bool = False,
        made: Mapping[str, int] = NOBODY,
        locked: Collection[str] = (),
    ) -> None:
        limit = settings.max_diskio_default
        super().__init__(
            needs,
            grid,
            is_single=is_single,
            is_bound=is_bound,
            min_free_gb=settings.storage_min_free_size,
            disk_io_limit=math.inf if limit is None else limit,
            platform=software.needs_of_production(
                needs.trans_home, needs.architecture, container=needs.container, only_tags=needs.container_tags_only
            ),
        )
        self.settings, self.made, self.locked = settings, made, frozenset(locked)
        self.activity = EXPRESS if self.is_express else OUTPUT
        if needs.cores == 0 and (needs.priority >= weights.URGENT_AT_NUCLEUS or needs.scouting):
            self.several = True
        down = needs.nucleus in self.nuclei_down
        self.nucleus_down = grid.nuclei[needs.nucleus].default_output if down else ""
        self.queued_to_nucleus = grid.to_nucleus.get(needs.nucleus, {}).get(self.activity, 0)
        nucleus = grid.nuclei.get(needs.nucleus)
        self.stays_in_chain = bool(needs.full_chain and nucleus is not None and nucleus.bare)
        self.nucleus_factor = weights.nucleus_factor(
            needs.t1_weight,
            needs.io_intensity,
            needs.priority,
            scouting=needs.scouting,
            event_service=needs.event_service,
            bound=self.is_bound,
        )
        self.reach = reach(
            self.inputs,
            grid.endpoints.get,
            most_missing=settings.max_missing_input_files,
            least_percent=settings.min_input_completeness,
        )
        self.unsent = next((one for one in self.reach if one.complete and not one.sending), None)
        self._links = _links_to(needs.nucleus, grid)
        self._weighed: dict[str, Weighed] = {}

    def link(self, site: SiteView) -> Link:
        """The network from the storage of a queue to the nucleus; nothing is known of it within the nucleus."""
        return self._links.get(self.storage(site).site, NO_LINK)

    def weighed(self, site: SiteView) -> Weighed:
        """The numbers of a queue, worked out when they are asked for the first time."""
        found = self._weighed.get(site.name)
        if found is None:
            found = self._weighed[site.name] = self._weigh(site)
        return found

    def _weigh(self, site: SiteView) -> Weighed:
        settings, counts = self.settings, self.counts(site)
        inputs, here, is_local, missing = self.inputs, NOTHING, True, 0
        if inputs.files:
            here = inputs.at(self.storage(site).inputs)
            missing = inputs.files - here.disk_files
            is_local = missing <= 0 and here.disk_mb >= inputs.size_mb
        slots = site.slots_for(self.share, self.type_at(site)) if site.slots else None
        running = weights.running_number(
            counts.running, batch_jobs=site.batch_jobs, slots=slots, starting=counts.starting, cores=site.cores
        )
        defined = counts.defined + self.made.get(site.queue, 0)
        queued = counts.activated + counts.starting
        if not is_local:
            queued += counts.assigned
        factors = [("running + 1", running + 1.0), ("1 / (queued + 10)", 1 / (queued + defined + weights.SPARE))]
        if not is_local:
            factors.append(("1 / many assigned", 1 / weights.many_assigned(counts.assigned, counts.activated)))
        if inputs.size_mb > 0:
            name = input_in_words(inputs.datasets, here)
            factors.append((name, weights.input_factor(here.disk_mb, inputs.size_mb, max(missing, 0))))
        if self.sharing is not None and self.sharing.has(site):
            factors.append(("queue of the nucleus", self.nucleus_factor))
        link = self.network_weight(site)
        if link is not None:
            factors.append(("network", link))
        if self.platform.platform.preferred_level:
            hardware = self.software(site).hardware
            preference = platform_preference(self.platform.platform.preferred_level, hardware.cpu_levels)
            factors.append(("preferred CPU", preference))
        return Weighed(
            running,
            queued,
            defined,
            queue_cap(running, settings.queue_floor),
            here,
            is_local,
            link,
            tuple(factors),
            math.prod(value for _, value in factors),
        )

    def network_weight(self, site: SiteView) -> float | None:
        """The weight of the network to the nucleus; None where outputs are not gathered, or where it is switched off."""
        nucleus, settings = self.needs.nucleus, self.settings
        if not nucleus or not settings.nw_active:
            return None
        source = self.storage(site).site
        if source == nucleus:
            return network.SAME_STORAGE.total
        link = self._links.get(source, NO_LINK)
        return network.network_weight(
            queued_files=link.queued.get(self.activity, 0),
            cap=settings.nqueued_sat_cap,
            closeness=link.closeness,
            mbps=network.most_recent(link.mbps_1h, link.mbps_1d, link.mbps_1w),
            importance=settings.nw_queue_importance,
        ).total

    def type_at(self, site: SiteView) -> str | None:
        """The resource type of the jobs at a queue: that of the pseudo queue, else the task's."""
        if site.parent:
            return site.name[len(site.parent) + 1 :]
        return self.needs.resource_type or None


def _links_to(nucleus: str, grid: Grid) -> dict[str, Link]:
    """Links to a nucleus from other places."""
    known = grid.derived.get(("links", nucleus))
    if known is None or known[0] is not grid.links:
        found = ((place, links.get(nucleus)) for place, links in grid.links.items() if place != nucleus)
        known = (grid.links, {place: link for place, link in found if link is not None})
        grid.derived[("links", nucleus)] = known
    links_to: dict[str, Link] = known[1]
    return links_to
