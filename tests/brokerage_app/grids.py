"""Small grids for tables of brokers: one nucleus N1 and satellites, each with a disk of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from brokerage_app.vocabulary.needs import InputData, Replica
from brokerage_app.vocabulary.site_view import Counts, SiteView
from brokerage_app.vocabulary.snapshot import Endpoint, Grid, Link, Nucleus

SHARE = "MC"
TYPE = "MCORE"
NUCLEUS = "N1"
GB = 1024.0


def disk(place: str) -> str:
    return f"{place}_DATADISK"


def queue(name: str, place: str = "", counts: Counts | None = None, **more: Any) -> SiteView:
    """A queue of 8-core slots whose jobs are all of one share and one resource type; its place is its name without more."""
    place = place or f"S_{name}"
    values: dict[str, Any] = {"cores": 8, "core_power": 10.0, "inputs": (disk(place),), "outputs": (disk(place),)}
    values |= {"jobs": {SHARE: {TYPE: counts if counts is not None else Counts(running=100)}}, "pilots_3h": 10}
    return SiteView(name=name, site=place, **{**values, **more})


def endpoints_of(sites: Iterable[SiteView], **states: Mapping[str, str]) -> dict[str, Endpoint]:
    """The disks of these queues, with a lot of space; `states` by place."""
    places = {site.site for site in sites} | set(states)
    return {
        disk(place): Endpoint(
            disk(place), place, space_total_gb=10_000, space_free_gb=5_000, states=states.get(place, {})
        )
        for place in places
    }


def grid(
    *sites: SiteView,
    links: Mapping[str, Link] | None = None,
    to_nucleus: int = 0,
    nucleus: Nucleus | None = None,
    nuclei: Iterable[str] = (NUCLEUS,),
    **states: Mapping[str, str],
) -> Grid:
    """A grid with these queues. `links` to the nucleus by place; files that wait for it; states of endpoints by place."""
    found = {}
    for name in nuclei:
        own = tuple(site.name for site in sites if site.site == name)
        found[name] = Nucleus(name, queues=own, outputs=(disk(name),), inputs=(disk(name),), default_output=disk(name))
    if nucleus is not None:
        found[nucleus.name] = replace(nucleus, queues=found[nucleus.name].queues, default_output=disk(nucleus.name))
    return Grid(
        sites={site.name: site for site in sites},
        endpoints=endpoints_of(sites, **{**{name: {} for name in nuclei}, **states}),
        nuclei=found,
        links={place: {NUCLEUS: link} for place, link in (links or {}).items()},
        to_nucleus={NUCLEUS: {"Production Output": to_nucleus}},
    )


def dataset(size_gb: float, files: int, name: str = "in", **replicas: tuple[float, int] | None) -> InputData:
    """A dataset with replicas by place: (GB, files), or None for a complete one. `S__TAPE` is on tape at place S."""
    made = {}
    for place, part in replicas.items():
        where = place.removesuffix("__TAPE")
        on_tape = where != place
        size, number = (size_gb, files) if part is None else part
        made[f"{where}_DATATAPE" if on_tape else disk(where)] = Replica(
            number, size * GB, complete=part is None, is_tape=on_tape
        )
    return InputData(name, files, size_gb * GB, is_primary=True, replicas=made)
