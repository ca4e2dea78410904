"""Watchdog: queues that hold far more jobs of a share than they start give the excess back (fast rebrokerage)."""

from __future__ import annotations

from typing import Final

from django.db import transaction

from brokerage_app.grid.configured import configuration
from jedisite.agents.passes import renew_lease
from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import hot_cursor
from jedisite.vocabulary.words import plural
from tasks_app.upkeep import overloaded_queues

LIMIT = 5000
BUNCH: Final = 1000


@agent("rebrokerage", every="10m", title="Takes jobs back from overloaded queues")
def run(limit: int = LIMIT) -> Pass:
    """Look at all queues, and close up to `limit` jobs in excess."""
    config = configuration()
    if not overloaded_queues.is_configured(config):
        return Pass()
    resource = overloaded_queues.resource_work_queues()
    found = overloaded_queues.overloads(config, resource)
    if not found:
        return Pass()
    chosen = overloaded_queues.oldest_in_excess(found, resource, limit)
    ids, done = sorted(chosen), 0
    for start in range(0, len(ids), BUNCH):
        renew_lease()
        with transaction.atomic(), hot_cursor() as cursor:
            bunch = {job: chosen[job] for job in ids[start : start + BUNCH]}
            done += overloaded_queues.close_excess(cursor, bunch, resource)
    of = plural(len(found), "queue and share", "queues and shares")
    return Pass(done, f"{plural(done, 'job')} of {of}", more=len(ids) == limit)
