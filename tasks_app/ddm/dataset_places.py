"""Where datasets of the local catalogue are: first places of their files, and further replicas."""

from __future__ import annotations

from collections.abc import Sequence

from jedisite.database.sql import hot_cursor, texts
from tasks_app.ddm.base import Held, Places

# A first place of which the other table says more is not counted where it is bad; further replicas are.
_REPLICAS = """
WITH named AS (SELECT id, name FROM catalogue_datasets WHERE name = ANY(%s::text[])),
parts AS (SELECT name, id FROM named
          UNION ALL SELECT n.name, m.to_cataloguedataset_id
                      FROM named n JOIN catalogue_members m ON m.from_cataloguedataset_id = n.id)
SELECT p.name, f.endpoint, count(*), sum(f.size), true FROM parts p JOIN catalogue_files f ON f.dataset_id = p.id
 GROUP BY p.name, f.endpoint
UNION ALL
SELECT p.name, r.endpoint, count(*) FILTER (WHERE r.status = 'available') - count(*) FILTER (WHERE r.status = 'bad'),
       coalesce(sum(f.size) FILTER (WHERE r.status = 'available'), 0) - coalesce(sum(f.size) FILTER (WHERE r.status = 'bad'), 0),
       false
  FROM parts p JOIN catalogue_files f ON f.dataset_id = p.id JOIN file_replicas r ON r.lfn = f.lfn AND r.scope = f.scope
 WHERE r.status = CASE WHEN r.endpoint = f.endpoint THEN 'bad' ELSE 'available' END
 GROUP BY p.name, r.endpoint
 ORDER BY 1, 2
"""


def places_of_datasets(names: Sequence[str]) -> dict[str, Places]:
    """See `base.DataManagement.replicas`."""
    found: dict[str, dict[str, tuple[int, int]]] = {name: {} for name in names}
    totals = dict.fromkeys(names, (0, 0))
    with hot_cursor() as cursor:
        cursor.execute(_REPLICAS, [texts(names)])
        for name, endpoint, files, size, is_first in cursor:
            had, bytes_ = found[name].get(endpoint, (0, 0))
            found[name][endpoint] = had + files, bytes_ + int(size)
            if is_first:
                totals[name] = totals[name][0] + files, totals[name][1] + int(size)
    return {
        name: Places(
            *totals[name],
            tuple(Held(at, files, size, files == totals[name][0]) for at, (files, size) in rows.items() if files > 0),
        )
        for name, rows in found.items()
    }
