"""The rows of production systems that a pass serves: one of each role in turn, and for how long."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from jedisite.agents.passes import renew_lease
from tasks_app.messaging import production_systems
from tasks_app.messaging.production_systems import Served

FOR_EACH_S: Final = 10.0
"""How long a pass begins rows of one kind: three such times and a turn of each are the longest that a pass takes."""


def serve_waiting(limit: int, now: datetime, for_s: float) -> tuple[list[Served], bool]:
    """Serve rows that wait: tasks, as many commands, and tasks whose check takes long. Also returns whether some may be left."""
    roles, served, more = production_systems.roles_that_wait(), list[Served](), False
    # Another role begins each second: where a pass ends early, it is not always the same that have had no turn.
    first = int(now.timestamp()) % len(roles) if roles else 0
    for serve in (
        partial(production_systems.import_next, now=now),
        production_systems.give_next_command,
        partial(production_systems.import_next, now=now, slow=True),
    ):
        done, is_cut = _in_turn([*roles[first:], *roles[:first]], serve, limit, for_s)
        served, more = served + done, more or is_cut
    return served, more


def _in_turn(
    roles: Sequence[str], serve: Callable[[str], Served | None], limit: int, for_s: float
) -> tuple[list[Served], bool]:
    """Serve a row of each role in turn, so that a flood of one delays no other: at most `limit`, and none is begun after `for_s`
    seconds but the first. Also returns whether some may be left."""
    left, done, began = list(roles), list[Served](), time.monotonic()
    while left and len(done) < limit and (not done or time.monotonic() - began < for_s):
        role = left.pop(0)
        if (found := serve(role)) is not None:
            left.append(role)
            done.append(found)
            renew_lease()
    return done, bool(left)
