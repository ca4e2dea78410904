"""The mover copies files between local storages: for jobs, for the nuclei that gather outputs, and from tape."""

from __future__ import annotations

from datetime import datetime

from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time
from jedisite.vocabulary.words import plural
from tasks_app.outcomes import transfer_ends
from tasks_app.transfers.moving import move


@agent("mover", every="2s", title="Copies files between storages")
def run(now: datetime | None = None) -> Pass:
    """One turn of bounded volume. `now` is the time by which links have room, waits are over and tapes are mounted."""
    unwanted = transfer_ends.cancel_unwanted()
    moved = move(the_time(now))
    settled = transfer_ends.settle()
    items = unwanted + moved.ended + settled
    return Pass(items, f"{plural(moved.ended, 'file')}, {moved.bytes / 1e6:.0f} MB", more=moved.more)
