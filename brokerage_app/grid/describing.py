"""From rows to values: what does not change from pass to pass. Queues with their pseudo queues, storage, nuclei, links."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from brokerage_app.formulas.switches import number, switches_of, whole
from brokerage_app.formulas.unified import parts_of
from brokerage_app.grid import closed_storage
from brokerage_app.models import Queue, QueueEndpoint, Site, StorageEndpoint
from brokerage_app.vocabulary.resource_types import ResourceType
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.snapshot import Endpoint, Link, Nucleus

LINK_AGE = timedelta(minutes=60)
"""Older values of the network are not used."""
NUCLEUS = "nucleus"
NO_CHANNEL = "no_channel"
"""Of a queue's description: why payloads there cannot take ranges of events."""
RUNS_PRODUCTION = frozenset({"production", "unified"})
_WRITES = ("write_lan", "write_wan")
_READS = ("read_lan", "read_wan")


@dataclass(frozen=True, slots=True)
class Storage:
    """Names of the endpoints of a queue in their order: the first is the default."""

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


def endpoint_of(row: StorageEndpoint) -> Endpoint:
    """A blacklist is the same as the states OFF of all activities of its kind, and so are outputs that could not be stored, and
    a folder that is away."""
    states = {str(activity): str(state) for activity, state in row.states.items()}
    shut = row.blacklisted_write or row.closed_until is not None
    off = (*(_READS if row.blacklisted_read or is_away(row) else ()), *(_WRITES if shut else ()))
    return Endpoint(
        row.name,
        row.site_name,
        row.type,
        row.is_tape,
        row.space_total_gb,
        row.space_free_gb,
        row.space_expired_gb or 0.0,
        row.space_min_free_gb or 0.0,
        row.space_unavailable_gb or 0.0,
        {**states, **dict.fromkeys(off, "OFF")},
        row.over_quota,
        "" if row.closed_until is None else _in_words(row, row.closed_until),
        is_away(row),
    )


def is_away(row: StorageEndpoint) -> bool:
    """Whether nothing is read there for a while, since its folder is away."""
    return row.closed_until is not None and row.closed_reads


def _in_words(row: StorageEndpoint, until: datetime) -> str:
    return closed_storage.in_words(row.name, row.closed_why, until, is_away=row.closed_reads)


def storages_of(relations: Iterable[QueueEndpoint], unreadable: frozenset[str]) -> dict[tuple[str, str], Storage]:
    """Endpoints by (queue, scope). Those that nobody may read are no inputs."""
    reads: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    writes: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    for row in relations:
        key = (row.queue_id, row.scope)
        if row.order_read is not None and row.endpoint_id not in unreadable:
            reads[key].append((row.order_read, row.endpoint_id))
        if row.order_write is not None:
            writes[key].append((row.order_write, row.endpoint_id))
    return {
        key: Storage(*(tuple(name for _, name in sorted(rows.get(key, ()))) for rows in (reads, writes)))
        for key in {**reads, **writes}
    }


def view_of(row: Queue, production: Storage | None = None, analysis: Storage | None = None) -> SiteView:
    """A queue as brokers see it, without its jobs. A queue without a list of storage uses the one that it names, if any."""
    switches = switches_of(row.catchall, row.params)
    named = (row.storage_id,) if row.storage_id else ()
    storage = production or Storage(named, named)
    own = analysis or Storage()
    slot = max(1, row.core_count) if "per_core_attr" in switches else 1
    return SiteView(
        name=row.name,
        status=row.status,
        status_reason=row.status_reason.strip(),
        cores=row.core_count,
        max_memory_mb=(row.max_memory_mb or 0) * slot,
        min_memory_mb=row.min_memory_mb * slot,
        max_walltime_s=row.max_walltime_s or 0,
        min_walltime_s=row.min_walltime_s,
        work_dir_mb=(row.work_dir_mb or 0) * slot,
        core_power=row.core_power,
        capability=row.capability,
        portion=whole(switches, "jobChunkSize", "job_chunk_size"),
        direct_io=row.direct_access_lan,
        direct_io_only=row.max_input_mb == -1,
        direct_io_wan=row.direct_access_wan,
        site=row.site_name,
        type="unified" if "grandly_unified" in switches else row.type,
        cloud=row.cloud.split(",")[0].strip(),
        grid_type=row.grid_type,
        pledged_cores=row.pledged_cores,
        transferring_limit=row.transferring_limit,
        max_disk_io_kbps=row.max_disk_io_kbps or 0.0,
        max_io_intensity=number(switches_of("", row.params), "max_io_intensity"),
        releases=tuple(str(name) for name in row.releases),
        policy=row.policy,
        connectivity=row.connectivity,
        job_seed=row.job_seed,
        no_channel=str(row.data.get(NO_CHANNEL) or ""),
        bare_nucleus=switches.get("bareNucleus", ""),
        secondary_nucleus=switches.get("secondaryNucleus", ""),
        only_local_data="use_only_local_data" in switches,
        jumbo="useJumboJobs" in switches,
        min_events_for_jumbo=whole(switches, "minEventsForJumbo"),
        switches=switches,
        inputs=storage.inputs,
        outputs=storage.outputs,
        analysis_inputs=own.inputs,
        analysis_outputs=own.outputs,
        space_gb=row.space_gb,
    )


def with_pseudo(views: Iterable[SiteView], types: Sequence[ResourceType]) -> dict[str, SiteView]:
    """Queues by name, each followed by its pseudo queues; one that has some is marked as their parent."""
    found: dict[str, SiteView] = {}
    for view in views:
        children = parts_of(view, types)
        found[view.name] = replace(view, is_parent=True) if children else view
        found.update({child.name: child for child in children})
    return found


def nuclei_of(
    sites: Iterable[Site], queues: Mapping[str, SiteView], endpoints: Mapping[str, Endpoint]
) -> dict[str, Nucleus]:
    """Nuclei are the sites of that role with queues that run production; `queues` as `with_pseudo` gives them.

    Satellites that keep whole chains of tasks (bareNucleus) are among them, and marked.
    """
    by_site: dict[str, list[SiteView]] = defaultdict(list)
    for view in queues.values():
        if view.type in RUNS_PRODUCTION:
            by_site[view.site].append(view)
    found = {}
    for site in sites:
        own = by_site.get(site.name)
        if not own:
            continue
        is_satellite, bare = site.role != NUCLEUS, next((view.bare_nucleus for view in own if view.bare_nucleus), "")
        if is_satellite and not bare:
            continue
        written = dict.fromkeys(name for view in own for name in view.outputs)
        found[site.name] = Nucleus(
            site.name,
            site.state,
            tuple(view.name for view in own),
            tuple(name for name in written if name in endpoints and endpoints[name].site == site.name),
            tuple(dict.fromkeys(name for view in own for name in view.inputs)),
            own[0].outputs[0] if own[0].outputs else "",
            bare,
            next((view.secondary_nucleus for view in own if view.secondary_nucleus), ""),
            is_satellite,
        )
    return found


QUEUED = "_queued"
_THROUGHPUT = {"dashb_mbps_1h": "mbps_1h", "dashb_mbps_1d": "mbps_1d", "dashb_mbps_1w": "mbps_1w"}


@dataclass(frozen=True, slots=True)
class Network:
    """Links by source and destination; files on their way to each site by activity; until when none of it is too old."""

    links: Mapping[str, Mapping[str, Link]]
    to_site: Mapping[str, Mapping[str, int]]
    good_until: datetime | None


def network_of(rows: Iterable[tuple[str, str, Mapping[str, float], datetime]]) -> Network:
    """From rows of source, destination, values by key, and the time of the oldest of these."""
    links: dict[str, dict[str, Link]] = defaultdict(dict)
    to_site: dict[str, dict[str, int]] = defaultdict(dict)
    oldest: datetime | None = None
    for source, destination, values, at in rows:
        queued: dict[str, int] = {}
        numbers: dict[str, Any] = {}
        for key, value in values.items():
            if key.endswith(QUEUED):
                activity = key.removesuffix(QUEUED)
                queued[activity] = int(value)
                total = to_site[destination]
                total[activity] = total.get(activity, 0) + int(value)
            elif key in _THROUGHPUT:
                numbers[_THROUGHPUT[key]] = value
            elif key == "AGIS_closeness":
                numbers["closeness"] = int(value)
        links[source][destination] = Link(queued=queued, **numbers)
        oldest = at if oldest is None or at < oldest else oldest
    return Network(dict(links), dict(to_site), oldest + LINK_AGE if oldest is not None else None)
