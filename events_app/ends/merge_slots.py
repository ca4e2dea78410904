"""The queue of a merge job, and where what it makes goes: read for `rules.merge_places`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, Final

import psycopg

from brokerage_app.formulas.resource_type_of import type_of_job
from brokerage_app.grid.describing import view_of
from brokerage_app.grid.repository import resource_types
from brokerage_app.grid.written_storage import written_storages
from brokerage_app.models import Queue, QueueActivity
from brokerage_app.vocabulary.site_view import SiteView
from events_app.consumers.copying import Place
from events_app.lifecycle.range_moves import is_in
from events_app.rules.event_states import EventStatus
from events_app.rules.merge_places import KEEPS_MERGES, merge_queue
from jedisite.database.sql import numbers
from tasks_app.domain.source_labels import ANALYSIS_LABELS
from tasks_app.inputs.preprocessed import params_of
from tasks_app.models import Task
from tasks_app.params.kinds import names_of

MEMORY_MB: Final = 2000
AUTO: Final = "AUTO"
"""In a list of queues: any other, too."""

# ruff: noqa: S608 - every piece is a constant of ours
# A folder of this machine can be read by its queues only: those of sites which have such a storage.
_NEAR: Final = f"""
WITH kept AS (
    SELECT s.site_name, s.path <> '' AS here FROM storage_endpoints s WHERE s.number = ANY(ARRAY(
           SELECT DISTINCT objstore_id FROM jedi_events
            WHERE jeditaskid = %(task)s AND fileid = ANY(%(files)s::bigint[]) AND {is_in({EventStatus.DONE})}
              AND objstore_id IS NOT NULL)))
SELECT site_name FROM kept
UNION
SELECT %(nucleus)s::text WHERE %(nucleus)s::text IS NOT NULL AND EXISTS (SELECT FROM kept)
   AND (NOT EXISTS (SELECT FROM kept WHERE here)
        OR EXISTS (SELECT FROM storage_endpoints s WHERE s.site_name = %(nucleus)s AND s.path <> ''))
"""


def merge_slot(cursor: psycopg.Cursor[Any], task_id: int, at: str, files: Collection[int]) -> Place:
    """The slot of the merge job of a consumer that was `at` a queue: one core. A task that names its site stays there."""
    kind = type_of_job(1, MEMORY_MB, resource_types())
    queue, log_endpoint = _chosen(cursor, task_id, at, files)
    return Place(queue, log_endpoint, None, MEMORY_MB, kind)


def _chosen(cursor: psycopg.Cursor[Any], task_id: int, at: str, files: Collection[int]) -> tuple[str, str | None]:
    """A queue, and the storage that it writes to; None of the queue where the consumer was."""
    task, own = Task.objects.get(pk=task_id), Queue.objects.filter(pk=at).first()
    if own is None or task.site or KEEPS_MERGES & (here := view_of(own)).switches.keys():
        return at, None
    cursor.execute(_NEAR, {"task": task_id, "files": numbers(files), "nucleus": task.nucleus})
    near = _views([site for (site,) in cursor.fetchall()])
    if not {view.name for view in near} - {at}:
        return at, None
    raw, analysis = params_of(task_id), task.prod_source_label in ANALYSIS_LABELS
    included = names_of(raw.get("includedSite"))
    queue = merge_queue(
        here,
        near,
        analysis=analysis,
        excluded=names_of(raw.get("excludedSite")),
        included=() if AUTO in included else included,
    )
    return queue, None if queue == at else written_storages([queue], analysis=analysis).get(queue)


def _views(sites: Collection[str]) -> list[SiteView]:
    """The queues of these sites, with the calls of their pilots."""
    rows = list(Queue.objects.filter(site_name__in=sites, status="online").order_by("name"))
    names = [row.name for row in rows]
    calls = dict(QueueActivity.objects.filter(pk__in=names).values_list("site", "pilots_3h"))
    stores = {analysis: written_storages(names, analysis=analysis) for analysis in (False, True)} if names else {}
    return [
        replace(
            view_of(row),
            pilots_3h=calls.get(row.name),
            outputs=tuple(filter(None, [stores[False].get(row.name)])),
            analysis_outputs=tuple(filter(None, [stores[True].get(row.name)])),
        )
        for row in rows
    ]
