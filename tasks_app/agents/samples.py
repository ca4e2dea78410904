"""Agent: a sample of the grid every five minutes, for plots and averages."""

from __future__ import annotations

from datetime import datetime

from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time
from tasks_app.counts import sampling, statistics

COUNTS_AGE_S = 30.0


@agent("samples", every="30s", title="Records the state of the grid every five minutes")
def run(now: datetime | None = None) -> Pass:
    """One pass, of one statement. Between two samples it does nothing."""
    statistics.refresh(COUNTS_AGE_S)
    return Pass(sampling.sample(the_time(now)))
