"""The local twin of an information system: one site, the machine that the server runs on."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
from django.db import transaction

from brokerage_app.models import Queue, QueueEndpoint, ResourceType, StorageEndpoint

SITE = "LOCAL"
QUEUE = "LOCAL"
ENDPOINT = "LOCAL_SE"
DAY_S = 86_400

RESOURCE_TYPES = (
    ("SCORE_LOMEM", 1, 1, 0, 1000),
    ("SCORE", 1, 1, 1001, 2000),
    ("SCORE_HIMEM", 1, 1, 2001, 3000),
    ("SCORE_VHIMEM", 1, 1, 3001, None),
    ("MCORE_LOMEM", 2, None, 0, 1000),
    ("MCORE", 2, None, 1001, 2000),
    ("MCORE_HIMEM", 2, None, 2001, 3000),
    ("MCORE_VHIMEM", 2, None, 3001, None),
)
"""(name, least and most cores, least and most MB a core), the grid's usual classes."""


@transaction.atomic
def ensure_local_site(storage: Path, slots: int | None = None) -> Queue:
    """Describe this machine as a site with one queue and one storage element. What an operator has changed stays.

    A slot gets its part of the machine's memory. `slots` defaults to the number of cores. The storage's folder is made once:
    where it is missing later, its disk is not mounted.
    """
    endpoint, is_new = StorageEndpoint.objects.get_or_create(
        name=ENDPOINT, defaults={"site_name": SITE, "path": str(storage)}
    )
    if is_new or endpoint.path != str(storage):
        storage.mkdir(parents=True, exist_ok=True)
    if endpoint.path != str(storage):
        endpoint.path = str(storage)
        endpoint.save(update_fields=["path"])
    total_mb = psutil.virtual_memory().total // (1024 * 1024)
    queue, _ = Queue.objects.get_or_create(
        name=QUEUE,
        defaults={
            "site_name": SITE,
            "core_count": 1,
            "max_memory_mb": max(2000, total_mb // (slots or os.cpu_count() or 1)),
            "max_walltime_s": DAY_S,
            "work_dir_mb": 20_000,
            "storage": endpoint,
            "catchall": "mv_final_destination",
            "job_seed": "all",
        },
    )
    if not queue.endpoints.exists():
        QueueEndpoint.objects.create(queue=queue, endpoint=endpoint, order_read=1, order_write=1)
    resource_types_if_none()
    return queue


def resource_types_if_none() -> None:
    """The usual resource types, unless the grid has its own."""
    if not ResourceType.objects.exists():
        ResourceType.objects.bulk_create(
            ResourceType(
                name=name,
                position=position,
                min_cores=low,
                max_cores=high,
                min_ram_per_core_mb=least,
                max_ram_per_core_mb=most,
            )
            for position, (name, low, high, least, most) in enumerate(RESOURCE_TYPES)
        )
