"""Outputs that are called lost, and of which a storage of this machine still has a good copy: it is read there from now on.

They are no reason to make anything again, and what is made again takes no copy of them away.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import psycopg
from django.db import transaction

from jedisite.database.sql import hot_cursor, texts
from tasks_app.outcomes.bad_inputs import Suspect, fault_at
from tasks_app.transfers import replicas
from tasks_app.transfers.readdressing import readdress
from tasks_app.transfers.replicas import Place
from tasks_app.transfers.storages import Storage, local_storages


class Kept(NamedTuple):
    """An output, the storages that have it as its job made it, and its places that have it no longer, with what is wrong."""

    scope: str
    lfn: str
    at: tuple[str, ...]
    bad: tuple[tuple[Place, str], ...]

    def sentence(self) -> str:
        storages = " and ".join(self.at)
        if not self.bad:
            return f"{self.lfn} is not lost: {storages} has it as its job made it; it is not made again"
        gone = " and ".join(place.endpoint for place, _ in self.bad)
        instead = f"which is read instead of that in {gone}"
        return f"{self.lfn} is not lost: {storages} has a good copy, {instead}; it is not made again"


_OUTPUTS = """
SELECT DISTINCT ON (c.scope, c.lfn) c.scope, c.lfn, coalesce(c.surl, ''), c.fsize, replace(c.checksum, 'ad:', '')
  FROM jedi_dataset_contents c JOIN jedi_datasets d ON d.jeditaskid = c.jeditaskid AND d.datasetid = c.datasetid
 WHERE c.jeditaskid = %(task)s AND c.type = 'output' AND c.status = 'finished' AND c.lfn = ANY(%(lfns)s::text[])
   AND (%(dataset)s::text IS NULL OR d.datasetname = %(dataset)s)
   AND c.scope IS NOT NULL AND c.fsize IS NOT NULL AND c.checksum LIKE 'ad:%%'
 ORDER BY 1, 2
"""


def kept_of(task_id: int, names: Collection[str], dataset: str | None) -> dict[str, Kept]:
    """Those of these outputs, by the name as it was given, that a storage of this machine has. Not inside a transaction."""
    given = {name.rpartition(":")[2]: name for name in names}
    with hot_cursor() as cursor:
        cursor.execute(_OUTPUTS, {"task": task_id, "lfns": texts(given), "dataset": dataset})
        rows = [Suspect(*row) for row in cursor.fetchall()]
        asked = [one for one in rows if given[one.lfn] in (one.lfn, f"{one.scope}:{one.lfn}")]
        places = replicas.places_of(cursor, [(one.scope, one.lfn) for one in asked])
    stores = local_storages() if asked else {}
    found = (_kept(one, places[one.scope, one.lfn], stores) for one in asked)
    return {given[one.lfn]: one for one in found if one is not None}


def _kept(one: Suspect, places: Collection[Place], stores: Mapping[str, Storage]) -> Kept | None:
    good, bad = [], []
    for place in places:
        if place.status not in replicas.READABLE:
            continue
        fault = fault_at(one, stores[place.endpoint]) if place.endpoint in stores else "it was called lost"
        if fault is None:  # it cannot be looked at
            fault = "it was called lost"
        if fault:
            bad.append((place, fault))
        else:
            good.append(place.endpoint)
    return Kept(one.scope, one.lfn, tuple(good), tuple(bad)) if good else None


def read_instead(found: Collection[Kept]) -> None:
    """Bad places are marked, and a good one takes the first place, where whoever reads the file next reads it."""
    for one in found:
        for place, fault in one.bad:
            with transaction.atomic(), hot_cursor() as cursor:
                _mark(cursor, place, fault)


def _mark(cursor: psycopg.Cursor[tuple[object, ...]], place: Place, fault: str) -> None:
    replicas.mark_bad(cursor, [place], fault)
    readdress(cursor, place)
