"""Inputs that pilots found missing or corrupt: what lies on this machine is looked at, and a bad copy is marked.

Another replica then takes the first place, and whoever reads the file next reads that one. Without another all stays as it is:
the file is tried as often as its task says, and its owner may have it made again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import psycopg
from django.db import transaction

from jedisite.database.sql import hot_cursor, numbers, texts
from tasks_app.ddm.opening import open_led_to
from tasks_app.domain.states import JOB_QUEUED
from tasks_app.transfers import file_copies, replicas
from tasks_app.transfers.file_copies import Content, NoCopyError
from tasks_app.transfers.replicas import Place
from tasks_app.transfers.storages import Storage, local_storages

CODES: Final = (1099, 1103, 1171)
"""Errors of pilots: an input could not be copied, is not there, has a wrong checksum."""
MOST: Final = 50
MOST_BYTES: Final = 1_000_000_000
"""Of larger files only the size is compared."""


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


def check(jobs: Iterable[int]) -> int:
    """Look at what these failed jobs could not read. Returns how many copies were marked. Not inside a transaction."""
    with hot_cursor() as cursor:
        cursor.execute(_SUSPECTS, [numbers(jobs), numbers(CODES), MOST])
        suspects = [Suspect(*row) for row in cursor.fetchall()]
        if not suspects:
            return 0
        places = replicas.places_of(cursor, [(one.scope, one.lfn) for one in suspects])
    stores = local_storages()
    found = []
    for one in suspects:
        for place in replicas.readable(places[one.scope, one.lfn], stores):
            if place.url == one.url and (fault := _fault(one, stores[place.endpoint])):
                found.append((place, f"a job could not read it: {fault}"))
    for place, fault in found:
        with transaction.atomic(), hot_cursor() as cursor:
            replicas.mark_bad(cursor, [place], fault)
            _readdress(cursor, place)
    return len(found)


def _fault(one: Suspect, store: Storage) -> str:
    """What is wrong with a copy; "" when it is good, or cannot be looked at."""
    try:
        _, stream = open_led_to(file_copies.place_of(store.path, one.scope, one.lfn).path)
    except FileNotFoundError:
        return "it is not in the storage"
    except (OSError, ValueError, NoCopyError):
        return ""
    with stream:
        content = Content(one.size, one.adler32)
        return content.fault(stream) if one.size <= MOST_BYTES else content.size_fault(stream)


_NEW_PLACE = """
  FROM catalogue_files k WHERE k.lfn = %(lfn)s AND k.scope = %(scope)s AND k.url <> %(bad)s"""


def _readdress(cursor: psycopg.Cursor[Any], bad: Place) -> None:
    """Whoever reads the file next reads it at its first place, which is another now, if there is one."""
    values = {"scope": bad.scope, "lfn": bad.lfn, "bad": bad.url, "queued": texts(sorted(JOB_QUEUED))}
    cursor.execute(
        f"""UPDATE jedi_dataset_contents c SET surl = k.url {_NEW_PLACE}
               AND c.lfn = %(lfn)s AND c.scope = %(scope)s AND c.type = 'input' AND c.surl = %(bad)s""",  # noqa: S608
        values,
    )
    cursor.execute(
        f"""UPDATE job_files f SET surl = k.url {_NEW_PLACE} AND f.type = 'input' AND f.surl = %(bad)s AND f.pandaid IN (
                   SELECT c.pandaid FROM jedi_dataset_contents c JOIN jobs j USING (pandaid)
                    WHERE c.lfn = %(lfn)s AND c.scope = %(scope)s AND j.jobstatus = ANY(%(queued)s::text[]))
               AND f.lfn = %(lfn)s""",  # noqa: S608
        values,
    )
