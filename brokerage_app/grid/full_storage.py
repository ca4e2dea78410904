"""Storage to which queues that take jobs write, and that takes no outputs: it is full, or jobs could not store theirs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import connection

from brokerage_app.grid.closed_storage import in_words
from brokerage_app.grid.configured import configuration
from brokerage_app.policy.configuration import Configuration

SPACES: Final = (("jobbroker", "STORAGE_MIN_FREE_SIZE"), ("anal_jobbroker", "STORAGE_MIN_FREE_SIZE_OUTPUT"))
"""The settings of the space that the storage for outputs must have left, by component."""


@dataclass(frozen=True, slots=True)
class FullStorage:
    """A storage that takes no outputs. `queues` write there first, as far as they take jobs; the numbers are those of `updated`,
    and of one that is closed that is when a job met it last.

    `usable_gb` is None where it is not known. `closed`: what jobs met that could not store outputs; "" where it is only full.
    `is_away`: its folder is away, and nothing is read there either.
    """

    name: str
    site: str
    usable_gb: float | None
    updated: datetime
    queues: tuple[str, ...]
    least_gb: float
    closed: str = ""
    is_away: bool = False

    @property
    def lack(self) -> str:
        if self.closed:
            return self.closed
        usable = max(self.usable_gb or 0.0, 0.0)
        return f"{usable:.0f} GB are usable at {self.name}, at least {self.least_gb:g} GB are needed"


# As brokers judge: the first storage for outputs counts, or, without a list, the one that the queue names (`describing.view_of`);
# equal orders are told apart by name, as Python sorts; and what is usable is what Endpoint.usable_gb says.
_FULL = """
WITH open AS (
    SELECT name, storage_id FROM queues WHERE status IN ('online', 'standby') AND (%(queue)s = '' OR name = %(queue)s)),
first AS (
    (SELECT DISTINCT ON (q.name, r.scope) q.name AS queue, r.ddm_endpoint_name AS name
       FROM panda_ddm_relation r JOIN open q ON q.name = r.panda_site_name WHERE r.order_write IS NOT NULL
      ORDER BY q.name, r.scope, r.order_write, r.ddm_endpoint_name COLLATE "C")
    UNION ALL
    SELECT q.name, q.storage_id FROM open q WHERE NOT EXISTS (
        SELECT 1 FROM panda_ddm_relation r WHERE r.panda_site_name = q.name AND r.scope = 'default')),
usable AS (
    SELECT e.name, e.site_name, e.closed_why, e.closed_until, e.closed_reads,
           CASE WHEN e.closed_until IS NULL THEN e.updated ELSE coalesce(t.last, e.updated) END AS updated,
           (e.space_free_gb + coalesce(e.space_expired_gb, 0) - coalesce(e.space_min_free_gb, 0)
            - coalesce(e.space_unavailable_gb, 0))::float8 AS gb
      FROM storage_endpoints e LEFT JOIN storage_troubles t ON t.ddm_endpoint_name = e.name
     WHERE e.space_free_gb IS NOT NULL OR e.closed_until IS NOT NULL)
SELECT u.name, u.site_name, u.gb, u.updated, array_agg(DISTINCT f.queue ORDER BY f.queue), u.closed_why, u.closed_until,
       u.closed_reads
  FROM usable u JOIN first f USING (name) WHERE u.gb < %(least)s OR u.closed_until IS NOT NULL
 GROUP BY 1, 2, 3, 4, 6, 7, 8 ORDER BY 1
"""


def full_storage(queue: str = "") -> list[FullStorage]:
    """That of one queue, or of all. One query."""
    least = least_space_gb(configuration())
    with connection.cursor() as cursor:
        cursor.execute(_FULL, {"queue": queue, "least": least})
        rows = cursor.fetchall()
    return [
        FullStorage(
            name,
            site,
            usable,
            updated,
            tuple(queues),
            least,
            in_words(name, why, until, is_away=away) if until else "",
            is_away=until is not None and away,
        )
        for name, site, usable, updated, queues, why, until, away in rows
    ]


def least_space_gb(found: Configuration) -> float:
    """The least space that a broker of any VO asks for: storage with less takes no outputs at all."""
    asked = [
        float(found.get(component, key, vo=vo))
        for component, key in SPACES
        for vo in ("", *(vo for _, vo in found.variants(component, key)))
    ]
    return min(asked)
