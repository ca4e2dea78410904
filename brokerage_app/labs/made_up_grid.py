"""Grids and tasks of any size that look like real ones, for measuring brokers and for trying them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol, TypeVar

from brokerage_app.vocabulary.gpus import GpuRow
from brokerage_app.vocabulary.needs import InputData, Replica, TaskNeeds
from brokerage_app.vocabulary.resource_types import DEFAULT_TABLE
from brokerage_app.vocabulary.site_view import CUT_TO_SIZE, Counts, SiteView
from brokerage_app.vocabulary.snapshot import Endpoint, Grid, Link, Nucleus

Thing = TypeVar("Thing")

SHARES: Final = (
    "MC 16 simul",
    "MC 16",
    "Derivations",
    "Reprocessing",
    "Heavy Ion",
    "Upgrade",
    "Group production",
    "Express",
    "User Analysis",
)
CLOUDS: Final = ("CA", "CERN", "DE", "ES", "FR", "IT", "ND", "NL", "UK", "US")
PLATFORMS: Final = tuple(
    f"{arch}-{system}-{compiler}-opt"
    for arch in ("x86_64", "aarch64")
    for system in ("centos7", "el9", "slc6")
    for compiler in ("gcc8", "gcc11", "gcc13")
)
RELEASES: Final = tuple(
    (project, f"{major}.0.{minor}")
    for project in ("Athena", "AthDerivation")
    for major in (21, 22, 24)
    for minor in range(12)
)
TYPES: Final = tuple(kind.name for kind in DEFAULT_TABLE)
QUEUES_OF_A_PLACE: Final = 2
PLACES_OF_A_NUCLEUS: Final = 5
HOUR_S: Final = 3600


class Chance(Protocol):
    """What is used of `random.Random`."""

    def random(self) -> float: ...

    def randrange(self, stop: int, /) -> int: ...

    def choice(self, seq: Sequence[Thing], /) -> Thing: ...

    def sample(self, population: Sequence[Thing], k: int) -> list[Thing]: ...


def synthetic_grid(queues: int, chance: Chance) -> Grid:
    """A grid with so many queues that can be asked; queues that are divided come on top of them.

    A fifth of the places are nuclei; the network from each place to each nucleus is known. The same chance gives the
    same grid.
    """
    places = [f"PLACE_{number:04d}" for number in range(max(1, queues // QUEUES_OF_A_PLACE))]
    nuclei = places[::PLACES_OF_A_NUCLEUS]
    published = [_software(chance) for _ in range(12)]
    sites: dict[str, SiteView] = {}
    number = 0
    while number < queues:
        place = places[number * len(places) // queues]
        whole = _queue(chance, f"{place}_Q{number:04d}", place, chance.choice(published))
        parts = _parts(whole) if number % 3 == 0 and queues - number >= len(TYPES) else []
        if parts:
            sites[whole.name] = replace(whole, is_parent=True)
        for site in parts or [whole]:
            sites[site.name] = site
        number += max(1, len(parts))
    endpoints = {name: one for place in places for name, one in _endpoints(chance, place).items()}
    return Grid(
        sites=sites,
        endpoints=endpoints,
        nuclei={name: _nucleus(name, sites) for name in nuclei},
        links={place: {to: _link(chance) for to in nuclei if to != place} for place in places},
        to_nucleus={name: {"Production Output": chance.randrange(5_000)} for name in nuclei},
    )


def synthetic_needs(chance: Chance, grid: Grid) -> TaskNeeds:
    """A production task that some of the queues can run."""
    several = chance.random() < 0.7
    share = chance.choice(SHARES[:6])
    places = sorted({site.site for site in grid.sites.values()})
    files = 1 + chance.randrange(2_000)
    project, release = chance.choice(RELEASES)
    events = 1_000
    return TaskNeeds(
        cores=8 if several else 1,
        memory_mb=1_000 + chance.randrange(1_200),
        memory_per_core=True,
        base_memory_mb=500,
        cpu_hs06s=float(events * (200 + chance.randrange(2_000)) * (4 if several else 1)),
        base_walltime_s=600,
        label="managed",
        vo="atlas",
        resource_type=TYPES[2 if several else 0],
        priority=100 + chance.randrange(800),
        share=share,
        task_id=1 + chance.randrange(10**6),
        processing_type=chance.choice(("simul", "evgen", "reco", "deriv")),
        atom_mb=2_000.0,
        effective_mb=2_000.0,
        atom_events=events,
        out_disk=300,
        work_disk=500,
        architecture=chance.choice(PLATFORMS[:9]),
        trans_home=f"{project}-{release}",
        trans_uses=f"Atlas-{release}",
        io_intensity=float(chance.randrange(400)),
        disk_io_kbps=float(chance.randrange(8_000)),
        nucleus=chance.choice(sorted(grid.nuclei)) if grid.nuclei else "",
        inputs=(_dataset(chance, places, files),),
        jobs_wanted=files,
    )


def _dataset(chance: Chance, places: Sequence[str], files: int) -> InputData:
    size = files * 900.0
    held = {}
    for number, place in enumerate(chance.sample(places, min(4, len(places)))):
        part = 1.0 if number == 0 else chance.random()
        held[f"{place}_DATADISK"] = Replica(int(files * part), size * part, complete=number == 0)
    return InputData("mc.input", files, size, is_primary=True, replicas=held)


def _queue(chance: Chance, name: str, place: str, published: Mapping[str, Any]) -> SiteView:
    several = chance.random() < 0.6
    cores = 8 if several else 1
    running = chance.randrange(3_000)
    jobs = {share: _counts(chance, running // len(SHARES), several=several) for share in SHARES}
    return SiteView(
        name=name,
        site=place,
        status=_mostly(chance, "online", "offline", "test", "brokeroff"),
        type="unified",
        cloud=chance.choice(CLOUDS),
        cores=cores,
        core_power=8 + 10 * chance.random(),
        max_memory_mb=cores * (2_000 + chance.randrange(2_000)),
        min_memory_mb=0 if chance.random() < 0.9 else 1_000 * cores,
        max_walltime_s=HOUR_S * (12 + chance.randrange(84)),
        min_walltime_s=0,
        work_dir_mb=cores * (8_000 + chance.randrange(12_000)),
        running=sum(one.running for by_type in jobs.values() for one in by_type.values()),
        queued=sum(
            one.activated + one.starting + one.assigned for by_type in jobs.values() for one in by_type.values()
        ),
        jobs=jobs,
        releases=("AUTO",) if chance.random() < 0.8 else ("ANY",),
        software=dict(published),
        gpus=(GpuRow("NVIDIA", "NVIDIA A100-SXM4-40GB", 40_960, "Ampere", "12.2", "575.57.08"),)
        if chance.random() < 0.1
        else (),
        cpu_levels=(("x86_64-v2", 30.0), ("x86_64-v3", 70.0)),
        pledged_cores=_mostly(chance, 5_000, -1),
        transferring_limit=2_000,
        policy=_mostly(
            chance,
            "",
            "",
            "",
            "type=evgen:100%,type=simul:100%,type=any:0%",
            "priority>500:0,type=simul:100%,type=any:0%",
        ),
        connectivity=_mostly(chance, "full#IPv4", "http#IPv4"),
        direct_io=chance.random() < 0.5,
        max_disk_io_kbps=800.0,
        disk_io_kbps=1_200 * chance.random(),
        inputs=(f"{place}_DATADISK", f"{place}_SCRATCHDISK"),
        outputs=(f"{place}_DATADISK",),
        last_start_s=float(chance.randrange(4 * HOUR_S)),
        pilots_3h=0 if chance.random() < 0.05 else chance.randrange(5_000) + 1,
        batch_jobs=chance.randrange(200),
        started_per_h=50 * chance.random(),
    )


def _mostly(chance: Chance, usual: Thing, *others: Thing) -> Thing:
    return usual if chance.random() < 0.85 else chance.choice(others)


def _counts(chance: Chance, running: int, *, several: bool) -> dict[str, Counts]:
    found = {}
    for kind in TYPES[2:] if several else TYPES[:2]:
        now = chance.randrange(running + 1)
        found[kind] = Counts(
            running=now,
            starting=chance.randrange(10),
            activated=chance.randrange(2 * now + 20),
            assigned=chance.randrange(40),
            defined=chance.randrange(5),
            transferring=chance.randrange(60),
            running_cores=now * (8 if several else 1),
        )
    return found


def _parts(whole: SiteView) -> list[SiteView]:
    """The pseudo queues of a queue that is divided by resource type."""
    found = []
    for kind in DEFAULT_TABLE:
        cores = 1 if kind.is_single_core else 8
        found.append(
            replace(
                whole,
                name=f"{whole.name}/{kind.name}",
                parent=whole.name,
                capability=CUT_TO_SIZE,
                cores=cores,
                min_memory_mb=cores * 2_000 + 1 if kind.is_high_memory else 0,
                max_memory_mb=cores * (4_000 if kind.is_high_memory else 2_000),
                work_dir_mb=cores * 12_000,
            )
        )
    return found


def _endpoints(chance: Chance, place: str) -> dict[str, Endpoint]:
    found = {}
    for kind in ("DATADISK", "SCRATCHDISK"):
        name = f"{place}_{kind}"
        states = (
            {} if chance.random() < 0.95 else {chance.choice(("read_lan", "write_lan", "read_wan", "write_wan")): "OFF"}
        )
        total = 1_000.0 + chance.randrange(9_000_000)
        found[name] = Endpoint(
            name, place, kind, space_total_gb=total, space_free_gb=total * chance.random() / 2, states=states
        )
    return found


def _nucleus(name: str, sites: Mapping[str, SiteView]) -> Nucleus:
    queues = tuple(site.name for site in sites.values() if site.site == name)
    disk = f"{name}_DATADISK"
    return Nucleus(name, queues=queues, outputs=(disk,), inputs=(disk, f"{name}_SCRATCHDISK"), default_output=disk)


def _link(chance: Chance) -> Link:
    queued = {"Production Output": chance.randrange(180), "Express": chance.randrange(20)}
    known = chance.random() < 0.7
    closeness = -1 if chance.random() < 0.01 else chance.randrange(12)
    return Link(closeness, queued, mbps_1h=300 * chance.random() if known else None)


def _software(chance: Chance) -> dict[str, Any]:
    """What a queue publishes: some have all platforms natively, the others run containers."""
    native = chance.random() < 0.3
    return {
        "cmtconfigs": list(PLATFORMS) if native else chance.sample(PLATFORMS, 6),
        "containers": [] if native else ["any", "/cvmfs"],
        "cvmfs": ["atlas", "nightlies"],
        "architectures": [{"type": "cpu", "arch": ["x86_64"], "vendor": ["intel", "amd"], "instr": ["avx2"]}],
        "tags": [
            {
                "cmtconfig": platform,
                "project": project,
                "release": release,
                "container_name": "",
                "sources": [],
                "tag": f"VO-{release}",
            }
            for platform in PLATFORMS[:3]
            for project, release in chance.sample(RELEASES, 20)
        ],
    }
