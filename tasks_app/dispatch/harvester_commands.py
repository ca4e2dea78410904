"""Commands for harvester instances."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.db import connection, transaction

from tasks_app.dispatch.harvester_instances import check_in

KILL_WORKERS = "KILL_WORKERS"

# One that asks for no acknowledgement is done with when it is fetched.
_ACQUIRE = """
UPDATE harvester_commands SET status = CASE WHEN ack_requested THEN 'retrieved' ELSE 'acknowledged' END,
       status_date = clock_timestamp()
 WHERE command_id = ANY(ARRAY(SELECT command_id FROM harvester_commands WHERE harvester_id = %s AND status = 'new'
                               ORDER BY command_id LIMIT %s FOR UPDATE SKIP LOCKED))
RETURNING command_id, command, params::text, ack_requested, creation_date
"""
_ACKNOWLEDGE = """
UPDATE harvester_commands c SET status = 'acknowledged', status_date = clock_timestamp()
  FROM harvester_instances h
 WHERE c.command_id = ANY(%s) AND c.status = 'retrieved' AND h.harvester_id = c.harvester_id AND h.owner = %s
"""
_SWEEP = """
INSERT INTO harvester_commands (harvester_id, command, params, ack_requested, status, actor)
SELECT DISTINCT harvester_id, %s, %s::jsonb, true, 'new', %s FROM harvester_worker_stats
 WHERE computingsite = %s AND lastupdate > clock_timestamp() - interval '1 day' ORDER BY harvester_id
RETURNING harvester_id
"""


@transaction.atomic
def acquire(harvester: str, limit: int, *, by: str) -> list[tuple[Any, ...]]:
    """Fetch up to `limit` commands that nobody has fetched: (number, command, params as JSON text, acknowledge?, made at).

    Raises ForeignInstanceError.
    """
    check_in(harvester, by=by)
    with connection.cursor() as cursor:
        cursor.execute(_ACQUIRE, [harvester, limit])
        return sorted(cursor.fetchall())


def acknowledge(command_ids: Sequence[int], *, by: str) -> int:
    """Note that commands were done; those of instances of others are left alone. Returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(_ACKNOWLEDGE, [list(command_ids), by])
        return int(cursor.rowcount)


def sweep(queue: str, params: dict[str, Any], *, by: str) -> list[str]:
    """Have the workers of a queue killed by all instances that reported on it in the last day. Returns their names."""
    with connection.cursor() as cursor:
        cursor.execute(_SWEEP, [KILL_WORKERS, json.dumps(params), by, queue])
        return [name for (name,) in cursor.fetchall()]
