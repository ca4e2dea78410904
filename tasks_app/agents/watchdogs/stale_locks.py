"""Watchdog: claims on tasks whose holder is gone are freed. Their fence rises, so a holder that wakes up writes nothing."""

from __future__ import annotations

from datetime import datetime, timedelta

from jedisite.agents.passes import is_dead, kick
from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time
from tasks_app.configured import timeout_limits
from tasks_app.lifecycle import claims


@agent("stale_locks", every="5s", title="Frees tasks claimed by a process that is gone")
def run(lease: timedelta | None = None, now: datetime | None = None) -> Pass:
    """Free claims that are too old, wherever their holder is, and those of processes of this host that are gone."""
    holders = claims.holders()
    if not holders:
        return Pass()
    dead = [holder for holder in holders if is_dead(holder)]
    before = the_time(now) - (timeout_limits.limit("lock.task") if lease is None else lease)
    freed = claims.free_stale(dead, before)
    if freed:
        kick("refiner", "feeder", "task_broker", "job_generator", "post_processor", "commando", "pending")
    return Pass(len(freed), ", ".join(f"{task} ({status})" for task, status in freed[:20]))
