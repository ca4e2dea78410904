"""Inputs that pilots found missing or corrupt: what lies on this machine is looked at, and a bad copy is marked.

Another replica then takes the first place, and whoever reads the file next reads that one. Without another the file is lost to
the task when its job read others, too: these go on without it. A file that a job reads alone is tried as often as its task
says. Its owner may have it made again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import psycopg
from django.db import transaction

from jedisite.agents.passes import kick
from jedisite.database.sql import hot_cursor, numbers, texts
from tasks_app.ddm.opening import open_led_to
from tasks_app.domain.states import TASK_FINAL
from tasks_app.domain.transfer_states import ReplicaStatus, TransferKind
from tasks_app.inputs.file_groups import has_whole_groups
from tasks_app.lifecycle.file_availability import lose_groups, lose_where
from tasks_app.params.splitrule import SplitRule
from tasks_app.transfers import file_copies, replicas
from tasks_app.transfers.file_copies import Content, NoCopyError
from tasks_app.transfers.readdressing import readdress
from tasks_app.transfers.requesting import Wanted, WantedFile, add_rules
from tasks_app.transfers.storages import Storage, local_storages
from tasks_app.worker_node.pilot.folder_away import why_away

CODES: Final = (1099, 1103, 1171, 1331)
"""Errors of pilots: an input could not be copied, is not there, has a wrong checksum, does not exist at its storage."""
MOST: Final = 50
MOST_BYTES: Final = 1_000_000_000
"""Of larger files only the size is compared at once; the mover works out their checksum."""


class Suspect(NamedTuple):
    scope: str
    lfn: str
    url: str
    size: int
    adler32: str


_SUSPECTS = """
SELECT DISTINCT f.scope, f.lfn, f.surl, f.fsize, replace(f.checksum, 'ad:', '')
  FROM jobs j JOIN job_files f ON f.pandaid = j.pandaid AND f.type = 'input'
 WHERE j.pandaid = ANY(%s::bigint[]) AND j.piloterrorcode = ANY(%s::int[]) AND strpos(coalesce(j.piloterrordiag, ''), f.lfn) > 0
   AND f.surl LIKE 'file:%%' AND f.checksum LIKE 'ad:%%' AND f.scope IS NOT NULL AND f.fsize IS NOT NULL
 ORDER BY 1, 2 LIMIT %s
"""


def check(jobs: Sequence[int]) -> int:
    """Look at what these failed jobs could not read. Returns how many copies were marked. Not inside a transaction."""
    with hot_cursor() as cursor:
        cursor.execute(_SUSPECTS, [numbers(jobs), numbers(CODES), MOST])
        suspects = [Suspect(*row) for row in cursor.fetchall()]
        if not suspects:
            return 0
        places = replicas.places_of(cursor, [(one.scope, one.lfn) for one in suspects])
    stores = local_storages()
    found, large = [], []
    for one in suspects:
        for place in replicas.readable(places[one.scope, one.lfn], stores):
            if place.url != one.url:
                continue
            if fault := fault_at(one, stores[place.endpoint]):
                found.append((place, f"a job could not read it: {fault}"))
            elif one.size > MOST_BYTES and not stores[place.endpoint].is_tape:
                large.append((one, place.endpoint))
    for place, fault in found:
        with transaction.atomic(), hot_cursor() as cursor:
            replicas.mark_bad(cursor, [place], fault)
            readdress(cursor, place)
    if large:
        with transaction.atomic(), hot_cursor() as cursor:
            _have_compared(cursor, large)
    with transaction.atomic(), hot_cursor() as cursor:
        known = replicas.places_of(cursor, [(one.scope, one.lfn) for one in suspects])
        _set_aside(cursor, jobs, [one.lfn for one in suspects if _is_gone(known[one.scope, one.lfn])])
    return len(found)


def _is_gone(places: Iterable[replicas.Place]) -> bool:
    """Whether no place has a file, or will have it, as far as is known."""
    return all(one.status is ReplicaStatus.BAD for one in places)


_BESIDE_OTHERS = """
SELECT DISTINCT f.jeditaskid, f.datasetid, f.lfn, coalesce(t.splitrule, '')
  FROM job_files f JOIN jedi_tasks t ON t.jeditaskid = f.jeditaskid
  JOIN jedi_datasets d ON d.datasetid = f.datasetid AND d.jeditaskid = f.jeditaskid AND d.type = 'input'
 WHERE f.pandaid = ANY(%s::bigint[]) AND f.type = 'input' AND f.lfn = ANY(%s::text[]) AND NOT t.status = ANY(%s::text[])
   AND EXISTS (SELECT 1 FROM job_files o WHERE o.pandaid = f.pandaid AND o.datasetid = f.datasetid AND o.lfn <> f.lfn)
"""


def _set_aside(cursor: psycopg.Cursor[Any], jobs: Iterable[int], lfns: list[str]) -> None:
    """Files that nobody has are lost to the tasks of these jobs, where jobs read others along with them; where a group of files
    is one job, with their groups.

    What merge jobs read is made again by the jobs that made it.
    """
    if not lfns:
        return
    cursor.execute(_BESIDE_OTHERS, [numbers(jobs), texts(lfns), sorted(TASK_FINAL)])
    lost: dict[tuple[int, int, bool], list[str]] = {}
    for task, dataset, lfn, rule in cursor.fetchall():
        lost.setdefault((task, dataset, has_whole_groups(SplitRule.parse(rule))), []).append(lfn)
    tasks = sorted({task for task, *_ in lost})
    cursor.execute(
        "SELECT 1 FROM jedi_tasks WHERE jeditaskid = ANY(%s::bigint[]) ORDER BY jeditaskid FOR UPDATE", [numbers(tasks)]
    )
    for (task, dataset, by_group), names in sorted(lost.items()):
        if by_group:
            lose_groups(cursor, task, dataset, names)
        else:
            lose_where(cursor, task, dataset, "lfn = ANY(%(lfns)s::text[])", {"lfns": texts(names)})
    if tasks:
        transaction.on_commit(lambda: kick("job_generator", "post_processor"))


def _have_compared(cursor: psycopg.Cursor[Any], large: list[tuple[Suspect, str]]) -> None:
    """The mover compares large files with the catalogue: it reads each where it lies, as what is to be there. Once at a time."""
    for one, endpoint in large:
        cursor.execute(
            """SELECT EXISTS (SELECT 1 FROM transfer_requests WHERE scope = %s AND lfn = %s AND destination = %s
                                 AND status IN ('queued', 'active'))""",
            [one.scope, one.lfn, endpoint],
        )
        row = cursor.fetchone()
        if row is None or not row[0]:
            file = WantedFile(one.scope, one.lfn, one.size, one.adler32, source=endpoint)
            add_rules(cursor, [Wanted(TransferKind.COPY, endpoint, [file])])


def fault_at(one: Suspect, store: Storage) -> str | None:
    """What is wrong with a copy; "" when it is good, None when it cannot be looked at."""
    try:
        _, stream = open_led_to(file_copies.place_of(store.path, one.scope, one.lfn).path)
    except FileNotFoundError:
        # A disk that is not mounted has lost nothing.
        return None if store.away or why_away(store.path, holds_files=True) else "it is not in the storage"
    except (OSError, ValueError, NoCopyError):
        return None
    with stream:
        content = Content(one.size, one.adler32)
        return content.fault(stream) if one.size <= MOST_BYTES else content.size_fault(stream)
