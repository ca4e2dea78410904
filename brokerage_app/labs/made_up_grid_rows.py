"""A grid that was made up, into the tables: queues, sites, storage, network, software, and what queues have done lately."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from brokerage_app.grid.local_twin import resource_types_if_none
from brokerage_app.models import (
    LinkValue,
    Queue,
    QueueActivity,
    QueueEndpoint,
    Site,
    SoftwareTags,
    StorageEndpoint,
    WorkerNodeCpus,
    WorkerNodeGpus,
)
from brokerage_app.vocabulary.site_view import CUT_TO_SIZE, SiteView
from brokerage_app.vocabulary.snapshot import Grid
from jedisite.database.sql import copy_lines, hot_cursor

BATCH = 2000


@transaction.atomic
def store_grid(grid: Grid, now: datetime) -> list[str]:
    """Store the queues of a grid, without its counts of jobs, with all that belongs to them. Returns the names of the queues.

    Rows that are there already stay as they are, and so does a network that is known.
    """
    views: dict[str, SiteView] = {}
    for site in sorted(grid.sites.values(), key=lambda site: site.name):
        views.setdefault(site.queue, grid.sites.get(site.queue, site))
    places = sorted({view.site for view in views.values()})
    new: dict[str, Any] = {"batch_size": BATCH, "ignore_conflicts": True}
    Site.objects.bulk_create(
        [Site(name=name, role="nucleus" if name in grid.nuclei else "satellite") for name in places], **new
    )
    StorageEndpoint.objects.bulk_create(
        [
            StorageEndpoint(
                name=one.name,
                site_name=one.site,
                type=one.type,
                is_tape=one.is_tape,
                space_free_gb=one.space_free_gb,
                space_total_gb=one.space_total_gb,
                states=dict(one.states),
            )
            for one in grid.endpoints.values()
        ],
        **new,
    )
    Queue.objects.bulk_create(
        [
            Queue(
                name=name,
                site_name=view.site,
                type=view.type,
                status=view.status,
                cloud=view.cloud,
                grid_type=view.grid_type,
                core_count=view.cores,
                max_memory_mb=view.max_memory_mb,
                min_memory_mb=view.min_memory_mb,
                max_walltime_s=view.max_walltime_s,
                min_walltime_s=view.min_walltime_s,
                work_dir_mb=view.work_dir_mb,
                core_power=view.core_power,
                capability=CUT_TO_SIZE if view.is_parent else view.capability,
                direct_access_lan=view.direct_io,
                max_disk_io_kbps=view.max_disk_io_kbps,
                pledged_cores=view.pledged_cores,
                transferring_limit=view.transferring_limit,
                releases=list(view.releases),
                policy=view.policy,
                connectivity=view.connectivity,
                storage_id=view.outputs[0] if view.outputs else None,
                last_update=now,
            )
            for name, view in views.items()
        ],
        **new,
    )
    relations = []
    for name, view in views.items():
        for endpoint in dict.fromkeys((*view.inputs, *view.outputs)):
            read = view.inputs.index(endpoint) + 1 if endpoint in view.inputs else None
            write = view.outputs.index(endpoint) + 1 if endpoint in view.outputs else None
            relations.append(QueueEndpoint(queue_id=name, endpoint_id=endpoint, order_read=read, order_write=write))
    QueueEndpoint.objects.bulk_create(relations, **new)
    SoftwareTags.objects.bulk_create(
        [
            SoftwareTags(queue=name, data=view.software, last_update=now)
            for name, view in views.items()
            if view.software
        ],
        **new,
    )
    WorkerNodeGpus.objects.bulk_create(
        [
            WorkerNodeGpus(
                queue=name,
                vendor=gpu.vendor,
                model=gpu.model,
                memory_mb=gpu.vram_mb,
                architecture=gpu.microarchitecture,
                framework_version=gpu.version or "",
                driver_version=gpu.driver_version or "",
            )
            for name, view in views.items()
            for gpu in view.gpus
        ],
        **new,
    )
    WorkerNodeCpus.objects.bulk_create(
        [
            WorkerNodeCpus(queue=name, level=level, percentage=part)
            for name, view in views.items()
            for level, part in view.cpu_levels
        ],
        **new,
    )
    if not LinkValue.objects.exists():
        with hot_cursor() as cursor:
            copy_lines(cursor, "network_matrix_kv", ("src", "dst", "key", "value", "ts"), _links(grid, now))
    QueueActivity.objects.bulk_create(
        [
            QueueActivity(
                site=name,
                last_start=now - timedelta(seconds=view.last_start_s or 0),
                started_per_h=view.started_per_h,
                disk_io_kbps=view.disk_io_kbps,
                pilots_3h=view.pilots_3h,
                batch_jobs=view.batch_jobs,
                updated=now,
            )
            for name, view in views.items()
        ],
        **new,
    )
    resource_types_if_none()
    return list(views)


def _links(grid: Grid, now: datetime) -> Iterator[str]:
    """Lines for COPY."""
    at = now.isoformat()
    for source, links in grid.links.items():
        for destination, link in links.items():
            values: dict[str, float | None] = {
                "AGIS_closeness": link.closeness,
                "dashb_mbps_1h": link.mbps_1h,
                "dashb_mbps_1d": link.mbps_1d,
                "dashb_mbps_1w": link.mbps_1w,
                **{f"{name}_queued": files for name, files in link.queued.items()},
            }
            for key, value in values.items():
                if value is not None:
                    yield f"{source}\t{destination}\t{key}\t{value}\t{at}\n"
