"""Watch dog: what the mover has measured of links goes into the network matrix; old transfers are deleted."""

from __future__ import annotations

from datetime import datetime

from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time
from jedisite.vocabulary.words import plural
from tasks_app.transfers import link_measures


@agent("links", every="1m", title="Writes what transfers show of links into the network matrix")
def run(now: datetime | None = None) -> Pass:
    """One pass; `now` is the time from which the last hour, day and week are counted."""
    now = the_time(now)
    numbers, gone = link_measures.write(now), link_measures.forget(now)
    return Pass(gone, f"{plural(numbers, 'number')}, {plural(gone, 'old rule')} deleted")
