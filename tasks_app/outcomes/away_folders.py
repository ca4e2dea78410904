"""Folders of storages that are away, as this site sees them: they are looked for before jobs meet them.

Each pass looks at the folder of each storage. One that was there before and is not now, cannot be read, or has none of the
files that are registered there, is closed for reading and writing as one that jobs met, and opened when it is back. Of a
folder that this site has never seen nothing is said: it may be a disk of other machines.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg
from django.db import transaction

from brokerage_app.models import StorageFolder
from jedisite.agents import troubles
from jedisite.database.sql import hot_cursor, numbers, texts
from tasks_app.ddm.local_files import path_of
from tasks_app.domain.job_errors import STORAGE_AWAY
from tasks_app.domain.states import JOB_QUEUED
from tasks_app.outcomes import unstored
from tasks_app.outcomes.bad_inputs import CODES
from tasks_app.outcomes.final_reports import ME
from tasks_app.transfers.storages import Storage, local_storages, storage_addresses
from tasks_app.worker_node.pilot.folder_away import EMPTY, why_away

LOOK_S: Final = 5.0
"""A disk whose server has gone may never answer: so long a look takes at most, and it counts as away."""
SILENT: Final = "does not answer"
ANOTHER: Final = "has none of the files that are registered there"
SOON: Final = timedelta(minutes=2)
"""A storage that stays away is closed anew when its time is over so soon."""
STAGE_IN: Final = 1099
_LARGEST: Final = 2**63 - 1
MOST_LOOKED_FOR: Final = 20
"""Registered files of which one has to be there, in a folder that may be another one than before."""


class Seen(NamedTuple):
    """What is wrong with a folder, "" of one that is there with something in it; and its number, 0 where it has none."""

    why: str
    inode: int = 0


Looking = tuple[threading.Thread, list[Seen]]
_guard = threading.Lock()
_looks: dict[Path, Looking] = {}


def looked_at(folders: Iterable[Path]) -> dict[Path, Seen]:
    """Look at these folders. Takes LOOK_S at most.

    A look that has not ended is not begun again: one thread waits for each disk, however often it is asked for.
    """
    with _guard:
        asked = {folder: _looks.get(folder) or _begin(folder) for folder in folders}
    found = {}
    for folder, (thread, seen) in asked.items():
        thread.join(LOOK_S / len(asked))
        found[folder] = seen[0] if seen else Seen(SILENT)
    return found


def _begin(folder: Path) -> Looking:
    seen: list[Seen] = []

    def see() -> None:
        why = why_away(folder, holds_files=True)
        seen.append(Seen(why, 0 if why not in ("", EMPTY) else os.stat(folder).st_ino & _LARGEST))
        with _guard:
            _looks.pop(folder, None)

    thread = threading.Thread(target=see, name="storage_look", daemon=True)
    _looks[folder] = thread, seen
    thread.start()
    return thread, seen


def look(now: datetime) -> int:
    """Look at all folders, and have queued jobs read elsewhere what is away. Returns how many are. Not inside a transaction."""
    stores = local_storages()
    if not stores:
        return 0
    seen = looked_at({store.path for store in stores.values()})
    known = {row.endpoint_id: row for row in StorageFolder.objects.all()}
    with transaction.atomic(), hot_cursor() as cursor:
        judged = [
            _judge(cursor, name, seen[store.path], known.get(name), now) for name, store in sorted(stores.items())
        ]
        rows = [row for row in judged if row is not None]
        StorageFolder.objects.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=["endpoint"],
            update_fields=["looked_at", "away", "holds_files", "inode"],
        )
        away = {row.endpoint_id: f"{stores[row.endpoint_id].path} {row.away}" for row in rows if row.away}
        back = sorted(
            row.endpoint_id for row in rows if not row.away and row.endpoint_id in known and known[row.endpoint_id].away
        )
        if back:
            unstored.reopen_these(cursor, back)
        _close(cursor, away, now)
    with transaction.atomic(), hot_cursor() as cursor:
        read_elsewhere(cursor, stores)
    return len(away)


_REGISTERED = """
SELECT f.url FROM catalogue_files f WHERE f.endpoint = %(name)s AND NOT EXISTS (
       SELECT 1 FROM file_replicas b WHERE (b.scope, b.lfn, b.endpoint) = (f.scope, f.lfn, f.endpoint) AND b.status = 'bad')
UNION ALL SELECT r.url FROM file_replicas r WHERE r.endpoint = %(name)s AND r.status = 'available' LIMIT %(most)s
"""


def _judge(
    cursor: psycopg.Cursor[Any], name: str, seen: Seen, before: StorageFolder | None, now: datetime
) -> StorageFolder | None:
    """What is kept of a folder; None of one that was never there.

    One that is empty, that has become another one, or that comes back, is there when one of the files is that are registered
    there, or when none is registered. Asked then only.
    """
    why, holds = (seen.why, True) if seen.why != EMPTY else ("", False)
    if before is None:
        return None if why else StorageFolder(endpoint_id=name, looked_at=now, holds_files=holds, inode=seen.inode)
    doubtful = not holds or before.away or seen.inode != before.inode
    if not why and before.holds_files and doubtful and not _has_some(cursor, name):
        why = seen.why or ANOTHER
    if why:
        return StorageFolder(
            endpoint_id=name, looked_at=now, away=why, holds_files=before.holds_files, inode=before.inode
        )
    return StorageFolder(endpoint_id=name, looked_at=now, holds_files=holds, inode=seen.inode)


def _has_some(cursor: psycopg.Cursor[Any], name: str) -> bool:
    """Whether one of the files registered at a storage is there, or none is registered."""
    cursor.execute(_REGISTERED, {"name": name, "most": MOST_LOOKED_FOR})
    urls = [url for (url,) in cursor.fetchall()]
    return not urls or any(_exists(url) for url in urls)


def _exists(url: str) -> bool:
    try:
        return path_of(url).exists()
    except (OSError, ValueError):
        return False


# One that jobs could not write to goes on counting from when that began.
_AWAY = """
INSERT INTO storage_troubles AS t (ddm_endpoint_name, failures, since, last, away)
SELECT name, %(enough)s, %(now)s, %(now)s, true FROM unnest(%(names)s::text[]) n (name) ORDER BY name
    ON CONFLICT (ddm_endpoint_name) DO UPDATE SET failures = greatest(t.failures, excluded.failures), last = excluded.last,
       away = true, since = CASE WHEN t.last > %(now)s - %(forgotten)s THEN t.since ELSE excluded.since END
"""
_OPEN_STILL = """
SELECT name FROM storage_endpoints WHERE name = ANY(%s::text[]) AND (closed_until > %s AND closed_reads) IS NOT TRUE
"""


def _close(cursor: psycopg.Cursor[Any], away: Mapping[str, str], now: datetime) -> None:
    """Close these storages, as far as they are not for some time. Each change of endpoints wakes what waits."""
    if not away:
        return
    values = {"names": texts(away), "now": now, "enough": unstored.IN_SUCCESSION, "forgotten": unstored.FORGOTTEN_AFTER}
    cursor.execute(_AWAY, values)
    cursor.execute(_OPEN_STILL, [texts(away), now + SOON])
    unstored.close(cursor, {name: away[name] for (name,) in cursor.fetchall()}, now)


# Only where their queue reads. Tape is read by the mover only.
_ELSEWHERE = """
WITH away AS MATERIALIZED (SELECT * FROM unnest(%(begins)s::text[]) a (begins)),
wanted AS MATERIALIZED (
    SELECT i.pandaid, i.row_id, i.scope, i.lfn, j.computingsite FROM jobs j
      JOIN job_files i ON i.pandaid = j.pandaid AND i.type = 'input' JOIN away a ON starts_with(i.surl, a.begins)
     WHERE j.jobstatus = ANY(%(queued)s::text[]) AND i.scope IS NOT NULL),
places AS (
    SELECT w.pandaid, w.row_id, w.computingsite, r.endpoint, r.url FROM wanted w
      JOIN file_replicas r ON r.lfn = w.lfn AND r.scope = w.scope AND r.status = 'available'
    UNION ALL
    SELECT w.pandaid, w.row_id, w.computingsite, f.endpoint, f.url FROM wanted w
      JOIN catalogue_files f ON f.lfn = w.lfn AND f.scope = w.scope
     WHERE NOT EXISTS (SELECT 1 FROM file_replicas b WHERE (b.scope, b.lfn, b.endpoint) = (f.scope, f.lfn, f.endpoint)
                          AND b.status = 'bad'))
UPDATE job_files f SET surl = n.url FROM (
    SELECT DISTINCT ON (p.row_id) p.pandaid, p.row_id, p.url FROM places p
      JOIN storage_endpoints e ON e.name = p.endpoint AND NOT e.is_tape AND NOT e.blacklisted_read AND NOT e.closed_reads
      JOIN panda_ddm_relation q ON q.panda_site_name = p.computingsite AND q.ddm_endpoint_name = p.endpoint
       AND q.order_read IS NOT NULL
     ORDER BY p.row_id, q.order_read, p.endpoint) n
 WHERE f.pandaid = n.pandaid AND f.row_id = n.row_id
"""


def read_elsewhere(cursor: psycopg.Cursor[Any], stores: Mapping[str, Storage]) -> int:
    """Queued jobs read another replica, at a storage of their queue, of what lies in a folder that is away. Returns how many
    files. One statement, two where one is away."""
    cursor.execute("SELECT name FROM storage_endpoints WHERE closed_until IS NOT NULL AND closed_reads AND path <> ''")
    away = {name: stores[name] for (name,) in cursor.fetchall() if name in stores}
    if not away:
        return 0
    begins = texts(begins for _, _, begins in storage_addresses(away))
    cursor.execute(_ELSEWHERE, {"begins": begins, "queued": texts(sorted(JOB_QUEUED))})
    return cursor.rowcount


_COMPLAINTS = f"""
SELECT j.pandaid FROM (SELECT pandaid FROM job_output_report
                        WHERE jobstatus = 'failed' AND NOT {troubles.left_aside("job", "pandaid")}
                        ORDER BY pandaid LIMIT 1000) r JOIN jobs j USING (pandaid)
 WHERE abs(j.piloterrorcode) = ANY(%(codes)s::int[]) AND NOT starts_with(coalesce(j.piloterrordiag, ''), %(away)s)
"""  # noqa: S608 - constants
_READ_AT = """
SELECT DISTINCT f.pandaid, r.name
  FROM job_files f JOIN unnest(%(names)s::text[], %(begins)s::text[]) r (name, begins) ON starts_with(f.surl, r.begins)
  JOIN storage_folders s ON s.ddm_endpoint_name = r.name
 WHERE f.pandaid = ANY(%(jobs)s::bigint[]) AND f.type IN ('input', 'lib', 'zipinput') ORDER BY 1, 2
"""


def tell() -> int:
    """Have failed jobs that are about to be booked say that the folder of a storage is away, where it was that and not a file.

    PanDA's pilot, which knows no storages, says only that it cannot read a file. One statement as a rule. Returns how many.
    """
    with hot_cursor() as cursor:
        cursor.execute(_COMPLAINTS, {"codes": numbers(CODES), "away": STORAGE_AWAY, "agent": ME})
        jobs = [job for (job,) in cursor.fetchall()]
        stores = local_storages() if jobs else {}
        names, _, begins = zip(*storage_addresses(stores), strict=True) if stores else ((), (), ())
        if not names:
            return 0
        cursor.execute(_READ_AT, {"names": texts(names), "begins": texts(begins), "jobs": numbers(jobs)})
        read = [(job, stores[name]) for job, name in cursor.fetchall()]
        seen = looked_at({store.path for _, store in read})
        met = {
            job: f"{STORAGE_AWAY}{store.path} {why}"
            for job, store in read
            if (why := seen[store.path].why or store.away)
        }
        if met:
            cursor.execute(
                """UPDATE jobs j SET piloterrorcode = %s, piloterrordiag = left(w.words || '. The pilot said: '
                                     || coalesce(j.piloterrordiag, ''), 500)
                     FROM unnest(%s::bigint[], %s::text[]) w (id, words)
                    WHERE j.pandaid = w.id AND j.pandaid = ANY(%s::bigint[])""",
                [STAGE_IN, numbers(met), texts(met.values()), numbers(met)],
            )
    return len(met)
