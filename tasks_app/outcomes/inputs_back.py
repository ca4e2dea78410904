"""Inputs that were set aside since nobody had them, and that somebody has now: tasks that still run take them up again.

A file counts as there when a replica of it is registered that is not bad, or when a storage of this machine has what was called
bad: its disk may have been away. Where a group of files is one job, it comes back when all of its files are there.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

from django.db import transaction

from jedisite.agents.passes import kick, renew_lease
from jedisite.database.sql import hot_cursor, texts
from tasks_app.ddm import data_management
from tasks_app.domain.states import TASK_GENERATING, FileStatus, TaskStatus
from tasks_app.domain.transfer_states import ReplicaStatus
from tasks_app.inputs.file_groups import WHOLE
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
    """A file that a task has set aside. `status`: lost, or missing when it could not be brought from tape.

    `group`: the group with which alone it comes back, of which `of_group` files are set aside.
    """

    task_id: int
    dataset_id: int
    dataset: str
    status: str
    scope: str
    lfn: str
    size: int
    adler32: str
    group: int | None
    of_group: int


# ruff: noqa: S608 - a constant of ours
_ASIDE = f"""
SELECT DISTINCT c.jeditaskid, c.datasetid, d.datasetname, c.status, c.scope, c.lfn, coalesce(c.fsize, 0),
       replace(coalesce(c.checksum, ''), 'ad:', ''), w.boundary,
       CASE WHEN w.boundary IS NOT NULL THEN count(*) OVER (PARTITION BY c.jeditaskid, w.boundary) ELSE 0 END
  FROM jedi_tasks t JOIN jedi_datasets d USING (jeditaskid) JOIN jedi_dataset_contents c USING (jeditaskid, datasetid)
 CROSS JOIN LATERAL (SELECT CASE WHEN t.splitrule ~ '(^|,)GB=[{WHOLE}-9]' THEN c.boundaryid END AS boundary) w
 WHERE {RUNS} AND d.type = 'input' AND d.nfilesmissing > 0 AND d.status IN ('ready', 'toupdate')
   AND NOT 'ic' = ANY(string_to_array(coalesce(d.attributes, ''), ','))
   AND c.status IN ('lost', 'missing') AND c.scope IS NOT NULL
 ORDER BY 1, 9, 2, c.lfn LIMIT %(most)s
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
    served: dict[int, list[Aside]] = defaultdict(list)
    for one in aside:
        name = (one.scope, one.lfn)
        if name in again or any(_serves(place, one.status) for place in places[name]):
            served[one.task_id].append(one)
    return sum(_take_back(task_id, found) for task_id, found in sorted(served.items()))


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


def _take_back(task_id: int, served: Sequence[Aside]) -> int:
    """Files of one task are ready for jobs. What is no longer in its dataset is not taken back."""
    back = _whole(_still_listed(served))
    values = {"runs": texts(sorted(TASK_GENERATING)), "waits": texts(_WAITS), "task": task_id}
    with transaction.atomic(), hot_cursor() as cursor:
        cursor.execute(f"SELECT 1 FROM jedi_tasks t WHERE jeditaskid = %(task)s AND {RUNS} FOR UPDATE", values)
        if cursor.fetchone() is None:
            return 0
        found = 0
        for dataset_id in sorted({one.dataset_id for one in back}):
            of_dataset = [one for one in back if one.dataset_id == dataset_id]
            alone = [one.lfn for one in of_dataset if one.group is None]
            found += find_again(cursor, task_id, dataset_id, alone, status=FileStatus.READY) if alone else 0
            for group in sorted({one.group for one in of_dataset if one.group is not None}):
                lfns = [one.lfn for one in of_dataset if one.group == group]
                found += find_again(cursor, task_id, dataset_id, lfns, status=FileStatus.READY, groups=[group])
        if found:
            transaction.on_commit(lambda: kick("job_generator"))
        return found


def _still_listed(served: Sequence[Aside]) -> list[Aside]:
    by_dataset: dict[str, list[str]] = defaultdict(list)
    for one in served:
        by_dataset[one.dataset].append(one.lfn)
    gone = {name: data_management().lacking([name], lfns, hints=False) for name, lfns in by_dataset.items()}
    return [one for one in served if one.lfn not in gone[one.dataset]]


def _whole(found: Sequence[Aside]) -> list[Aside]:
    """Without those files of groups whose group is not there as a whole."""
    there = Counter(one.group for one in found)
    return [one for one in found if one.group is None or there[one.group] == one.of_group]
