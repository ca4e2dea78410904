"""Zip files in storages of this machine that no pilot has reported: nobody reads them, and they are deleted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from django.db import transaction

from events_app.lifecycle.zip_rows import SCOPE, ZIP_TYPE
from events_app.rules.range_ids import RangeIdError, parse_range_id
from jedisite.database.sql import hot_cursor, numbers, texts
from tasks_app.configured import timeout_limits
from tasks_app.ddm.addresses import Roots
from tasks_app.ddm.local_files import file_url, remove_from_disk
from tasks_app.domain.job_file_states import JobFileStatus
from tasks_app.domain.states import JOB_FINAL

_NAME: Final = re.compile(r"EventService_premerge_([0-9-]{9,100})[.]tar")
"""As pilots name such a file: by the id of the first range in it, which names the job."""
PARTS: Final = 256
"""Folders of a storage, of which each pass looks at one."""
EACH: Final = timedelta(minutes=10)
_STRAY: Final = f"""
SELECT s.lfn FROM unnest(%(jobs)s::bigint[], %(lfns)s::text[]) s (job, lfn)
 WHERE NOT EXISTS (SELECT FROM job_files z WHERE z.pandaid = s.job AND z.lfn = s.lfn AND z.type = '{ZIP_TYPE}'
                      AND z.status = '{JobFileStatus.READY}')
   AND NOT EXISTS (SELECT FROM jobs j WHERE j.pandaid = s.job AND j.jobstatus <> ALL(%(ended)s::text[]))
"""  # noqa: S608 - constants of ours


@transaction.atomic
def delete_strays(now: datetime, limit: int) -> int:
    """Delete up to `limit` files of one part of the storages, whose job has ended and has not reported them. Returns how many."""
    before = (now - timeout_limits.limit("zip.stray")).timestamp()
    part = f"{int(now.timestamp() // EACH.total_seconds()) % PARTS:02x}"
    found = dict(_old_files(part, before, limit))
    if not found:
        return 0
    with hot_cursor() as cursor:
        values = {"jobs": numbers(found.values()), "lfns": texts(path.name for path in found)}
        cursor.execute(_STRAY, {**values, "ended": texts(sorted(JOB_FINAL))})
        names = {lfn for (lfn,) in cursor.fetchall()}
    strays = [path for path in found if path.name in names]
    remove_from_disk((file_url(path), SCOPE, path.name) for path in strays)
    return len(strays)


def _old_files(part: str, before: float, limit: int) -> Iterator[tuple[Path, int]]:
    """Files with the names that pilots give them, not changed since a time, with the numbers of their jobs."""
    number = 0
    for path in _files(part):
        job = _job_of(path.name)
        if job is None or path.is_symlink() or path.stat().st_mtime >= before:
            continue
        yield path, job
        number += 1
        if number == limit:
            return


def _files(part: str) -> Iterable[Path]:
    """What lies in one part of each storage of this machine."""
    for root in {found for _, found in Roots().served}:
        yield from (root / SCOPE / part).glob("[0-9a-f][0-9a-f]/*")


def _job_of(name: str) -> int | None:
    """The job that a file is named by; None of other files."""
    if (named := _NAME.fullmatch(name)) is None:
        return None
    try:
        return parse_range_id(named[1]).job_id
    except RangeIdError:
        return None
