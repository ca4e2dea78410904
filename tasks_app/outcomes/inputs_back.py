"""Inputs that were set aside since nobody had them, and that somebody has now: tasks that still run take them up again.

A file counts as there when a replica of it is registered that is not bad, or when a storage of this machine has what was called
bad: its disk may have been away. Files of groups are left to a retry, for a group is whole or is no job.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

from django.db import transaction

from jedisite.agents.passes import kick, renew_lease
from jedisite.database.sql import hot_cursor, texts
from tasks_app.ddm import data_management
from tasks_app.domain.states import TASK_GENERATING, FileStatus, TaskStatus
from tasks_app.domain.transfer_states import ReplicaStatus
from tasks_app.lifecycle.file_availability import find_again
from tasks_app.outcomes.bad_inputs import Suspect, fault_at
from tasks_app.transfers import replicas
from tasks_app.transfers.replicas import Name, Place
from tasks_app.transfers.storages import Storage, local_storages

MOST: Final = 10_000
"""Files of which a pass asks where they are."""
MOST_LOOKED_AT: Final = 50
"""Files that a pass looks for on disk; it chooses at random when there are more."""
_WAITS: Final = (TaskStatus.PENDING, TaskStatus.THROTTLED, TaskStatus.PAUSED)
RUNS: Final = (
    "(t.status = ANY(%(runs)s::text[]) OR t.status = ANY(%(waits)s::text[]) AND t.oldstatus = ANY(%(runs)s::text[]))"
)


class Aside(NamedTuple):
    """A file that a task has set aside. `status`: lost, or missing when it could not be brought from tape."""

    task_id: int
    dataset_id: int
    dataset: str
    status: str
    scope: str
    lfn: str
    size: int
    adler32: str


# ruff: noqa: S608 - a constant of ours
_ASIDE = f"""
SELECT DISTINCT c.jeditaskid, c.datasetid, d.datasetname, c.status, c.scope, c.lfn, coalesce(c.fsize, 0),
       replace(coalesce(c.checksum, ''), 'ad:', '')
  FROM jedi_tasks t JOIN jedi_datasets d USING (jeditaskid) JOIN jedi_dataset_contents c USING (jeditaskid, datasetid)
 WHERE {RUNS} AND d.type = 'input' AND d.nfilesmissing > 0 AND d.status IN ('ready', 'toupdate')
   AND NOT 'ic' = ANY(string_to_array(coalesce(d.attributes, ''), ','))
   AND c.status IN ('lost', 'missing') AND c.boundaryid IS NULL AND c.scope IS NOT NULL
 ORDER BY 1, 2, c.lfn LIMIT %(most)s
"""


def take_back() -> int:
    """Have tasks take up again what is there. Returns how many files. Not inside a transaction.

    Few statements while nothing was set aside; else some for each dataset whose files are there again.
    """
    values = {"runs": texts(sorted(TASK_GENERATING)), "waits": texts(_WAITS), "most": MOST}
    with hot_cursor() as cursor:
        cursor.execute(_ASIDE, values)
        aside = [Aside(*row) for row in cursor.fetchall()]
        if not aside:
            return 0
        places = replicas.places_of(cursor, [(one.scope, one.lfn) for one in aside])
    again = _there_again(aside, places)
    if again:
        with transaction.atomic(), hot_cursor() as cursor:
            replicas.add(cursor, [place[:4] for place in again.values()])
    by_dataset: dict[tuple[int, int, str], list[str]] = defaultdict(list)
    for one in aside:
        name = (one.scope, one.lfn)
        if name in again or any(_serves(place, one.status) for place in places[name]):
            by_dataset[one.task_id, one.dataset_id, one.dataset].append(one.lfn)
    return sum(_take_back(*key, lfns) for key, lfns in sorted(by_dataset.items()))


def _serves(place: Place, status: str) -> bool:
    """Whether a task can have the file from there: what could not be brought from tape has to be on disk."""
    return place.status == ReplicaStatus.AVAILABLE or (place.status == ReplicaStatus.TAPE and status == FileStatus.LOST)


def _there_again(aside: Sequence[Aside], places: dict[Name, list[Place]]) -> dict[Name, Place]:
    """Files of which all that is known is bad, and which a storage of this machine has all the same."""
    stores = local_storages()
    wanted = {}
    for one in aside:
        known = places[one.scope, one.lfn]
        if one.adler32 and known and all(place.status == ReplicaStatus.BAD for place in known):
            wanted[one.scope, one.lfn] = one
    found = {}
    for name in random.sample(sorted(wanted), min(len(wanted), MOST_LOOKED_AT)):
        one = wanted[name]
        place = next((place for place in places[name] if _is_good(one, place, stores)), None)
        if place is not None:
            found[name] = place
        renew_lease()
    return found


def _is_good(one: Aside, place: Place, stores: dict[str, Storage]) -> bool:
    store = stores.get(place.endpoint)
    if store is None:
        return False
    return fault_at(Suspect(one.scope, one.lfn, place.url, one.size, one.adler32), store) == ""


def _take_back(task_id: int, dataset_id: int, dataset: str, lfns: list[str]) -> int:
    """Files of one input are ready for jobs. What is no longer in the dataset is not taken back."""
    gone = data_management().lacking([dataset], lfns, hints=False)
    values = {"runs": texts(sorted(TASK_GENERATING)), "waits": texts(_WAITS), "task": task_id}
    with transaction.atomic(), hot_cursor() as cursor:
        cursor.execute(f"SELECT 1 FROM jedi_tasks t WHERE jeditaskid = %(task)s AND {RUNS} FOR UPDATE", values)
        if cursor.fetchone() is None:
            return 0
        found = find_again(
            cursor, task_id, dataset_id, [lfn for lfn in lfns if lfn not in gone], status=FileStatus.READY
        )
        if found:
            transaction.on_commit(lambda: kick("job_generator"))
        return found
