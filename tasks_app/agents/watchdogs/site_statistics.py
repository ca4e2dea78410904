"""Watchdog: numbers of queues that brokers read. Jobs and users, starts, pilots, workers, disk I/O, transfers, closed storage.

It looks at the folders of storages, too."""

from __future__ import annotations

from datetime import datetime

from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time
from jedisite.vocabulary.words import plural
from tasks_app.counts import statistics
from tasks_app.outcomes import away_folders, unstored

COUNTS_AGE_S = 30.0


@agent("site_statistics", every="60s", title="Counts the activity of each queue for the brokers")
def run(now: datetime | None = None) -> Pass:
    """One pass: a few statements over open jobs and the last hours of the log, whatever the number of queues."""
    statistics.refresh(COUNTS_AGE_S)
    away_folders.look(the_time(now))
    unstored.reopen(the_time(now))
    queues = statistics.refresh_activity(the_time(now))
    return Pass(queues, f"numbers of {plural(queues, 'queue')}")
