"""Descriptions of the grid into the database, all or nothing, and out of it again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from django.db import models, transaction

from brokerage_app.grid import queue_status
from brokerage_app.grid.cric import QUEUE, SITE, STORAGE, WORK_DIR, Described, record_of
from brokerage_app.grid.written_storage import storages_by_activity
from brokerage_app.models import LinkValue, Queue, QueueEndpoint, QueueStatusLog, Site, SoftwareTags, StorageEndpoint

BATCH = 2000
LONGEST_VALUE = 60


@transaction.atomic
def store(described: Described, now: datetime) -> dict[str, int]:
    """Make or change what is described, and leave the rest as it is. Returns the number of rows by kind.

    A status that somebody set for a time stays.
    Sites that queues belong to are made, as satellites, if they are new.
    """
    _upsert(Site, [{**row, "last_update": now} for row in described.sites], ["name"])
    known = {row["site_name"] for row in described.queues if row["site_name"]}
    Site.objects.bulk_create([Site(name=name) for name in sorted(known)], ignore_conflicts=True)
    _upsert(StorageEndpoint, [{**row, "updated": now} for row in described.storages], ["name"])
    with queue_status.history_says(by="import_sites", at=now):
        queues = queue_status.keep_held(described.queues, now)
        _upsert(Queue, [{**row, "last_update": now} for row in queues], ["name"])
    QueueEndpoint.objects.filter(queue__in=[row["name"] for row in described.queues]).delete()
    sites = {row["name"]: row["site_name"] for row in described.queues}
    places = dict(StorageEndpoint.objects.values_list("name", "site_name"))
    QueueEndpoint.objects.bulk_create(
        [
            QueueEndpoint(
                queue_id=queue,
                endpoint_id=endpoint,
                scope=scope,
                order_read=read,
                order_write=write,
                is_local=places[endpoint] == sites[queue],
            )
            for queue, endpoint, scope, read, write in described.relations
        ],
        batch_size=BATCH,
    )
    links = {row[:3]: (row[3], row[4] or now) for row in described.links}
    _upsert(
        LinkValue,
        [
            {"source": source, "destination": destination, "key": key, "value": value, "at": at}
            for (source, destination, key), (value, at) in sorted(links.items())
        ],
        ["source", "destination", "key"],
    )
    tags = [{"queue": name, "data": data, "last_update": now} for name, data in described.software.items()]
    _upsert(SoftwareTags, tags, ["queue"])
    return {
        "sites": len(described.sites),
        "storages": len(described.storages),
        "queues": len(described.queues),
        "links": len(links),
        "software": len(tags),
    }


def changes(
    before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    """What became of `records`: the kind of each that is new or has changed, and a line on it."""
    for part, one in (("sites", "site"), ("storages", "storage"), ("queues", "queue"), ("software", "software of")):
        for name, record in after[part].items():
            former = before[part].get(name)
            if former is None:
                yield part, f"{one} {name}: new"
                continue
            keys = sorted(key for key in {*former, *record} if former.get(key) != record.get(key))
            if keys:
                told = ", ".join(f"{key} {_said(former.get(key))} → {_said(record.get(key))}" for key in keys)
                yield part, f"{one} {name}: {told}"


def _said(value: Any) -> str:
    text = "none" if value in (None, "", [], {}) else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def _upsert(model: type[models.Model], rows: list[dict[str, Any]], unique: list[str]) -> None:
    if rows:
        model._default_manager.bulk_create(
            [model(**row) for row in rows],
            batch_size=BATCH,
            update_conflicts=True,
            unique_fields=unique,
            update_fields=[name for name in rows[0] if name not in unique],
        )


def known() -> dict[str, dict[str, Any]]:
    """The sites, storages and queues that there are, as what a file does not name of them is to stay: a queue has the status
    that follows one set for a time.
    """
    return _places(lasting=True)


def records() -> dict[str, dict[str, Any]]:
    """All descriptions but those of links, of which there are very many, in the form that `cric.describe` reads."""
    return _places() | {"software": dict(SoftwareTags.objects.order_by("queue").values_list("queue", "data"))}


def export() -> dict[str, Any]:
    """All descriptions in the form that `cric.describe` reads."""
    links = [
        [row.source, row.destination, row.key, row.value, row.at.isoformat()]
        for row in LinkValue.objects.order_by("source", "destination", "key")
    ]
    return {**records(), "links": links}


def _places(*, lasting: bool = False) -> dict[str, dict[str, Any]]:
    """Sites, storages and queues; `lasting`: as `known` says."""
    held = QueueStatusLog.objects.filter(ended_at=None, until__isnull=False)
    after = dict(held.values_list("queue", "after")) if lasting else {}
    rows = list(Queue.objects.order_by("name"))
    storages = storages_by_activity(rows, named=not lasting)
    queues = {}
    for queue in rows:
        record = record_of(vars(queue), QUEUE, queue.data)
        if queue.name in after:
            record["status"] = after[queue.name]
        queues[queue.name] = record | {WORK_DIR: queue.work_dir_mb or 0, "astorages": storages[queue.name]}
    return {
        "sites": {row.name: record_of(vars(row), SITE, row.data) for row in Site.objects.order_by("name")},
        "storages": {
            row.name: record_of(vars(row), STORAGE, row.data) for row in StorageEndpoint.objects.order_by("name")
        },
        "queues": queues,
    }
