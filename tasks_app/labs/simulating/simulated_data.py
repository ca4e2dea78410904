"""Data in a simulation: where the inputs of tasks lie, at which nucleus their outputs are gathered, and the links between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Final, NamedTuple

from brokerage_app.policy.configuration import Configuration, Row
from brokerage_app.vocabulary.needs import InputData, Replica, TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.snapshot import Endpoint, Grid, Link, Nucleus
from tasks_app.domain.transfer_states import TransferKind
from tasks_app.labs.simulating.simulated_links import Links, SimFile
from tasks_app.labs.simulating.world import SimSite
from tasks_app.transfers.link_settings import COMPONENT, settings_of
from tasks_app.transfers.requesting import ACTIVITIES

NUCLEI: Final = 5
"""The largest sites gather the outputs of production."""
REPLICAS: Final = 2
FAILING: Final = 0.02
INPUT_MB: Final = (200.0, 1800.0)
OUTPUT_MB: Final = (100.0, 900.0)
"""Of a job: least and most, of which each task has its own."""
SLOWEST, FASTEST = 0.2, 1.8
"""Rates of links, as parts of the mean."""


@dataclass(frozen=True, slots=True)
class TaskData:
    """Endpoints that have the input of a task, the site that gathers its outputs ("": they stay), sizes for each job."""

    places: tuple[str, ...]
    nucleus: str
    input_mb: float
    output_mb: float


class LinkFigures(NamedTuple):
    """What went over a link. `failed` are attempts, `lost` files that were given up, `most_waiting` files at one time."""

    source: str
    destination: str
    mbps: float
    gb: float
    files: int
    failed: int
    lost: int
    most_waiting: int


class SimData:
    """The data of one run. `rate_mbps` is that of a link in the mean; `configured` says the rest of links and attempts."""

    def __init__(
        self,
        sites: tuple[SimSite, ...],
        rng: Random,
        rate_mbps: float,
        at: Callable[[float, Callable[[], None]], None],
        now: Callable[[], float],
        configured: Configuration | None = None,
    ) -> None:
        self.rng = rng
        self._sites = sites
        self._slots = [site.slots for site in sites]
        by_size = sorted(sites, key=lambda site: (-site.slots, site.name))
        self.nuclei = [site.name for site in by_size[:NUCLEI]]
        rates = [
            Row("jedi", COMPONENT, f"LINK_RATE_{disk(one.name)}:{disk(other.name)}", str(rate), "float")
            for one in sites
            for other in sites
            if one is not other
            for rate in [round(rate_mbps * rng.uniform(SLOWEST, FASTEST), 3)]
        ]
        rows = (*(configured.rows if configured else ()), *rates)
        self.links = Links(settings_of(Configuration(rows)), rng, at, now, FAILING)
        self._endpoints = {disk(site.name): Endpoint(disk(site.name), site.name) for site in sites}
        self._nuclei = {
            name: Nucleus(name, queues=(name,), outputs=(disk(name),), inputs=(disk(name),), default_output=disk(name))
            for name in self.nuclei
        }

    def of_task(self, label: str) -> TaskData:
        """A new task reads what lies at two sites, larger ones more often; outputs of production are gathered."""
        places = {disk(site.name) for site in self.rng.choices(self._sites, self._slots, k=REPLICAS)}
        nucleus = self.rng.choice(self.nuclei) if label == "managed" else ""
        return TaskData(tuple(sorted(places)), nucleus, self.rng.uniform(*INPUT_MB), self.rng.uniform(*OUTPUT_MB))

    def needs(self, needs: TaskNeeds, data: TaskData, files: int) -> TaskNeeds:
        """What the broker is asked for so many jobs, which read a file each."""
        there = Replica(files, files * data.input_mb)
        inputs = InputData(
            "input", files, files * data.input_mb, is_primary=True, replicas=dict.fromkeys(data.places, there)
        )
        return replace(needs, inputs=(inputs,), nucleus=data.nucleus)

    def view(self, view: SiteView) -> SiteView:
        """A site with its storage."""
        return view.changed(inputs=(disk(view.name),), outputs=(disk(view.name),))

    def grid(self, sites: Mapping[str, SiteView]) -> Grid:
        """The grid with its storages, nuclei, and the links to these as the network matrix would have them."""
        links: dict[str, dict[str, Link]] = {}
        flooded: dict[str, dict[str, int]] = {name: {} for name in self.nuclei}
        for site in sites:
            for nucleus in self.nuclei:
                if site != nucleus:
                    link = self.links.link(disk(site), disk(nucleus))
                    queued = {ACTIVITIES[kind]: files for kind, files in link.open.items() if files}
                    links.setdefault(site, {})[nucleus] = Link(queued=queued, mbps_1h=link.pace.mbps)
                    for activity, files in queued.items():
                        flooded[nucleus][activity] = flooded[nucleus].get(activity, 0) + files
        return Grid(sites, self._endpoints, self._nuclei, links, flooded)

    def is_at(self, data: TaskData, site: str) -> bool:
        return disk(site) in data.places

    def bring(self, data: TaskData, site: str, ended: Callable[[bool], None]) -> None:
        """Copy the input of a job to its site."""
        self.links.send(SimFile(TransferKind.COPY, data.places, disk(site), data.input_mb, ended))

    def gather(self, data: TaskData, site: str, ended: Callable[[bool], None]) -> None:
        """Bring what a job has made to the nucleus of its task."""
        self.links.send(SimFile(TransferKind.GATHER, (disk(site),), disk(data.nucleus), data.output_mb, ended))

    def figures(self) -> list[LinkFigures]:
        """What went over each link, those with most first."""
        found = [
            LinkFigures(
                source,
                destination,
                link.pace.mbps,
                round(link.moved_mb / 1000, 1),
                link.files,
                link.failed,
                link.lost,
                link.most_waiting,
            )
            for (source, destination), link in self.links.links.items()
            if link.files or link.failed or link.queued
        ]
        return sorted(found, key=lambda one: (-one.gb, one.source, one.destination))


def disk(site: str) -> str:
    return f"{site}_DISK"
