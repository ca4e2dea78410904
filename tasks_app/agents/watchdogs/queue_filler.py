"""Watchdog: queues of production that have been empty for a while get some large tasks for themselves."""

from __future__ import annotations

from datetime import datetime

from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time
from jedisite.vocabulary.words import plural
from tasks_app.upkeep.queue_filling import fill_queues, free_tasks, read_queues


@agent("queue_filler", every="10m", title="Assigns waiting tasks to queues with few jobs")
def run(now: datetime | None = None) -> Pass:
    """Free the tasks of queues that are busy again, then send tasks to those that are empty."""
    now = the_time(now)
    queues = read_queues(now)
    freed = free_tasks(queues)
    sent = fill_queues(queues, now)
    return Pass(freed + sent, f"{plural(sent, 'task')} sent to empty queues, {freed} freed")
