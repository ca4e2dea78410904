"""Further replicas go with the last name of their file: rows at once, what lies on disks of this machine after the commit."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import structlog
from django.db import transaction

from brokerage_app.models import StorageEndpoint
from jedisite.database.sql import hot_cursor, texts
from jedisite.processes.logs import sentence_of
from tasks_app.ddm.addresses import storage_path

log = structlog.get_logger(__name__)

_FORGET = """
WITH named AS (SELECT DISTINCT * FROM unnest(%s::text[], %s::text[]) n (scope, lfn))
DELETE FROM file_replicas r USING named n
 WHERE r.scope = n.scope AND r.lfn = n.lfn
   AND NOT EXISTS (SELECT 1 FROM catalogue_files f WHERE f.lfn = n.lfn AND f.scope = n.scope)
RETURNING r.scope, r.lfn, r.endpoint
"""


def forget_replicas(files: Iterable[tuple[str, str, str]]) -> int:
    """Files, by address, scope and name, have been taken out of the catalogue: where nothing names them any more, their
    further replicas go. Returns how many there were."""
    rows = list(files)
    if not rows:
        return 0
    with hot_cursor() as cursor:
        cursor.execute(_FORGET, [texts(scope for _, scope, _ in rows), texts(lfn for _, _, lfn in rows)])
        gone = cursor.fetchall()
    if gone:
        remove_places(gone)
    return len(gone)


def remove_places(gone: Iterable[tuple[str, str, str]]) -> None:
    """After the commit: remove files, by scope, name and endpoint, from their places below the endpoints' folders."""
    rows = list(gone)
    roots = dict(StorageEndpoint.objects.exclude(path="").values_list("name", "path"))
    places = [storage_path(Path(roots[at]).resolve(), scope, lfn) for scope, lfn, at in rows if at in roots]
    # Names with folders in them have no place of their own.
    plain = [
        place
        for place, (_, lfn, _) in zip(places, (r for r in rows if r[2] in roots), strict=True)
        if place.name == lfn
    ]

    def unlink() -> None:
        for place in plain:
            try:
                if ".." not in place.parts and place.parent.resolve() == place.parent:
                    place.unlink(missing_ok=True)
            except OSError as exc:  # the others go all the same
                log.warning("catalogue.replica_stays", path=str(place), error=sentence_of(exc))

    transaction.on_commit(unlink, robust=True)
