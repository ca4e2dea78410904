"""From the database to a snapshot of the grid: few statements, and what has not changed is not read again.

Descriptions, the network and what the watchdog of statistics finds out are kept in the process. Their tables have
triggers that give each part of the grid a new token with every change (`grid_versions`). A load asks for the tokens first,
and in the same statement for counts of jobs and for slots, which expire: these are read each time.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import psycopg
from django.db.models import OuterRef, Subquery

from brokerage_app.grid import describing
from brokerage_app.models import (
    GridVersion,
    Queue,
    QueueEndpoint,
    QueueStatusLog,
    ResourceType,
    Site,
    SoftwareTags,
    StorageEndpoint,
    WorkerNodeCpus,
    WorkerNodeGpus,
)
from brokerage_app.vocabulary.gpus import GpuRow
from brokerage_app.vocabulary.resource_types import ResourceType as Kind
from brokerage_app.vocabulary.site_view import Counts, SiteView, Slots, UserJobs
from brokerage_app.vocabulary.snapshot import Endpoint, Grid, Nucleus
from jedisite.database.sql import hot_cursor
from jedisite.models import AuditEntry

DELETED_LATELY, MOST_DELETED = timedelta(days=30), 1000
_COUNTS = """
SELECT '{of}', computingsite, {of}, resource_type, ARRAY[
       sum(njobs) FILTER (WHERE jobstatus = 'running'),
       sum(njobs) FILTER (WHERE jobstatus IN ('sent', 'starting')),
       sum(njobs) FILTER (WHERE jobstatus = 'activated'), sum(njobs) FILTER (WHERE jobstatus = 'assigned'),
       sum(njobs) FILTER (WHERE jobstatus = 'defined'), sum(njobs) FILTER (WHERE jobstatus = 'transferring'),
       sum(njobs) FILTER (WHERE jobstatus IN ('pending', 'waiting', 'throttled', 'holding')),
       sum(ncores) FILTER (WHERE jobstatus = 'running'), sum(njobs) FILTER (WHERE jobstatus = 'throttled'),
       sum(njobs) FILTER (WHERE jobstatus = 'pending')]
  FROM job_counts {where} GROUP BY 2, 3, 4
"""
_OF_RESOURCE_QUEUES = """JOIN jedi_work_queue w ON w.queue_id = workqueue_id AND w.queue_function = 'Resource'"""
# Tokens come with what is read each time: (kind, what of the kind, two more names, numbers).
_MOMENT = f"""
SELECT 'token', part, token::text, '', NULL::bigint[] FROM grid_versions
UNION ALL {_COUNTS.format(of="gshare", where="")}
UNION ALL {_COUNTS.format(of="queue_name", where=_OF_RESOURCE_QUEUES)}
UNION ALL
SELECT 'slots', pandaqueuename, gshare, resourcetype, ARRAY[id, numslots] FROM harvester_slots
 WHERE numslots >= 0 AND (expirationtime IS NULL OR expirationtime > %s)
"""  # noqa: S608 - constants of this module
_LINKS = """
SELECT src, dst, json_object_agg(key, value), min(ts) FROM network_matrix_kv WHERE ts > %s GROUP BY src, dst
"""
_ACTIVITY = """
SELECT computingsite, u.users, a.computingsite IS NOT NULL, a.laststart, a.started_per_h, a.disk_io_kbps, a.transferring_to::json,
       a.pilots_3h, a.batch_jobs, a.silent_since, a.quiet_since
  FROM queue_activity a
  FULL JOIN (SELECT computingsite, json_agg(json_build_array(gshare, produsername, nqueue, nrunning)) AS users FROM user_counts
              GROUP BY 1) u USING (computingsite)
"""


@dataclass(frozen=True, slots=True)
class _Static:
    sites: dict[str, SiteView]
    endpoints: dict[str, Endpoint]
    nuclei: dict[str, Nucleus]
    all_tags: tuple[Any, ...]
    gone: dict[str, str]
    first: Grid


@dataclass(frozen=True, slots=True)
class _Activity:
    queues: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    users: dict[str, dict[str, dict[str, UserJobs]]] = field(default_factory=dict)


_kept: dict[str, tuple[str, Any]] = {}
_guard = threading.Lock()


def load_grid(now: datetime) -> Grid:
    """The grid as it is now. `now` decides which slots are expired, which links are too old, and how long ago jobs started.

    A queue that cuts its slots to the size of jobs (capability ucore) is there under its own name, and once more for each
    resource type that fits, as `QUEUE/TYPE` with `parent=QUEUE`; then `is_parent` is set on it. All of them have the
    counts of the whole queue. Brokers that know no resource types ask `grid.queues()`, which has no pseudo queues; the
    others choose among pseudo queues and those queues that are no parents. A job is always stored with
    `computingsite = site.queue`: pilots ask for the parent.
    """
    with hot_cursor() as cursor:
        cursor.execute(_MOMENT, [now])
        moment = cursor.fetchall()
        tokens: dict[str, str] = {part: token for kind, part, token, *_ in moment if kind == "token"}
        static: _Static = _part(GridVersion.STATIC, tokens, lambda: _load_static(now))
        network: describing.Network = _part(GridVersion.LINKS, tokens, lambda: _load_network(cursor, now))
        if network.good_until is not None and network.good_until <= now:
            network = _load_network(cursor, now)
            _keep(GridVersion.LINKS, tokens, network)
        activity: _Activity = _part(GridVersion.ACTIVITY, tokens, lambda: _load_activity(cursor))
    dynamic = _dynamic(moment)
    grid = Grid(
        sites=_with_numbers(static.sites, dynamic, activity, now),
        endpoints=static.endpoints,
        nuclei=static.nuclei,
        links=network.links,
        to_nucleus=network.to_site,
        all_tags=static.all_tags,
        taken_at=now,
        types=static.first.types,
        gone=static.gone,
    )
    # What was worked out of descriptions goes with them.
    return grid.deriving_from(static.first)


def forget() -> None:
    """Read everything anew at the next load."""
    with _guard:
        _kept.clear()


def _part(part: str, tokens: Mapping[str, str], load: Any) -> Any:
    """What is kept of a part if its token is still the same. The token was read before the tables: at worst the next load
    reads them once more."""
    with _guard:
        kept = _kept.get(part)
    if kept is not None and kept[0] == tokens.get(part):
        return kept[1]
    loaded = load()
    _keep(part, tokens, loaded)
    return loaded


def _keep(part: str, tokens: Mapping[str, str], loaded: Any) -> None:
    if part in tokens:
        with _guard:
            _kept[part] = (tokens[part], loaded)


def resource_types() -> list[Kind]:
    """The table of resource types as values, in its order."""
    return [
        Kind(row.name, row.min_cores, row.max_cores, row.min_ram_per_core_mb, row.max_ram_per_core_mb)
        for row in ResourceType.objects.all()
    ]


def _load_static(now: datetime) -> _Static:
    stores = list(StorageEndpoint.objects.defer("data", "path"))
    endpoints = {row.name: describing.endpoint_of(row) for row in stores}
    unreadable = frozenset(row.name for row in stores if row.blacklisted_read or describing.is_away(row))
    storages = describing.storages_of(QueueEndpoint.objects.all(), unreadable)
    software = dict(SoftwareTags.objects.values_list("queue", "data"))
    gpus: dict[str, list[GpuRow]] = defaultdict(list)
    for name, vendor, model, vram, architecture, version, driver in WorkerNodeGpus.objects.order_by("id").values_list(
        "queue", "vendor", "model", "memory_mb", "architecture", "framework_version", "driver_version"
    ):
        gpus[name].append(GpuRow(vendor, model, vram, architecture, version or None, driver or None))
    cpus: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for name, level, percentage in WorkerNodeCpus.objects.order_by("level").values_list("queue", "level", "percentage"):
        cpus[name].append((level, percentage))
    views = []
    until = QueueStatusLog.objects.filter(queue=OuterRef("name"), ended_at=None).values("until")
    for row in Queue.objects.defer("data").annotate(until=Subquery(until)).order_by("name"):
        view = describing.view_of(row, storages.get((row.name, "default")), storages.get((row.name, "analysis")))
        views.append(
            replace(
                view,
                status_until=row.until,
                software=software.get(row.name),
                gpus=tuple(gpus.get(row.name, ())),
                cpu_levels=tuple(cpus.get(row.name, ())),
            )
        )
    types = tuple(resource_types())
    sites = describing.with_pseudo(views, types)
    everywhere = software.get(SoftwareTags.ALL) or {}
    tags = everywhere.get("tags", ()) if isinstance(everywhere, dict) else everywhere
    nuclei = describing.nuclei_of(Site.objects.order_by("name"), sites, endpoints)
    gone = {name: said for name, said in _deleted(now).items() if name not in sites}
    return _Static(
        sites, endpoints, nuclei, tuple(tags), gone, Grid(sites, endpoints, nuclei, all_tags=tuple(tags), types=types)
    )


def _deleted(now: datetime) -> dict[str, str]:
    """The queues that people deleted lately, each with who did it when, from the audit trail."""
    entries = AuditEntry.objects.filter(object_type="queue", action="admin.delete", at__gt=now - DELETED_LATELY)
    rows = entries.order_by("-id").values_list("object_id", "at", "actor")[:MOST_DELETED]
    return {name: f"was deleted {at:%Y-%m-%d %H:%M} UTC by {actor}" for name, at, actor in reversed(rows)}


def _load_network(cursor: psycopg.Cursor[Any], now: datetime) -> describing.Network:
    cursor.execute(_LINKS, [now - describing.LINK_AGE])
    return describing.network_of(cursor)


def _load_activity(cursor: psycopg.Cursor[Any]) -> _Activity:
    cursor.execute(_ACTIVITY)
    found = _Activity()
    for queue, users, was_active, *activity in cursor:
        if was_active:
            found.queues[queue] = tuple(activity)
        for share, user, queued, running in users or ():
            found.users.setdefault(queue, {}).setdefault(share, {})[user] = UserJobs(queued, running)
    return found


@dataclass(slots=True)
class _Jobs:
    """What counts say of one queue. `pending` jobs count as defined for the queue, since nothing holds them there."""

    by_share: dict[str, dict[str, Counts]] = field(default_factory=dict)
    by_resource_queue: dict[str, dict[str, Counts]] = field(default_factory=dict)
    slots: list[Slots] = field(default_factory=list)
    running: int = 0
    queued: int = 0
    defined: int = 0


def _dynamic(moment: Iterable[tuple[Any, ...]]) -> dict[str, _Jobs]:
    """Jobs and slots by queue, from the rows of `_MOMENT`."""
    found: dict[str, _Jobs] = defaultdict(_Jobs)
    rows: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for what, *row in moment:
        rows[what].append(tuple(row))
    for queue, share, kind, numbers in rows["gshare"]:
        running, starting, activated, assigned, defined, transferring, waiting, cores, throttled, pending = (
            int(n or 0) for n in numbers
        )
        jobs = found[queue]
        jobs.by_share.setdefault(share, {})[kind] = Counts(
            running, starting, activated, assigned, defined, transferring, waiting, cores, throttled
        )
        jobs.running += running
        jobs.queued += starting + activated + assigned
        jobs.defined += defined + pending
    for queue, name, kind, numbers in rows["queue_name"]:
        found[queue].by_resource_queue.setdefault(name, {})[kind] = Counts(*(int(n or 0) for n in numbers[:9]))
    for queue, share, kind, (_, slots) in sorted(rows["slots"], key=lambda row: row[3]):
        found[queue].slots.append(Slots(share, kind, slots))
    return found


def _with_numbers(
    sites: Mapping[str, SiteView], dynamic: Mapping[str, _Jobs], activity: _Activity, now: datetime
) -> dict[str, SiteView]:
    """Each queue with its numbers; pseudo queues have those of their parent. What nobody counted stays as it is."""
    found: dict[str, SiteView] = {}
    numbers: dict[str, dict[str, Any]] = {}
    for name, view in sites.items():
        queue = view.parent or name
        if queue not in numbers:
            numbers[queue] = _numbers_of(dynamic.get(queue), activity.queues.get(queue), activity.users.get(queue), now)
        found[name] = replace(view, **numbers[queue]) if numbers[queue] else view
    return found


def _numbers_of(
    jobs: _Jobs | None, activity: tuple[Any, ...] | None, users: dict[str, dict[str, UserJobs]] | None, now: datetime
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if jobs is not None:
        found = {
            "jobs": jobs.by_share,
            "resource_queue_jobs": jobs.by_resource_queue,
            "slots": tuple(jobs.slots),
            "running": jobs.running,
            "queued": jobs.queued,
            "defined": jobs.defined,
        }
    if activity is not None:
        last_start, started, disk_io, transferring, pilots, batch, silent, quiet = activity
        found |= {
            "last_start_s": (now - last_start).total_seconds() if last_start is not None else None,
            "started_per_h": started,
            "disk_io_kbps": disk_io,
            "transferring_to": transferring,
            "pilots_3h": pilots,
            "batch_jobs": batch,
            "silent_s": (now - silent).total_seconds() if silent is not None else None,
            "quiet_s": (now - quiet).total_seconds() if quiet is not None else None,
        }
    if users is not None:
        found["users"] = users
    return found
