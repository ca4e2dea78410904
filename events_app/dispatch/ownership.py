"""How a pilot shows that a job is its own when it asks for ranges, or reports on them.

A job that was handed out with a secret answers only to it. The jobs of PanDA's pilots were handed out without: a token for
the queue shows that they are the caller's, and for the worker where it is for one. No attempt is said with ranges.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from psycopg.types.numeric import Int8

from tasks_app.dispatch.reports import Proof

SHOWN: Final = (
    "(%(site)s::text IS NULL OR computingsite = %(site)s) AND (%(worker)s::text IS NULL OR workerid = %(worker)s)"
    " AND CASE WHEN %(fence)s::bigint IS NULL THEN secret_hash IS NULL"
    " ELSE fence = %(fence)s AND secret_hash = %(digest)s END"
)
"""SQL: a row of `jobs` is the caller's."""
MINE: Final = f"pandaid = %(job)s AND {SHOWN}"


def shown(proof: Proof) -> dict[str, Any]:
    """The values of SHOWN."""
    return {
        "site": proof.site or None,
        "worker": proof.worker or None,
        "fence": None if proof.fence is None else Int8(proof.fence),
        "digest": hashlib.sha256(proof.secret.encode()).digest(),
    }
